"""Scores of what is published, the gate's verdicts, who passed it and how scores drift."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import pytest

from services.access.rule import AccessRule, Level
from services.catalog.model import ObjectType, asset_key
from services.index.scoring import Scores
from services.index.store import Wanted
from services.retrieval.store import StoredAsset
from services.trust.gate import GateChange, GateThresholds, gate, threshold_for
from tests.contract.engine import RULES, Engine, Hand, Written, frequencies

NEW_RULES = "rules of tomorrow"


def scores_of(item: Written, **changes: Any) -> Scores:
    """What the asset was composed with, scored anew."""
    given = {field.name: getattr(item.composed, field.name) for field in fields(Scores)}
    return Scores(**{**given, "rules_digest": NEW_RULES, **changes})


def published(
    engine: Engine, curation_scores: Mapping[str, float], threshold: float = 0.0
) -> tuple[Hand, list[Written]]:
    """Assets of these curation scores, published and verified, with the gate's verdict by the threshold."""
    hand = Hand(engine).begin()
    verdicts = {name: gate(score, threshold) for name, score in curation_scores.items()}
    items = [
        hand.asset(
            name,
            f"text of {name}",
            curation_score=score,
            threshold=threshold,
            eligible=verdicts[name].eligible,
            eligibility_reasons=verdicts[name].reasons,
            governance_score=score / 100,
        )
        for name, score in curation_scores.items()
    ]
    hand.publish(*items)
    assert hand.verify() == {}
    return hand, items


def due_ids(engine: Engine, hand: Hand, thresholds: GateThresholds, ids: str = "abcdef") -> list[str]:
    keys = {asset_key(name): name for name in ids}
    return sorted(keys[item.asset_key] for item in engine.stores.scores.due(hand.version, thresholds, -1, 100))


def pass_gate(engine: Engine, hand: Hand, thresholds: GateThresholds) -> int:
    due = engine.stores.scores.due(hand.version, thresholds, -1, 100)
    verdicts = {
        item.asset_key: gate(item.curation_score, threshold_for(item.object_type, item.source, thresholds))
        for item in due
    }
    return engine.stores.scores.set_verdicts(hand.run_id, hand.version, verdicts)


def told(engine: Engine) -> list[tuple[str, bool, str]]:
    """(id, entered, cause) of every passage, oldest first."""
    return [(item.id, item.entered, str(item.cause)) for item in reversed(engine.stores.history.passages(100))]


def embed(hand: Hand, thresholds: GateThresholds) -> list[str]:
    """Embed what misses a vector by these thresholds; the texts."""
    embeddings = hand.engine.stores.embeddings
    wanted = Wanted(entering=thresholds, version=hand.version)
    texts = embeddings.texts("shop", 0, 2**63 - 1, wanted)
    embeddings.add_vectors(hand.run_id, list(texts), hand.embedder.embed_documents(list(texts.values())))
    return list(texts.values())


def stored(engine: Engine, hand: Hand, asset_id: str) -> StoredAsset:
    found = engine.asset_store.asset(asset_id, hand.version, all_acl_ids(engine))
    assert found is not None
    return found


def all_acl_ids(engine: Engine) -> tuple[int, ...]:
    return tuple(acl_id for _, acl_id, _ in engine.search_store.access_lists(0))


