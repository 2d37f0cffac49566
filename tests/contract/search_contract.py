"""Reads for search, whichever engine answers: access inside every read, exact signals, every filter.

An engine's test class inherits `SearchContract` and gives the fixture `engine`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from services.access.principal import LOCAL_ADMINISTRATOR, Principal
from services.access.rule import AccessRule, Level
from services.catalog.model import ObjectType, asset_key
from services.catalog.parts import CertificationStatus
from services.retrieval.keyword import LENGTH_SHARE, SATURATION, KeywordQuery, QueryTerm, keyword_query
from services.retrieval.model import Filters
from services.retrieval.ranking import Candidate, vector_similarity
from services.retrieval.store import Question, Scope
from services.retrieval.visibility import Visibility
from tests.contract.engine import ALWAYS_EXACT, Engine, Hand, frequencies

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
VISITOR = Principal("visitor")
FINANCE = Principal("finance-lead", ("finance",), clearance=2)
SECRET = AccessRule(Level.PUBLIC, groups=("finance",))
NO_WORDS = KeywordQuery((), 0.0, "")


def scope_of(engine: Engine, principal: Principal = LOCAL_ADMINISTRATOR, **changes: Any) -> Scope:
    given: dict[str, Any] = {"eligible_only": False, "object_types": (), "filters": Filters(), "now": NOW, **changes}
    return Scope(acl_ids=Visibility(engine.search_store).acl_ids(principal), **given)


def ask(
    engine: Engine,
    hand: Hand,
    text: str,
    scope: Scope,
    *,
    keywords: KeywordQuery | None = None,
    pool_size: int = 100,
    graph: bool = False,
) -> list[Candidate]:
    store = engine.graph_search_store if graph else engine.search_store
    corpus = store.corpus()
    if keywords is None:
        known = frequencies(engine, text.split())
        terms = tuple(
            QueryTerm(word, group, 1.0, 1.0, True)
            for group, word in enumerate(dict.fromkeys(text.split()))
            if word in known
        )
        keywords = KeywordQuery(terms, float(len(terms)), text)
    question = Question(hand.embedder.embed_query(text), keywords, corpus.mean_length, pool_size)
    return store.candidates(hand.version, question, scope)


def ids(candidates: Iterable[Candidate]) -> list[str]:
    return sorted(candidate.id for candidate in candidates)


class SearchContract:
    """Needs the fixture `engine`."""

    def test_before_anything_is_published_there_is_an_empty_corpus(self, engine: Engine) -> None:
        corpus = engine.search_store.corpus()
        assert (corpus.version, corpus.model, corpus.assets, corpus.mean_length) == (None, None, 0, 0.0)
        assert corpus.data_age_seconds is None
        assert engine.search_store.browse(scope_of(engine), 10) == []
        assert engine.asset_store.asset("a", None, ()) is None

    def test_the_age_of_the_data_counts_from_the_last_run_that_succeeded(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(hand.asset("a", "text"))
        hand.verify()
        assert engine.search_store.corpus().data_age_seconds is None
        hand.end()
        age = engine.search_store.corpus().data_age_seconds
        assert age is not None
        assert 0 <= age < 60
        failed = Hand(engine, run_id="run-2").begin()
        engine.stores.runs.end(failed.run_id, "failed", error="x", version=None)
        rehearsed = engine.stores.runs.begin(
            "run-3", "process:h:1:1", ["shop"], full=False, dry_run=True, is_dead=lambda _held: False
        )
        engine.stores.runs.end(rehearsed, "succeeded", error=None, version=None)
        later = engine.search_store.corpus().data_age_seconds
        assert later is not None
        assert later >= age

    def test_new_access_lists_are_told_in_their_order(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(hand.asset("a", "text"))
        (seq, acl_id, rule), *others = engine.search_store.access_lists(0)
        assert (rule, others) == (AccessRule(Level.PUBLIC), [])
        full = AccessRule(Level.CONFIDENTIAL, ("g",), ("u",), ("dg",), ("du",))
        hand.publish(hand.asset("b", "text", access=full), hand.asset("c", "text"))
        ((next_seq, next_id, added),) = engine.search_store.access_lists(seq)
        assert added == full
        assert next_seq > seq
        assert next_id != acl_id
        assert engine.search_store.access_lists(next_seq) == []

    def test_both_signals_are_computed_exactly_for_every_candidate(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        items = [
            hand.asset("a", "alpha beta", "gamma delta", postings={"alpha": 3.0, "beta": 0.3}, name="one"),
            hand.asset("b", "epsilon", postings={"alpha": 1.0, "zeta": 2.5, "eta": 4.0}, name="two"),
            hand.asset("c", "zeta eta", postings={"theta": 1.0}, name="three"),
            hand.asset("d", "alpha", postings={"alpha": 2.0}, name="four", eligible=False),
        ]
        hand.publish(*items)
        hand.verify()
        terms = (
            QueryTerm("alpha", 0, 0.7, 1.0, True),
            QueryTerm("beta", 1, 1.9, 1.0, False),
            QueryTerm("zeta", 2, 1.1, 1.0, True),
        )
        found = {
            candidate.id: candidate
            for candidate in ask(engine, hand, "alpha beta", scope_of(engine), keywords=KeywordQuery(terms, 3.7, "x"))
        }
        assert sorted(found) == ["a", "b", "c", "d"]
        vector = hand.embedder.embed_query("alpha beta").astype(float)
        mean_length = np.mean([np.float32(item.composed.keyword_length) for item in items])
        for item in items:
            candidate = found[item.draft.id]
            length = 1 - LENGTH_SHARE + LENGTH_SHARE * item.composed.keyword_length / mean_length
            weights = [(term.idf, item.composed.postings.get(term.term, 0.0)) for term in terms]
            matched = sum(idf * weight / (weight + SATURATION * length) for idf, weight in weights if weight)
            assert candidate.matched_idf == pytest.approx(matched, abs=1e-6)
            if not item.composed.eligible:
                assert (candidate.best_cosine, candidate.mean_cosine, candidate.chunk_number) == (None, None, None)
                continue
            texts = [chunk.text for chunk in item.composed.chunks]
            cosines = hand.embedder.embed_documents(texts).astype(float) @ vector
            assert candidate.best_cosine == pytest.approx(cosines.max(), abs=1e-6)
            assert candidate.mean_cosine == pytest.approx(cosines.mean(), abs=1e-6)
            assert candidate.chunk_number == int(cosines.argmax())

    def test_alternatives_of_one_word_add_up_before_they_saturate(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        items = [
            hand.asset("both", "far", postings={"customer": 1.5, "cust": 2.0, "order": 1.0}),
            hand.asset("short", "far", postings={"cust": 2.0}),
            hand.asset("two words", "far", postings={"order": 4.0}),
        ]
        hand.publish(*items)
        hand.verify()
        terms = (
            QueryTerm("customer", 0, 2.0, 1.0, True),
            QueryTerm("cust", 0, 2.0, 0.8, True),
            QueryTerm("order", 1, 1.0, 1.0, True),
            QueryTerm("order", 2, 3.0, 0.5, True),  # also an alternative of an unknown word
        )
        keywords = KeywordQuery(terms, 6.0, "x")
        found = {
            candidate.id: candidate.matched_idf
            for candidate in ask(engine, hand, "nothing", scope_of(engine), keywords=keywords)
        }
        mean_length = np.mean([np.float32(item.composed.keyword_length) for item in items])
        for item in items:
            has = item.composed.postings
            norm = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * item.composed.keyword_length / mean_length)
            weights = (
                (2.0, has.get("customer", 0.0) + 0.8 * has.get("cust", 0.0)),
                (1.0, has.get("order", 0.0)),
                (3.0, 0.5 * has.get("order", 0.0)),
            )
            matched = sum(idf * weight / (weight + norm) for idf, weight in weights)
            assert found[item.draft.id] == pytest.approx(matched, abs=1e-6)

    def test_a_whole_name_is_found_and_marked_whatever_else_matches(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(
            hand.asset("a", "something else", whole_names=("order headers", "cust ord hdr"), postings={}),
            hand.asset("b", "order headers", whole_names=("headers",), postings={}),
        )
        hand.verify()
        keywords = KeywordQuery((), 1.0, "cust ord hdr")
        found = ask(engine, hand, "order headers", scope_of(engine), keywords=keywords, pool_size=1)
        assert {candidate.id: candidate.named for candidate in found} == {"a": True, "b": False}

    def test_a_synonym_is_found_but_is_no_name(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(
            hand.asset("a", "something else", whole_synonyms=("bills",), postings={}), hand.asset("b", "invoices")
        )
        hand.verify()
        found = ask(engine, hand, "invoices", scope_of(engine), keywords=KeywordQuery((), 1.0, "bills"), pool_size=1)
        assert {candidate.id: (candidate.named, candidate.called) for candidate in found} == {
            "a": (False, True),
            "b": (False, False),
        }

    def test_a_common_word_scores_but_proposes_nobody_unless_few_are_asked(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        near = [hand.asset(f"near-{number}", "the question", postings={"rest": 1.0}) for number in range(9)]
        hand.publish(
            *near,
            hand.asset("common", "far away", postings={"common": 1.0}),
            hand.asset("rare", "far away", postings={"common": 1.0, "rare": 1.0}),
        )
        hand.verify(exact_scan_rows=0)
        terms = (QueryTerm("common", 0, 0.5, 1.0, False), QueryTerm("rare", 1, 1.0, 1.0, True))
        keywords = KeywordQuery(terms, 1.5, "x")
        for graph, proposed in ((True, ["rare"]), (False, ["common", "rare"])):
            found = ask(engine, hand, "the question", scope_of(engine), keywords=keywords, pool_size=2, graph=graph)
            assert [name for name in ids(found) if not name.startswith("near")] == proposed
            (rare,) = [candidate for candidate in found if candidate.id == "rare"]
            assert rare.matched_idf > 0.5

    def test_the_pool_of_equals_is_cut_by_id(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(*(hand.asset(f"twin-{number:02}", "same", postings={"same": 1.0}) for number in range(12)))
        hand.verify()
        first = [f"twin-{number:02}" for number in range(5)]
        assert ids(ask(engine, hand, "same", scope_of(engine), keywords=NO_WORDS, pool_size=5)) == first
        by_word = KeywordQuery((QueryTerm("same", 0, 1.0, 1.0, True),), 1.0, "")
        assert ids(ask(engine, hand, "same", scope_of(engine), keywords=by_word, pool_size=5)) == first
        assert ids(engine.search_store.browse(scope_of(engine), 5)) == first

    def test_the_nearest_of_equal_chunks_is_the_first(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(hand.asset("a", "other", "same", "same"))
        hand.verify()
        (found,) = ask(engine, hand, "same", scope_of(engine))
        assert found.chunk_number == 1

    def test_an_asset_with_many_chunks_has_no_more_chances_to_be_proposed(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        query = "alpha beta gamma delta"
        near = [f"{query} epsilon{number}" for number in range(32)]
        hand.publish(hand.asset("many", *near), hand.asset("one", f"{query} zeta"))
        hand.verify()
        both = {item.id: item for item in ask(engine, hand, query, scope_of(engine), keywords=NO_WORDS)}
        similarity = {
            name: vector_similarity(item.best_cosine or 0, item.mean_cosine or 0) for name, item in both.items()
        }
        best = max(similarity, key=lambda name: similarity[name])
        assert ids(ask(engine, hand, query, scope_of(engine), keywords=NO_WORDS, pool_size=1)) == [best]

    @pytest.mark.parametrize("graph", [False, True])
    def test_what_a_caller_may_not_see_is_no_candidate_by_any_way(self, engine: Engine, graph: bool) -> None:
        hand = Hand(engine).begin()
        hand.publish(
            hand.asset("open", "the secret word", name="open", postings={"secret": 1.0}),
            hand.asset("hidden", "the secret", name="secret", postings={"secret": 3.0}, access=SECRET),
        )
        hand.verify(exact_scan_rows=0 if graph else ALWAYS_EXACT)
        for principal, seen in ((VISITOR, ["open"]), (FINANCE, ["hidden", "open"])):
            scope = scope_of(engine, principal)
            assert ids(ask(engine, hand, "secret", scope, graph=graph)) == seen
            assert ids(ask(engine, hand, "secret", scope, graph=graph, pool_size=1)) in (["open"], ["hidden"], seen)
            assert ids(engine.search_store.browse(scope, 10)) == seen

    def test_the_hidden_take_no_places_from_the_visible(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hidden = [
            hand.asset(f"hidden-{number}", "the answer", name="answer", postings={"answer": 5.0}, access=SECRET)
            for number in range(30)
        ]
        shown = [
            hand.asset(f"shown-{number}", f"some answer {number}", name=f"s{number}", postings={"answer": 0.1})
            for number in range(5)
        ]
        hand.publish(*hidden, *shown)
        hand.verify(exact_scan_rows=0)
        for graph in (False, True):
            found = ask(engine, hand, "answer", scope_of(engine, VISITOR), pool_size=5, graph=graph)
            assert ids(found) == [f"shown-{number}" for number in range(5)]
        assert len(engine.search_store.browse(scope_of(engine, VISITOR), 5)) == 5

    def test_details_are_checked_against_the_access_list_once_more(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        payload = {"id": "a", "object_type": "table", "name": "orders", "location": ["shop", "public"], "url": "u:1"}
        item = hand.asset("a", "first", "second", payload=payload, name="orders", title="Orders")
        hand.publish(item, hand.asset("b", "other"))
        hand.verify()
        scope = scope_of(engine, VISITOR)
        found = ask(engine, hand, "second", scope)
        details = engine.search_store.details(hand.version, found, scope.acl_ids)
        assert sorted(details) == sorted((asset_key("a"), asset_key("b")))
        shown = details[asset_key("a")]
        assert (shown.object_type, shown.name, shown.title, shown.url) == ("table", "orders", "Orders", "u:1")
        assert shown.location == ("shop", "public")
        assert shown.matched == ("part 1", "second")
        assert shown.eligibility_reasons == item.composed.eligibility_reasons
        assert shown.signals == item.composed.signals
        assert (shown.curation_score, shown.eligible) == (50.0, True)
        hand.publish(hand.asset("a", "first", "second", name="orders", access=SECRET))
        assert sorted(engine.search_store.details(hand.version, found, scope.acl_ids)) == [asset_key("b")]
        assert engine.search_store.details(hand.version, found, ()) == {}
        assert engine.search_store.details(hand.version, [], scope.acl_ids) == {}

    def test_details_of_what_was_browsed_have_no_match(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(hand.asset("a", "first"))
        hand.verify()
        scope = scope_of(engine)
        (browsed,) = engine.search_store.browse(scope, 5)
        assert (browsed.best_cosine, browsed.chunk_number, browsed.named) == (None, None, False)
        assert engine.search_store.details(hand.version, [browsed], scope.acl_ids)[browsed.asset_key].matched is None

    def test_a_hidden_asset_and_a_missing_one_are_looked_up_alike(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(hand.asset("open", "text"), hand.asset("hidden", "text", access=SECRET))
        acl_ids = scope_of(engine, VISITOR).acl_ids
        assert engine.asset_store.asset("open", hand.version, acl_ids) is not None
        assert engine.asset_store.asset("hidden", hand.version, acl_ids) is None
        assert engine.asset_store.asset("missing", hand.version, acl_ids) is None
        for impossible in ("nul \x00", "surrogate \ud800", "x" * 5000):
            assert engine.asset_store.asset(impossible, hand.version, acl_ids) is None
        assert engine.asset_store.hidden(["open", "hidden", "missing"], acl_ids) == {"hidden"}
        assert engine.asset_store.hidden([], acl_ids) == frozenset()

    def test_nobody_sees_anything_without_a_list_that_lets_them_in(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(hand.asset("a", "text"))
        hand.verify()
        nothing = scope_of(engine, VISITOR)
        nothing = Scope((), nothing.eligible_only, nothing.object_types, nothing.filters, nothing.now)
        assert ask(engine, hand, "text", nothing) == []
        assert engine.search_store.browse(nothing, 10) == []
        assert engine.asset_store.asset("a", hand.version, ()) is None

    def test_only_eligible_assets_where_that_is_asked(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(
            hand.asset("in", "text", name="text", postings={"text": 1.0}),
            hand.asset("out", "text", name="text", postings={"text": 1.0}, eligible=False),
        )
        hand.verify()
        assert ids(ask(engine, hand, "text", scope_of(engine, eligible_only=True))) == ["in"]
        assert ids(engine.search_store.browse(scope_of(engine, eligible_only=True), 10)) == ["in"]
        assert ids(ask(engine, hand, "text", scope_of(engine))) == ["in", "out"]

    @pytest.mark.parametrize(
        ("filters", "seen"),
        [
            pytest.param({}, "abcd", id="none"),
            pytest.param({"source": ("SHOP",)}, "abc", id="source"),
            pytest.param({"source": ("shop", "team")}, "abcd", id="one of two sources"),
            pytest.param({"tag": ("Finance",)}, "ab", id="tag"),
            pytest.param({"tag": ("finance/REVENUE",)}, "a", id="tag path"),
            pytest.param({"tag": ("unknown",)}, "", id="unknown tag"),
            pytest.param({"term": ("net Revenue",)}, "a", id="term"),
            pytest.param({"domain": ("SALES",)}, "b", id="domain"),
            pytest.param({"owner": ("Finance-Stewards",)}, "a", id="owner"),
            pytest.param({"data_product": ("customer 360",)}, "c", id="data product"),
            pytest.param({"workspace": ("w1",)}, "bc", id="workspace"),
            pytest.param({"certification": (CertificationStatus.CERTIFIED,)}, "a", id="certified"),
            pytest.param({"certification": (CertificationStatus.INACTIVE,)}, "b", id="expired"),
            pytest.param({"certification": (CertificationStatus.NONE,)}, "cd", id="not certified"),
            pytest.param({"critical_data_element": True}, "a", id="critical"),
            pytest.param({"critical_data_element": False}, "bcd", id="not critical"),
            pytest.param({"classification": ("public",)}, "abd", id="public"),
            pytest.param({"classification": ("Confidential", "Public")}, "abcd", id="two levels"),
            pytest.param({"classification": ("Restricted",)}, "", id="a level that nothing has"),
            pytest.param({"min_curation_score": 60.0}, "ab", id="curation"),
            pytest.param({"min_data_quality": 90.0}, "a", id="quality"),
            pytest.param({"min_data_quality": 0.0}, "ab", id="any known quality"),
            pytest.param({"tag": ("Finance",), "domain": ("Sales",)}, "b", id="all of them hold"),
        ],
    )
    def test_every_filter(self, engine: Engine, filters: dict[str, Any], seen: str) -> None:
        hand = self.publish_filtered(engine)
        for mode in ("ask", "browse"):
            scope = scope_of(engine, filters=Filters(**filters))
            found = ask(engine, hand, "table", scope) if mode == "ask" else engine.search_store.browse(scope, 10)
            assert ids(found) == list(seen)

    def test_object_types_are_a_filter_too(self, engine: Engine) -> None:
        hand = self.publish_filtered(engine)
        for types, seen in (((), "abcd"), (("report",), "d"), (("report", "table"), "abcd"), (("tag",), "")):
            assert ids(ask(engine, hand, "table", scope_of(engine, object_types=types))) == list(seen)

    @pytest.mark.parametrize("word", ["\x00", "\ud800", "'; DROP TABLE asset; --", "%", "{}", "x" * 20_000])
    def test_a_filter_word_that_nothing_bears_finds_nothing(self, engine: Engine, word: str) -> None:
        hand = self.publish_filtered(engine)
        for name in ("source", "tag", "term", "domain", "owner", "data_product", "workspace"):
            scope = scope_of(engine, filters=Filters.model_construct(**{name: (word,)}))
            assert ask(engine, hand, "table", scope) == []

    def publish_filtered(self, engine: Engine) -> Hand:
        hand = Hand(engine).begin()
        soon, past = (NOW + timedelta(days=1)).isoformat(), (NOW - timedelta(days=1)).isoformat()
        hand.publish(
            hand.asset(
                "a",
                "text",
                tags=("finance", "finance/revenue", "revenue"),
                terms=("net revenue", "term:1"),
                owners=("finance-stewards",),
                certification="certified",
                certification_expires_at=soon,
                critical=True,
                data_quality_percent=95.0,
                curation_score=80.0,
            ),
            hand.asset(
                "b",
                "text",
                tags=("finance",),
                domains=("sales",),
                workspaces=("w1", "w2"),
                certification="certified",
                certification_expires_at=past,
                critical=False,
                data_quality_percent=0.0,
                curation_score=60.0,
            ),
            hand.asset(
                "c",
                "text",
                data_products=("customer 360",),
                workspaces=("w1",),
                access=AccessRule(Level.CONFIDENTIAL),
                eligible=False,
            ),
            hand.asset("d", "text", source="team", object_type=ObjectType.REPORT),
        )
        hand.verify()
        return hand

    def test_browsing_goes_by_name(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(
            hand.asset("3", "text", name="Beta"),
            hand.asset("1", "text", name="alpha"),
            hand.asset("2", "text", name="beta"),
            hand.asset("0", "text", name="gamma", eligible=False),
        )
        hand.verify()
        browsed = engine.search_store.browse(scope_of(engine), 10)
        assert [candidate.id for candidate in browsed] == ["1", "2", "3", "0"]
        assert [candidate.id for candidate in engine.search_store.browse(scope_of(engine), 2)] == ["1", "2"]

    def test_the_graph_index_finds_what_comparing_every_vector_finds(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        topics = [" ".join(f"topic{topic}word{word}" for word in range(4)) for topic in range(40)]
        texts = [f"{topics[number % 40]} own{number} also{number // 3}" for number in range(2000)]
        restricted = AccessRule(Level.PUBLIC, groups=("finance",))
        hand.publish(
            *(
                hand.asset(
                    f"asset-{number}", text, postings={}, access=restricted if number % 3 else AccessRule(Level.PUBLIC)
                )
                for number, text in enumerate(texts)
            )
        )
        assert hand.verify(exact_scan_rows=0) == {}
        for principal in (LOCAL_ADMINISTRATOR, VISITOR):
            scope = scope_of(engine, principal)
            shares = []
            for question in range(0, 2000, 100):
                exact, graph = (
                    {
                        item.id: item
                        for item in ask(engine, hand, texts[question], scope, keywords=NO_WORDS, graph=graph)
                    }
                    for graph in (False, True)
                )
                best = sorted(exact, key=lambda name: (-(exact[name].best_cosine or 0), name))[:10]
                shares.append(len(graph.keys() & set(best)) / 10)
                # What both propose has the same signals, bit for bit.
                assert all(graph[name] == exact[name] for name in graph.keys() & exact.keys())
                assert len(graph) >= 100
            assert np.mean(shares) >= 0.99

    @pytest.mark.parametrize("graph", [False, True])
    def test_who_sees_five_of_thousands_is_answered_from_all_five(self, engine: Engine, graph: bool) -> None:
        hand = Hand(engine).begin()
        hand.publish(
            *(
                hand.asset(f"hidden-{n}", f"the answer {n}", postings={"answer": 3.0}, access=SECRET)
                for n in range(1200)
            ),
            *(hand.asset(f"shown-{n}", f"far from it {n}", postings={f"word{n}": 1.0}) for n in range(5)),
        )
        hand.verify(exact_scan_rows=0)
        found = ask(engine, hand, "the answer", scope_of(engine, VISITOR), pool_size=20, graph=graph)
        assert ids(found) == [f"shown-{n}" for n in range(5)]

    @pytest.mark.parametrize("graph", [False, True])
    def test_a_filter_that_goes_against_the_topic_starves_nobody(self, engine: Engine, graph: bool) -> None:
        hand = Hand(engine).begin()
        topics = [" ".join(f"topic{topic}word{word}" for word in range(4)) for topic in range(30)]
        hand.publish(
            *(
                hand.asset(f"{n % 30:02}-{n}", f"{topics[n % 30]} own{n}", postings={}, workspaces=(f"w{n % 30}",))
                for n in range(1200)
            )
        )
        hand.verify(exact_scan_rows=0)
        scope = scope_of(engine, filters=Filters(workspace=("w7",)))
        for topic in (7, 8, 21):
            text = f"{topics[topic]} own{topic}"
            everything = ask(engine, hand, text, scope, keywords=NO_WORDS, pool_size=1200)
            assert len(everything) == 40
            best = sorted(everything, key=lambda item: (-(item.best_cosine or 0), item.id))[:20]
            found = ask(engine, hand, text, scope, keywords=NO_WORDS, pool_size=60, graph=graph)
            assert {item.id for item in found} >= {item.id for item in best}

    def test_an_asset_of_many_chunks_leaves_places_for_others(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(
            hand.asset("wide", *(f"alpha beta gamma {n}" for n in range(120)), postings={}),
            *(hand.asset(f"narrow-{n}", f"alpha delta {n}", postings={}) for n in range(60)),
        )
        hand.verify(exact_scan_rows=0)
        found = ask(engine, hand, "alpha beta gamma", scope_of(engine), keywords=NO_WORDS, pool_size=20, graph=True)
        assert "wide" in ids(found)
        assert len(found) >= 10

    def test_asking_twice_gives_the_same(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(*(hand.asset(f"a{number}", f"text {number % 3}", name="same") for number in range(9)))
        hand.verify()
        keywords = keyword_query("same text", frequencies(engine, ["same", "text"]), 9)
        first, second = (
            sorted(ask(engine, hand, "same text", scope_of(engine), keywords=keywords), key=lambda item: item.id)
            for _ in range(2)
        )
        assert first == second
