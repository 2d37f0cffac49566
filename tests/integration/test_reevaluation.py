"""The gate over time: who leaves, who comes back, why, and what that costs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from services.access.principal import LOCAL_ADMINISTRATOR
from services.embedded import EmbeddedServer
from services.errors import ModelError, PermanentError, RefreshInProgress, RunFenced, SchemaError
from services.index import stages
from services.index.reevaluation import reevaluate
from services.index.trust_store import Passage
from services.retrieval.model import Mode, SearchRequest
from services.trust.gate import GateThresholds
from services.trust.rules import TrustRules, load_rules
from tests.embedders import HashEmbedder
from tests.integration.refresh_kit import Killed, World, fresh_world, new_world, table, written_since
from tests.integration.test_refresh_killed import MortalSteps, Saved

# By the shipped rules: 64, 23 and 5 of 100 points.
KEPT = table(
    "shop.kept",
    title="Orders kept",
    descriptions={"business": "Every order, kept with care.", "source": "From the shop."},
    governance_roles=[{"role": "owner", "name": "order-stewards"}],
    tags=[["Sales"]],
    columns=[{"name": "order_no", "description": "Its number."}],
)
HALF = table(
    "shop.half",
    descriptions={"business": "Orders, half described."},
    tags=[["Sales"]],
    custom_fields=[{"name": "Blessed", "value": "yes"}],
)
BARE = table("shop.bare", tags=[["Orders"]])
CATALOG = [KEPT, HALF, BARE]


@pytest.fixture
def world(postgres_server: EmbeddedServer, tmp_path: Path) -> World:
    world = fresh_world(postgres_server, tmp_path)
    world.put("shop", CATALOG)
    world.refresh()
    return world


def found(world: World, mode: Mode, query: str = "orders") -> dict[str, float | None]:
    """Id -> vector similarity of what the question finds."""
    request = SearchRequest(query=query, mode=mode, explain=True, min_relevance=0, group_siblings=False)
    with world.searching() as searching:
        answer = searching.search.search(request, LOCAL_ADMINISTRATOR, "r")
    return {item.id: item.explain.vector_similarity for item in answer.results if item.explain}


def passages(world: World) -> list[Passage]:
    """Oldest first."""
    with world.stores() as stores:
        return [*reversed(stores.history.passages(100))]


def told(world: World) -> list[tuple[str, bool, str]]:
    return [(item.id, item.entered, str(item.cause)) for item in passages(world)]


def curation_scores(world: World) -> dict[str, float]:
    rows = world.rows("SELECT id, curation_score FROM asset JOIN asset_score USING (asset_key)")
    return {row["id"]: row["curation_score"] for row in rows}


def rules_with(world: World, text: str) -> TrustRules:
    path = world.folder / "rules.yaml"
    path.write_text(text, encoding="utf-8")
    return load_rules(path)


OWNER_IS_ALL = """
curation:
  owner_or_steward: {weight: 1000}
"""
BLESSED = """
signals:
  certification:
    patterns: {blessed: {}}