class ScoreContract:
    """Needs the fixture `engine`."""

    def test_there_is_no_active_version_before_the_first_promotion(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        assert engine.stores.scores.active_version() is None
        hand.publish(hand.asset("a", "text"))
        hand.verify()
        assert engine.stores.scores.active_version() == (hand.version, hand.embedder.identity)

    def test_what_other_rules_scored_is_outdated_until_it_is_scored_anew(self, engine: Engine) -> None:
        hand, items = published(engine, {"a": 10, "b": 20, "c": 30})
        store = engine.stores.scores
        assert store.outdated(RULES, -1, 10) == ()
        first = store.outdated(NEW_RULES, -1, 2)
        rest = store.outdated(NEW_RULES, first[-1].asset_key, 2)
        assert {item.asset_key for item in (*first, *rest)} == {item.key for item in items}
        given = {item.key: item for item in items}[first[0].asset_key]
        assert (first[0].source, first[0].payload, first[0].signals) == (
            "shop",
            given.draft.payload,
            given.composed.signals,
        )
        assert store.set_scores(hand.run_id, {items[0].key: scores_of(items[0], curation_score=11.0)}, []) == 1
        assert {item.asset_key for item in store.outdated(NEW_RULES, -1, 10)} == {item.key for item in items[1:]}
        assert store.set_scores(hand.run_id, {}, []) == 0

    def test_scores_are_written_and_verdicts_stay(self, engine: Engine) -> None:
        hand, (item,) = published(engine, {"a": 50}, threshold=40)
        changes = {
            "signals": {**item.composed.signals, "notes": ["read anew"]},
            "certification": "certified",
            "certification_expires_at": "2027-01-01T00:00:00+00:00",
            "critical": True,
            "data_quality_percent": 97.5,
            "governance": ({"signal": "certification", "contribution": 0.2},),
            "governance_score": 1 / 3,
            "curation_score": 30.0,
            "curation": ({"item": "title", "weight": 5.0, "achieved": 1.0, "points": 5.0},),
            "curation_native": True,
        }
        engine.stores.scores.set_scores(hand.run_id, {item.key: scores_of(item, **changes)}, [])
        stored = engine.asset_store.asset(
            "a", hand.version, [acl_id for _, acl_id, _ in engine.search_store.access_lists(0)]
        )
        assert stored is not None
        assert (stored.curation_score, stored.signals["notes"], stored.curation[0]["item"]) == (
            30,
            ["read anew"],
            "title",
        )
        assert (stored.eligible, stored.eligibility_reasons) == (True, item.composed.eligibility_reasons)
        # Publishing the same scores with a draft finds every one of them in place.
        same = {**vars(item.composed), **vars(scores_of(item, **changes)), "threshold": 40.0}
        again = replace(item, composed=replace(item.composed, **{**same, "eligible": False}))
        assert hand.publish(again) == 1 + 1  # the verdict, and the vector that goes
        assert told(engine) == [("a", False, "rule")]

    def test_who_is_retold_is_drafted_again_as_it_is_published(self, engine: Engine) -> None:
        hand, items = published(engine, {"a": 50, "b": 50})
        scores = {item.key: scores_of(item) for item in items}
        engine.stores.scores.set_scores(hand.run_id, scores, [items[1].key])
        (draft,) = engine.stores.drafts.uncomposed(-1, 10)
        assert (draft.id, draft.source, draft.payload) == ("b", "shop", items[1].draft.payload)
        renewed = replace(items[1], composed=replace(items[1].composed, rules_digest=NEW_RULES))
        engine.stores.drafts.set_composed(hand.run_id, {renewed.key: renewed.composed})
        assert hand.publish_prepared() == 0

    def test_a_draft_that_waits_already_is_left_as_it_is(self, engine: Engine) -> None:
        hand, (item,) = published(engine, {"a": 50})
        newer = hand.asset("a", "newer text", payload={"id": "a", "object_type": "table", "name": "newer"})
        hand.prepare([newer])
        engine.stores.scores.set_scores(hand.run_id, {item.key: scores_of(item)}, [item.key])
        assert engine.stores.drafts.uncomposed(-1, 10) == ()
        hand.embed_missing()
        assert hand.publish_prepared() > 0

    def test_drafts_by_other_rules_or_thresholds_are_composed_again(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        by_type = {"object_type": ObjectType.REPORT, "threshold": 30.0}
        hand.prepare(
            [hand.asset("a", "x"), hand.asset("b", "y", **by_type), hand.asset("c", "z", rules_digest=NEW_RULES)]
        )
        again = engine.stores.scores.recompose_drafts
        assert again(hand.run_id, RULES, GateThresholds(0, {"report": 30})) == 1
        assert [draft.id for draft in engine.stores.drafts.uncomposed(-1, 10)] == ["c"]
        assert again(hand.run_id, RULES, GateThresholds(0, {"report": 30})) == 0
        assert again(hand.run_id, RULES, GateThresholds(0, {"report": 30}, {"shop": 0})) == 1
        assert again(hand.run_id, RULES, GateThresholds(5)) == 1
        assert len(engine.stores.drafts.uncomposed(-1, 10)) == 3

    def test_the_gate_is_told_of_every_asset_and_what_is_outdated_of_it(self, engine: Engine) -> None:
        hand, (a, _) = published(engine, {"a": 10, "b": 20}, threshold=15)
        engine.stores.scores.set_scores(hand.run_id, {a.key: scores_of(a)}, [])
        pages = list(engine.stores.scores.standing(NEW_RULES, 1))
        assert [len(page) for page in pages] == [1, 1]
        known = sorted((item for page in pages for item in page), key=lambda item: item.curation_score)
        assert [(item.curation_score, item.eligible, item.payload is None) for item in known] == [
            (10, False, True),
            (20, True, False),
        ]
        assert {(item.source, item.object_type) for item in known} == {("shop", "table")}

    @pytest.mark.parametrize(
        ("thresholds", "out"),
        [
            (GateThresholds(50), "a"),
            (GateThresholds(50.000001), "ab"),
            (GateThresholds(100), "abc"),
            (GateThresholds(0, {"table": 60}), "ab"),
            (GateThresholds(0, {"report": 60}), ""),
            (GateThresholds(60, {"table": 10}, {"team": 90}), ""),
            (GateThresholds(0, {"table": 0}, {"shop": 60}), "ab"),
        ],
    )
    def test_the_engine_judges_as_the_gate_does(self, engine: Engine, thresholds: GateThresholds, out: str) -> None:
        hand, items = published(engine, {"a": 49.999999, "b": 50, "c": 70})
        pass_gate(engine, hand, thresholds)
        assert due_ids(engine, hand, thresholds) == []
        assert hand.verify() == {}, "who is in has its vectors, who is out has none"
        for item in items:
            found = stored(engine, hand, item.draft.id)
            assert found.eligible == (item.draft.id not in out)
            verdict = gate(found.curation_score, threshold_for("table", "shop", thresholds))
            assert (found.eligible, found.eligibility_reasons) == (verdict.eligible, verdict.reasons)

    def test_who_leaves_keeps_texts_and_words_and_comes_back_as_it_was(self, engine: Engine) -> None:
        hand, _ = published(engine, {"a": 10, "b": 90})
        texts = list(hand.embedder.texts)
        before = stored(engine, hand, "a")
        assert pass_gate(engine, hand, GateThresholds(60)) == 3  # two verdicts, one vector
        assert hand.verify() == {}
        assert frequencies(engine, ["a"]) == {"a": 1}
        out = stored(engine, hand, "a")
        assert (out.eligible, out.chunks) == (False, before.chunks)
        assert pass_gate(engine, hand, GateThresholds(0)) == 3
        assert hand.verify() == {}
        assert stored(engine, hand, "a") == before
        assert hand.embedder.texts == texts
        assert told(engine) == [("a", False, "threshold"), ("a", True, "threshold")]

    def test_who_enters_waits_for_the_vectors_that_it_misses(self, engine: Engine) -> None:
        hand, items = published(engine, {"a": 10, "b": 90}, threshold=50)
        lowered = GateThresholds(0)
        assert due_ids(engine, hand, lowered) == ["b"]  # its threshold is another; `a` misses a vector
        embeddings = engine.stores.embeddings
        wanted = Wanted(entering=lowered, version=hand.version)
        assert list(embeddings.missing_texts()) == []
        assert list(embeddings.missing_texts(wanted)) == [("shop", items[0].key, 1)]
        assert list(embeddings.missing_texts(Wanted(entering=GateThresholds(11), version=hand.version))) == []
        assert embed(hand, lowered) == ["text of a"]
        assert embeddings.cached_texts(wanted) == {"shop": 1}
        assert due_ids(engine, hand, lowered) == ["a", "b"]
        pass_gate(engine, hand, lowered)
        assert stored(engine, hand, "a").eligible
        assert hand.verify() == {}

    def test_whoever_is_drafted_comes_in_with_its_draft(self, engine: Engine) -> None:
        hand, items = published(engine, {"a": 10}, threshold=50)
        hand.prepare([replace(items[0], composed=replace(items[0].composed, eligible=False))])
        entering = Wanted(entering=GateThresholds(0), version=hand.version)
        assert list(engine.stores.embeddings.missing_texts(entering)) == []
        assert list(engine.stores.embeddings.missing_texts(replace(entering, drafts=False))) == []

    @pytest.mark.parametrize(
        ("rescored", "score", "threshold", "passages"),
        [
            pytest.param(None, 30, 20, [("a", True, "metadata")], id="better metadata"),
            pytest.param(None, 10, 5, [("a", True, "threshold")], id="lower threshold"),
            pytest.param(None, 30, 25, [("a", True, "metadata")], id="both, metadata are enough"),
            pytest.param(None, 12, 11, [("a", True, "threshold")], id="both, metadata are not enough"),
            pytest.param(25, 30, 20, [("a", True, "rule")], id="rules and metadata, rules are enough"),
            pytest.param(15, 30, 20, [("a", True, "metadata")], id="rules and metadata, rules are not enough"),
            pytest.param(25, 12, 20, [], id="rules would, metadata keep it out"),
            pytest.param(None, 15, 20, [], id="not enough"),
        ],
    )
    def test_a_publication_tells_why_who_passes(
        self,
        engine: Engine,
        rescored: float | None,
        score: float,
        threshold: float,
        passages: list[tuple[str, bool, str]],
    ) -> None:
        hand, (item,) = published(engine, {"a": 10}, threshold=20)
        assert told(engine) == []
        if rescored is not None:
            engine.stores.scores.set_scores(hand.run_id, {item.key: scores_of(item, curation_score=rescored)}, [])
        composed = replace(item.composed, curation_score=score, threshold=threshold, eligible=score >= threshold)
        hand.publish(replace(item, composed=composed))
        assert told(engine) == passages
        for passage in engine.stores.history.passages(10):
            assert (passage.curation_score_before, passage.curation_score_after) == (10, score)
            assert (passage.threshold_before, passage.threshold_after) == (20, threshold)
            assert (passage.run_id, passage.source, passage.object_type) == (hand.run_id, "shop", "table")

    def test_verdicts_tell_rules_from_thresholds(self, engine: Engine) -> None:
        hand, items = published(engine, {"a": 10, "b": 70, "c": 70}, threshold=20)
        a, b, _ = items
        rescored = {a.key: scores_of(a, curation_score=90.0), b.key: scores_of(b, curation_score=80.0)}
        engine.stores.scores.set_scores(hand.run_id, rescored, [])
        embed(hand, GateThresholds(85))
        pass_gate(engine, hand, GateThresholds(85))
        assert sorted(told(engine)) == [("a", True, "rule"), ("b", False, "threshold"), ("c", False, "threshold")]
        befores = {item.id: item.curation_score_before for item in engine.stores.history.passages(10)}
        assert befores == {"a": 10, "b": 70, "c": 70}
        assert engine.stores.history.changes(hand.run_id) == (GateChange("shop", "table", 2, 1),)
        assert engine.stores.history.changes("another run") == ()
        assert len(engine.stores.history.passages(2)) == 2

    def test_a_histogram_is_kept_when_scores_lie_otherwise(self, engine: Engine) -> None:
        history = engine.stores.history
        assert history.drift([]) is None
        hand, (a, _, _) = published(engine, {"a": 0, "b": 9.999, "c": 100})
        history.keep_histogram(hand.run_id)
        first = history.drift([])
        assert first is not None
        assert (first.run_id, first.finished_at) == (hand.run_id, None)
        assert first.histograms == {"curation": (2, *[0] * 8, 1), "governance": (2, *[0] * 8, 1)}
        hand.end()
        second = Hand(engine, run_id="run-2").begin()
        history.keep_histogram(second.run_id)
        known = history.drift([])
        assert known is not None
        assert (known.run_id, known.histograms) == (hand.run_id, first.histograms)
        second.publish(replace(a, composed=replace(a.composed, curation_score=10.0)))
        history.keep_histogram(second.run_id)
        history.keep_histogram(second.run_id)  # tried again
        moved = history.drift([])
        assert moved is not None
        assert moved.run_id == second.run_id
        assert moved.histograms == {"curation": (1, 1, *[0] * 7, 1), "governance": (2, *[0] * 8, 1)}

    def test_the_largest_changes_of_a_run_are_kept_with_their_cause(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        items = [hand.asset(f"asset-{number}", "text", curation_score=10.0) for number in range(30)]
        hand.publish(*items)
        for number, item in enumerate(items):
            hand.publish(replace(item, composed=replace(item.composed, curation_score=10.0 + number)))
        rules = {items[0].key: scores_of(items[0], curation_score=90.0, governance_score=0.5)}
        engine.stores.scores.set_scores(hand.run_id, rules, [])
        engine.stores.history.keep_histogram(hand.run_id)
        drift = engine.stores.history.drift(all_acl_ids(engine))
        assert drift is not None
        curation = [(item.id, item.cause) for item in drift.movers if item.score_kind == "curation"]
        assert curation == [("asset-0", "rules"), *((f"asset-{number}", "data") for number in range(29, 10, -1))]
        (governance,) = [item for item in drift.movers if item.score_kind == "governance"]
        assert (governance.id, governance.score_before, governance.score_after) == ("asset-0", 0.0, 0.5)

    def test_who_may_not_see_an_asset_is_not_told_that_it_moved(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        secret = AccessRule(Level.RESTRICTED)
        items = [hand.asset("a", "text"), hand.asset("b", "text", access=secret)]
        hand.publish(*items)
        hand.publish(*(replace(item, composed=replace(item.composed, curation_score=51.0)) for item in items))
        engine.stores.history.keep_histogram(hand.run_id)
        rules = {rule: acl_id for _, acl_id, rule in engine.search_store.access_lists(0)}
        for acl_ids, seen in (([], []), ([rules[AccessRule(Level.PUBLIC)]], ["a"]), ([*rules.values()], ["a", "b"])):
            drift = engine.stores.history.drift(acl_ids)
            assert drift is not None
            assert [item.id for item in drift.movers] == seen