"""


class TestThreshold:
    def test_assets_leave_analysis_stay_in_discovery_and_return_unembedded(self, world: World) -> None:
        everybody = {"shop.kept", "shop.half", "shop.bare"}
        before, calls = found(world, Mode.ANALYSIS), world.embedder.calls
        assert set(before) == everybody
        index = world.index()

        world.thresholds = GateThresholds(60)
        raised = world.reevaluate()
        assert (raised["status"], raised["leaving"], raised["entering"], raised["embedded"]) == ("succeeded", 2, 0, 0)
        assert raised["changes"] == [{"source": "shop", "object_type": "table", "leaving": 2, "entering": 0}]
        assert set(found(world, Mode.ANALYSIS)) == {"shop.kept"}
        still_there = found(world, Mode.DISCOVERY)
        assert {name for name, similarity in still_there.items() if similarity is None} == {"shop.half", "shop.bare"}
        assert set(still_there) == everybody

        world.thresholds = GateThresholds(0)
        lowered = world.reevaluate()
        assert (lowered["leaving"], lowered["entering"], lowered["embedded"]) == (0, 2, 0)
        assert found(world, Mode.ANALYSIS) == before
        assert world.index() == index
        assert world.embedder.calls == calls
        assert told(world) == [
            ("shop.bare", False, "threshold"),
            ("shop.half", False, "threshold"),
            ("shop.bare", True, "threshold"),
            ("shop.half", True, "threshold"),
        ]
        left = passages(world)[0]
        assert (left.source, left.object_type, left.run_id) == ("shop", "table", raised["run_id"])
        assert (left.threshold_before, left.threshold_after) == (0, 60)
        assert left.curation_score_before == left.curation_score_after == curation_scores(world)["shop.bare"]

    def test_a_refresh_goes_by_the_settings_again_and_composes_nothing_for_it(self, world: World) -> None:
        world.thresholds = GateThresholds(60)
        world.reevaluate()
        world.thresholds = GateThresholds(0)
        before = world.counters()
        report = world.refresh()
        assert (report["total"]["entered"], report["total"]["changed"], report["total"]["embedded"]) == (2, 0, 0)
        written = written_since(before, world.counters())
        assert "draft" not in written
        assert (written["gate_event"], written["asset_score"], written["embedding_1"]) == (2, 3, 2)
        # Verdicts of all three, vectors of two; the history is no part of the index.
        assert report["total"]["written"] == 5
        assert world.refresh()["total"]["written"] == 0

    def test_source_wins_over_type_wins_over_the_default(self, world: World) -> None:
        term = {"id": "term.order", "object_type": "term", "name": "Orders"}
        world.put("glossary", [term, table("glossary.orders")])
        world.refresh()
        world.thresholds = GateThresholds(100, {"term": 0, "report": 50}, {"shop": 60})
        report = world.reevaluate()
        assert report["changes"] == [
            {"source": "glossary", "object_type": "table", "leaving": 1, "entering": 0},
            {"source": "shop", "object_type": "table", "leaving": 2, "entering": 0},
        ]
        assert set(found(world, Mode.ANALYSIS)) == {"shop.kept", "term.order"}
        rows = world.rows("SELECT id, threshold FROM asset JOIN asset_score USING (asset_key)")
        assert {row["id"]: row["threshold"] for row in rows} == {
            "shop.kept": 60, "shop.half": 60, "shop.bare": 60, "term.order": 0, "glossary.orders": 100,
        }  # fmt: skip

    def test_a_dry_run_says_what_the_real_one_does_and_changes_nothing(self, world: World) -> None:
        world.thresholds = GateThresholds(60)
        before = world.content(but=())
        with world.reevaluation() as steps:
            preview = steps.preview()
        assert world.content(but=()) == before
        assert (preview["dry_run"], preview["assets"], preview["rescored"]) == (True, 3, 0)
        real = world.reevaluate()
        for said in ("leaving", "entering", "changes", "thresholds"):
            assert preview[said] == real[said]

    def test_again_the_same_writes_nothing(self, world: World) -> None:
        world.thresholds = GateThresholds(60)
        world.reevaluate()
        before = world.counters()
        report = world.reevaluate()
        assert (report["written"], report["changes"]) == (0, [])
        assert written_since(before, world.counters()) == {}

    def test_an_asset_that_was_never_in_is_embedded_when_it_enters(self, database_uri: str, tmp_path: Path) -> None:
        world = new_world(database_uri, tmp_path)
        world.thresholds = GateThresholds(60)
        world.put("shop", CATALOG)
        world.refresh()
        assert passages(world) == []  # what it was first published with is no passing
        texts = len(world.embedder.texts)
        world.thresholds = GateThresholds(10)
        report = world.reevaluate()
        assert (report["entering"], report["embedded"]) == (1, 1)
        assert len(world.embedder.texts) == texts + 1
        assert set(found(world, Mode.ANALYSIS)) == {"shop.kept", "shop.half"}
        world.thresholds = GateThresholds(0)
        assert world.refresh()["total"]["embedded"] == 1
        assert set(found(world, Mode.ANALYSIS)) == {"shop.kept", "shop.half", "shop.bare"}

    def test_data_grows_no_younger_by_it(self, world: World) -> None:
        world.rows("UPDATE refresh_run SET finished_at = finished_at - interval '2 hours' RETURNING run_id")
        world.reevaluate()
        with world.searching() as searching:
            age = searching.store.corpus().data_age_seconds
        assert age is not None
        assert age > 7000


class TestMetadata:
    def test_an_asset_enters_and_leaves_by_what_its_catalog_says(self, world: World) -> None:
        world.thresholds = GateThresholds(20)
        world.reevaluate()
        world.put("shop", [KEPT, HALF, {**BARE, "descriptions": {"business": "Orders, said at last."}}])
        report = world.refresh()
        assert (report["total"]["entered"], report["total"].get("left", 0)) == (1, 0)
        world.put("shop", CATALOG)
        assert world.refresh()["total"]["left"] == 1
        assert told(world) == [
            ("shop.bare", False, "threshold"),
            ("shop.bare", True, "metadata"),
            ("shop.bare", False, "metadata"),
        ]
        entered = passages(world)[1]
        assert entered.curation_score_before < 20 <= entered.curation_score_after
        assert entered.threshold_before == entered.threshold_after == 20

    def test_metadata_rules_and_threshold_at_once_are_told_apart(self, world: World) -> None:
        world.thresholds = GateThresholds(20)
        world.refresh()
        # By the new rules an owner is nearly all: they alone take `half` out, whatever became of its metadata.
        world.put("shop", [KEPT, table("shop.half"), BARE])
        world.rules = rules_with(world, OWNER_IS_ALL)
        world.thresholds = GateThresholds(25)
        world.refresh()
        assert told(world)[1:] == [("shop.half", False, "rule")]
        # Its owner brings it back, at the old threshold as well as at the new one.
        world.put("shop", [KEPT, {**HALF, "governance_roles": KEPT["governance_roles"]}, BARE])
        world.thresholds = GateThresholds(22)
        world.refresh()
        assert told(world)[2:] == [("shop.half", True, "metadata")]
        # A word less would not have been enough for `kept` to leave; the threshold is.
        world.put("shop", [{**KEPT, "title": None}, HALF, BARE])
        world.thresholds = GateThresholds(99)
        world.refresh()
        assert ("shop.kept", False, "threshold") in told(world)[3:]


class TestRules:
    def test_other_rules_change_scores_and_verdicts_without_the_catalog(self, world: World) -> None:
        world.thresholds = GateThresholds(20)
        world.reevaluate()
        (world.folder / "shop.jsonl").unlink()
        scores, calls = curation_scores(world), world.embedder.calls
        world.rules = rules_with(world, OWNER_IS_ALL)
        with world.reevaluation() as steps:
            preview = steps.preview()
        report = world.reevaluate()
        assert (report["rescored"], report["leaving"], report["entering"], report["embedded"]) == (3, 1, 0, 0)
        assert (preview["rescored"], preview["changes"]) == (3, report["changes"])
        assert told(world)[-1] == ("shop.half", False, "rule")
        left = passages(world)[-1]
        assert (left.curation_score_before, left.curation_score_after) == (
            scores["shop.half"],
            curation_scores(world)["shop.half"],
        )
        assert world.embedder.calls == calls
        assert set(found(world, Mode.ANALYSIS)) == {"shop.kept"}

    def test_the_next_refresh_finds_nothing_to_do(self, world: World) -> None:
        world.rules = rules_with(world, OWNER_IS_ALL)
        world.reevaluate()
        before = world.counters()
        report = world.refresh()
        assert (report["total"]["changed"], report["total"]["written"]) == (0, 0)
        assert written_since(before, world.counters()) == {}

    def test_reevaluated_or_refreshed_the_index_is_the_same(self, world: World) -> None:
        saved = Saved(world)
        world.rules, world.thresholds = rules_with(world, OWNER_IS_ALL + BLESSED), GateThresholds(50)
        world.reevaluate()
        reevaluated = world.index()
        saved.restore()
        world.refresh()
        assert world.index() == reevaluated

    def test_a_narrative_that_says_something_else_now_is_told_and_embedded_anew(self, world: World) -> None:
        world.rules = rules_with(world, BLESSED)
        texts = len(world.embedder.texts)
        report = world.reevaluate()
        assert (report["rescored"], report["embedded"], report["waiting"]) == (3, 1, 0)
        (anew,) = world.embedder.texts[texts:]
        assert "certified" in anew.lower()
        with world.searching() as searching:
            view = searching.assets.get("shop.half", LOCAL_ADMINISTRATOR)
        assert "certified" in view.narrative.lower()
        assert view.governance_score == pytest.approx(0.2 * 0.8)
        assert world.refresh()["total"]["written"] == 0

    def test_sensitive_names_are_the_narratives_and_wait_for_a_refresh(self, world: World) -> None:
        values = {"name": "city", "top_values": ["Westhaven"], "tags": [["Location"]]}
        world.put("shop", [{**KEPT, "columns": [values]}])
        world.refresh()
        world.rules = rules_with(world, "sensitive_names: [Location]")
        world.refresh()
        with world.searching() as searching:
            assert "Westhaven" not in searching.assets.get("shop.kept", LOCAL_ADMINISTRATOR).narrative

    def test_the_catalogs_own_score_counts_when_that_is_preferred(self, world: World) -> None:
        world.put("shop", [KEPT, HALF, {**BARE, "curation_score": 90}])
        world.refresh()
        world.prefer_native_curation = True
        world.thresholds = GateThresholds(80)
        assert world.reevaluate()["rescored"] == 3
        assert set(found(world, Mode.ANALYSIS)) == {"shop.bare"}
        native = world.rows("SELECT id FROM asset JOIN asset_score USING (asset_key) WHERE curation_native")
        assert [row["id"] for row in native] == ["shop.bare"]

    def test_an_index_from_before_components_were_kept_is_scored_once_more(self, world: World) -> None:
        index = world.index()
        forget = "governance = NULL, governance_score = NULL, rules_digest = NULL"
        world.rows(f"UPDATE asset_score SET {forget} RETURNING asset_key")
        report = world.refresh()
        assert (report["total"]["rescored"], report["total"]["written"], report["total"]["embedded"]) == (3, 3, 0)
        assert world.index() == index
        assert passages(world) == []
        assert world.refresh()["total"]["written"] == 0

    def test_many_pages_are_scored_as_one(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        saved = Saved(world)
        world.rules, world.thresholds = rules_with(world, OWNER_IS_ALL + BLESSED), GateThresholds(50)
        world.reevaluate()
        whole = world.index()
        saved.restore()
        monkeypatch.setattr(stages, "SCORE_PAGE", 1)
        monkeypatch.setattr(stages, "GATE_PAGE", 1)
        world.reevaluate()
        assert world.index() == whole


class TestExpiry:
    def test_a_certification_that_runs_out_counts_no_longer_without_a_refresh(self, world: World) -> None:
        noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
        ends = noon + timedelta(minutes=30)
        certified = {**KEPT, "certification": {"status": "certified", "expires_at": ends.isoformat()}}
        world.put("shop", [certified, HALF, BARE])
        world.refresh()
        content = world.content(but=())

        def asked(now: datetime) -> tuple[float, tuple[str, ...]]:
            world.now = now
            request = SearchRequest(query="orders kept", explain=True, min_relevance=0)
            with world.searching() as searching:
                best = searching.search.search(request, LOCAL_ADMINISTRATOR, "r").results[0]
                view = searching.assets.get("shop.kept", LOCAL_ADMINISTRATOR)
            assert best.id == "shop.kept"
            assert best.explain is not None
            assert best.explain.governance_score == view.governance_score
            return view.governance_score, best.warnings

        assert asked(noon) == (pytest.approx(0.2), ())
        assert asked(ends) == (0.0, ("expired",))
        assert world.content(but=()) == content
        # What is kept for statistics is the score before expiry is judged, component by component.
        (kept,) = world.rows(
            "SELECT governance, governance_score FROM asset JOIN asset_score USING (asset_key) WHERE id = 'shop.kept'"
        )
        assert kept["governance_score"] == pytest.approx(0.2)
        assert {part["signal"]: part["contribution"] for part in kept["governance"]}["certification"] == 0.2
        assert set(kept["governance"][0]) == {"signal", "value", "origin", "confidence", "weight", "contribution"}


class TestDrift:
    def drift(self, world: World) -> Any:
        with world.stores() as stores, world.searching() as searching:
            return stores.history.drift([acl_id for _, acl_id, _ in searching.store.access_lists(0)])

    def test_a_run_that_moves_scores_tells_how_they_lie_and_who_moved(self, world: World) -> None:
        first = self.drift(world)
        assert first.movers == ()
        assert sum(first.histograms["curation"]) == sum(first.histograms["governance"]) == 3
        assert first.histograms["governance"] == (3, *[0] * 9)
        world.put("shop", [KEPT, HALF, {**BARE, "certification": {"status": "certified"}}])
        run = world.refresh()
        drift = self.drift(world)
        assert drift.run_id == run["run_id"]
        assert drift.histograms["governance"] == (2, 0, 1, *[0] * 7)
        (governance,) = [mover for mover in drift.movers if mover.score_kind == "governance"]
        assert (governance.id, governance.cause) == ("shop.bare", "data")
        assert (governance.score_before, governance.score_after) == (0.0, pytest.approx(0.2))
        assert {mover.id for mover in drift.movers if mover.score_kind == "curation"} == {"shop.bare"}

    def test_a_run_that_moves_nothing_leaves_the_last_in_force(self, world: World) -> None:
        before = self.drift(world)
        world.refresh()
        world.thresholds = GateThresholds(60)
        world.reevaluate()
        assert self.drift(world) == before

    def test_rules_are_told_from_data(self, world: World) -> None:
        world.rules = rules_with(world, OWNER_IS_ALL)
        world.put("shop", [KEPT, HALF, {**BARE, "descriptions": {"business": "Orders, said at last."}}])
        world.refresh()
        moved = {(mover.id, mover.cause) for mover in self.drift(world).movers if mover.score_kind == "curation"}
        assert moved == {
            ("shop.kept", "rules"), ("shop.half", "rules"), ("shop.bare", "rules"), ("shop.bare", "data"),
        }  # fmt: skip


class TestTogetherWithARefresh:
    def test_before_the_first_refresh_and_with_another_model_it_is_refused(
        self, database_uri: str, tmp_path: Path
    ) -> None:
        world = new_world(database_uri, tmp_path)
        with pytest.raises(SchemaError, match="vouch refresh"):
            world.reevaluate()
        world.put("shop", CATALOG)
        world.refresh()
        world.embedder = HashEmbedder(16, model_id="other")
        with world.reevaluation() as steps:
            for step in (lambda: steps.begin("process:h:1:1"), steps.preview):
                with pytest.raises(ModelError, match="'hash-bag'"):
                    step()

    def test_one_waits_for_the_other(self, world: World) -> None:
        with world.steps() as steps:
            refreshing = steps.begin(None, full=False, dry_run=False, holder="airflow:catalog_refresh:1")
            with pytest.raises(RefreshInProgress, match=f"refresh {refreshing}"):
                world.reevaluate("airflow:curation_reevaluation:1")
            steps.fail(refreshing, "enough")
        with world.reevaluation() as steps:
            run_id = steps.begin("airflow:curation_reevaluation:1")
            assert steps.begin("airflow:curation_reevaluation:1") == run_id
            with pytest.raises(RefreshInProgress, match=f"reevaluation {run_id}"):
                world.refresh(holder="airflow:catalog_refresh:1")
            # The next run of the same workflow knows that this one is over.
            world.reevaluate("airflow:curation_reevaluation:2")
            with pytest.raises(RunFenced):
                steps.rescore(run_id)

    def test_a_failure_gives_the_lease_back(self, world: World) -> None:
        world.rules = rules_with(world, BLESSED)

        def fails(_texts: object) -> None:
            raise PermanentError("no model today")

        world.embedder.before_documents = fails
        with pytest.raises(PermanentError, match="no model today"):
            world.reevaluate()
        world.embedder.before_documents = lambda _texts: None
        (run,) = world.rows("SELECT status, error FROM refresh_run WHERE kind = 'reevaluation'")
        assert run == {"status": "failed", "error": "no model today"}
        # Its narrative was drafted and is told by the next refresh.
        assert world.refresh()["total"]["embedded"] == 1
        with world.searching() as searching:
            assert "certified" in searching.assets.get("shop.half", LOCAL_ADMINISTRATOR).narrative.lower()

    def test_what_a_refresh_left_unpublished_is_not_published_by_it(self, world: World) -> None:
        new = table("shop.new", descriptions={"business": "Orders that nobody looked at."}, tags=[["Sales"]])
        world.put("shop", [*CATALOG, new])
        with world.steps() as steps:
            run_id = steps.begin(None, full=False, dry_run=False, holder="process:here:1:1")
            steps.extract(run_id, "shop")
            steps.compose(run_id)
            steps.fail(run_id, "too many records in quarantine")
        texts = len(world.embedder.texts)
        world.rules, world.thresholds = rules_with(world, BLESSED), GateThresholds(20)
        report = world.reevaluate()
        assert (report["rescored"], report["leaving"], report["waiting"], report["embedded"]) == (3, 1, 2, 0)
        assert len(world.embedder.texts) == texts
        assert set(found(world, Mode.DISCOVERY)) == {"shop.kept", "shop.half", "shop.bare"}
        assert world.refresh()["total"]["embedded"] == 2
        assert set(found(world, Mode.ANALYSIS)) == {"shop.kept", "shop.half", "shop.new"}
        assert world.refresh()["total"]["written"] == 0

    def test_killed_at_any_breath_the_next_run_makes_the_same_index(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for page in ("SCORE_PAGE", "COMPOSE_PAGE", "PUBLISH_PAGE", "GATE_PAGE"):
            monkeypatch.setattr(stages, page, 1)
        world.thresholds = GateThresholds(60)
        world.reevaluate()
        before = Saved(world)
        world.rules, world.thresholds = rules_with(world, OWNER_IS_ALL + BLESSED), GateThresholds(3)
        world.reevaluate()
        undisturbed = world.index()
        breaths = 0
        for breath in itertools.count():
            before.restore()
            ended = die_at(world, breath)
            # By turns it is gone on with, another reevaluation takes over, or a refresh does.
            turns: list[Callable[[], object]] = [
                lambda: world.reevaluate("airflow:dag:1"),
                lambda: (world.reevaluate("airflow:dag:2"), world.refresh()),
                lambda: world.refresh(holder="airflow:dag:3"),
            ]
            turns[breath % 3]()
            assert world.index() == undisturbed, f"killed at breath {breath}"
            breaths = breath
            if ended:
                break
        assert breaths >= 12


def die_at(world: World, breath: int) -> bool:
    """Reevaluate until the given breath; True when it came to its end before."""
    breaths: Iterator[int] = itertools.count()

    def breathe(*_: object) -> None:
        if next(breaths) >= breath:
            raise Killed

    world.progress = breathe
    try:
        with world.reevaluation() as steps:
            mortal: Any = MortalSteps(steps, breathe)
            reevaluate(mortal, "airflow:dag:1")
    except Killed:
        return False
    finally:
        world.progress = lambda *_: None
    return True
