"""The vector cache, publishing, corpus statistics and index versions."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from services.catalog.model import asset_key
from services.index.identity import content_hash
from services.retrieval.keyword import KeywordQuery
from services.retrieval.model import Filters
from services.retrieval.ranking import Candidate
from services.retrieval.store import Question, Scope
from tests.contract.engine import Engine, Hand, Written, frequencies
from tests.embedders import HashEmbedder

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def all_acl_ids(engine: Engine) -> tuple[int, ...]:
    return tuple(acl_id for _, acl_id, _ in engine.search_store.access_lists(0))


def everything(engine: Engine) -> Scope:
    return Scope(all_acl_ids(engine), eligible_only=False, object_types=(), filters=Filters(), now=NOW)


def nearest(engine: Engine, hand: Hand, text: str, version: int | None = None) -> dict[str, Candidate]:
    """The candidates for a question of no known words, by id."""
    question = Question(hand.embedder.embed_query(text), KeywordQuery((), 0.0, ""), mean_length=1.0, pool_size=100)
    found = engine.search_store.candidates(version or hand.version, question, everything(engine))
    return {candidate.id: candidate for candidate in found}


def assert_statistics_are_exact(engine: Engine, items: Iterable[Written]) -> None:
    """Corpus totals and document frequencies as counted from scratch over what is published."""
    published = list(items)
    corpus = engine.search_store.corpus()
    assert corpus.assets == len(published)
    # Stored lengths are single precision; adding them up must lose nothing more.
    lengths = [float(np.float32(item.composed.keyword_length)) for item in published]
    assert corpus.mean_length * corpus.assets == pytest.approx(sum(lengths), rel=1e-12)
    counted = Counter(term for item in published for term in item.composed.postings)
    assert frequencies(engine, ["table", "unknown", "old", "new", *counted]) == dict(counted)


class PublishContract:
    """Needs the fixture `engine`."""

    def test_texts_without_a_vector_are_told_per_asset_and_each_once(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        a, b = hand.asset("a", "one", "two"), hand.asset("b", "two", "three", source="team")
        hand.prepare([a, b])
        embeddings = engine.stores.embeddings
        assert list(embeddings.missing_texts()) == [("shop", a.key, 2), ("team", b.key, 2)]
        assert embeddings.texts("shop", a.key, a.key) == {
            content_hash(text, hand.embedder.identity): text for text in ("one", "two")
        }
        assert embeddings.texts("shop", b.key, b.key) == {}
        assert hand.embed_missing() == 3
        assert list(embeddings.missing_texts()) == []
        assert embeddings.texts("shop", 0, 2**63 - 1) == {}
        assert embeddings.cached_texts() == {"shop": 2, "team": 2}

    def test_a_vector_that_another_batch_brought_is_kept(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.prepare([hand.asset("a", "one"), hand.asset("b", "two")])
        hashes = [content_hash(text, hand.embedder.identity) for text in ("one", "two")]
        first, second = hand.embedder.embed_documents(["one", "two"])
        add = engine.stores.embeddings.add_vectors
        assert add(hand.run_id, hashes[:1], first[None]) == 1
        assert add(hand.run_id, hashes, np.stack([second, second])) == 1
        hand.publish_prepared()
        assert nearest(engine, hand, "one")["a"].best_cosine == pytest.approx(1, abs=1e-6)

    def test_only_drafts_that_miss_nothing_are_publishable(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        items = [hand.asset("a", "one"), hand.asset("b", "one", "missing"), hand.asset("c", "missing", eligible=False)]
        hand.prepare(items)
        engine.stores.drafts.stage(hand.run_id, [hand.asset("uncomposed", "one").draft])
        vectors = hand.embedder.embed_documents(["one"])
        engine.stores.embeddings.add_vectors(hand.run_id, [content_hash("one", hand.embedder.identity)], vectors)
        ready = engine.stores.drafts.publishable("shop", -1, 10)
        assert ready == tuple(sorted((items[0].key, items[2].key)))
        assert engine.stores.drafts.publishable("shop", ready[0], 10) == ready[1:]
        assert engine.stores.drafts.publishable("shop", -1, 1) == ready[:1]
        assert engine.stores.drafts.publishable("team", -1, 10) == ()

    def test_a_published_asset_is_there_in_full(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        item = hand.asset("a", "first part", "second part", name="orders", title="Orders", shape=7, siblings=(5, 6))
        assert hand.publish(item) > 0
        assert engine.stores.drafts.drafted() == {}
        stored = engine.asset_store.asset("a", hand.version, all_acl_ids(engine))
        assert stored is not None
        assert stored.payload == item.draft.payload
        assert stored.narrative == item.composed.narrative
        assert stored.chunks == ((0, "part 0", "first part"), (1, "part 1", "second part"))
        assert (stored.curation_score, stored.eligible) == (50.0, True)
        assert stored.eligibility_reasons == item.composed.eligibility_reasons
        candidate = nearest(engine, hand, "second part")["a"]
        assert candidate.chunk_number == 1
        assert candidate.best_cosine == pytest.approx(1, abs=1e-6)
        assert (candidate.shape, candidate.siblings) == (7, (5, 6))

    def test_publishing_the_same_again_writes_nothing(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        items = [
            hand.asset(
                "a", "one", "two", certification_expires_at="2027-01-01T00:00:00+02:00", data_quality_percent=1 / 3
            ),
            hand.asset("b", "three", eligible=False, shape=1, tags=("x",), critical=False),
        ]
        assert hand.publish(*items) > 0
        assert hand.publish(*items) == 0

    def test_only_rows_that_differ_are_written(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        item = hand.asset("a", "one", "two", postings={"old": 1.0, "kept": 2.0})
        hand.publish(item)
        scored = replace(item, composed=replace(item.composed, curation_score=51.0))
        assert hand.publish(scored) == 1
        words = replace(scored, composed=replace(scored.composed, postings={"new": 1.0, "kept": 2.0}))
        assert hand.publish(words) == 2

    def test_changed_chunks_replace_theirs_and_surplus_ones_go(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(hand.asset("a", "one", "two", "three"))
        embedded = hand.embedder.calls
        hand.publish(hand.asset("a", "one", "changed"))
        assert hand.embedder.calls == embedded + 1
        assert hand.embedder.texts[-1] == "changed"
        stored = engine.asset_store.asset("a", hand.version, all_acl_ids(engine))
        assert stored is not None
        assert [text for _, _, text in stored.chunks] == ["one", "changed"]
        three = nearest(engine, hand, "three")["a"]
        assert three.best_cosine is not None and three.best_cosine < 0.99
        assert nearest(engine, hand, "changed")["a"].best_cosine == pytest.approx(1, abs=1e-6)

    def test_chunks_that_change_places_keep_their_own_vectors(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(hand.asset("a", "one", "two"))
        hand.publish(hand.asset("a", "two", "one"))
        assert hand.embedder.texts == ["one", "two"] or hand.embedder.texts == ["two", "one"]
        assert nearest(engine, hand, "one")["a"].chunk_number == 1
        assert nearest(engine, hand, "two")["a"].chunk_number == 0

    def test_statistics_stay_exact_through_every_change(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        a = hand.asset("a", "x", postings={"old": 0.1, "shared": 2.2})
        b = hand.asset("b", "y", postings={"old": 0.3, "shared": 1 / 3})
        hand.publish(a, b)
        assert_statistics_are_exact(engine, [a, b])
        hand.publish(a, b)
        assert_statistics_are_exact(engine, [a, b])
        a = hand.asset("a", "x", postings={"new": 0.7, "shared": 2.2})
        hand.publish(a)
        assert_statistics_are_exact(engine, [a, b])
        b = hand.asset("b", "y", postings={})
        c = hand.asset("c", "z", postings={"new": 1e6, "shared": 0.1})
        hand.publish(b, c)
        assert_statistics_are_exact(engine, [a, b, c])
        hand.publish(hand.asset("b", "y", eligible=False, postings={}))
        assert_statistics_are_exact(engine, [a, b, c])

    def test_statistics_of_a_large_corpus_lose_nothing_to_rounding(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        items = [hand.asset(f"asset-{n}", "x", postings={"w": 1000 + n / 7}, eligible=False) for n in range(300)]
        hand.publish(*items)
        changed = [hand.asset(f"asset-{n}", "x", postings={"w": 3000 + n / 9}, eligible=False) for n in range(150)]
        hand.publish(*changed)
        assert_statistics_are_exact(engine, [*changed, *items[150:]])

    def test_an_asset_that_is_not_eligible_leaves_the_vectors_and_stays_findable_by_word(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        item = hand.asset("a", "one", "two", postings={"word": 1.0})
        hand.publish(item)
        hand.publish(replace(item, composed=replace(item.composed, eligible=False)))
        assert nearest(engine, hand, "one") == {}
        assert frequencies(engine, ["word"]) == {"word": 1}
        stored = engine.asset_store.asset("a", hand.version, all_acl_ids(engine))
        assert stored is not None
        assert len(stored.chunks) == 2
        assert stored.eligible is False
        assert hand.verify() == {}

    def test_an_asset_that_comes_back_is_not_embedded_again(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        item = hand.asset("a", "one", "two")
        hand.publish(item)
        texts = list(hand.embedder.texts)
        hand.publish(replace(item, composed=replace(item.composed, eligible=False)))
        hand.publish(item)
        assert hand.embedder.texts == texts
        two = nearest(engine, hand, "two")["a"]
        assert two.best_cosine == pytest.approx(1, abs=1e-6)
        assert hand.verify() == {}

    def test_a_text_that_changed_while_its_asset_was_out_comes_back_with_its_own_vector(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(hand.asset("a", "one"))
        hand.publish(hand.asset("a", "two", eligible=False))
        hand.publish(hand.asset("a", "two"))
        assert nearest(engine, hand, "two")["a"].best_cosine == pytest.approx(1, abs=1e-6)
        assert hand.verify() == {}

    def test_a_reader_sees_an_asset_whole_while_it_is_published(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        states = [
            hand.asset("a", "red text", "red more", name="red", curation_score=1.0, shape=1),
            hand.asset("a", "blue text", name="blue", curation_score=2.0, shape=2, eligible=True),
        ]
        hand.publish(states[0])
        acl_ids = all_acl_ids(engine)
        stop = threading.Event()
        seen: Counter[tuple[str, ...]] = Counter()

        def read() -> None:
            while not stop.is_set():
                stored = engine.asset_store.asset("a", hand.version, acl_ids)
                assert stored is not None
                colours = [stored.payload["name"], stored.narrative.split()[0]]
                colours += [text.split()[0] for _, _, text in stored.chunks]
                colours.append("red" if stored.curation_score == 1.0 else "blue")
                seen[tuple(sorted(set(colours)))] += 1
                found = nearest(engine, hand, "red text")["a"]
                closest = "red" if (found.best_cosine or 0) > 0.99 else "blue"
                told = "red" if found.shape == 1 else "blue"
                seen[tuple({closest, told})] += 1

        with ThreadPoolExecutor(2) as pool:
            readers = [pool.submit(read) for _ in range(2)]
            for turn in range(40):
                hand.publish(states[(turn + 1) % 2])
            stop.set()
            for reader in readers:
                reader.result()
        assert set(seen) == {("red",), ("blue",)}

    def test_a_model_has_one_version_and_another_model_another(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        ensure = engine.stores.embeddings.ensure_version
        assert ensure(hand.embedder.identity) == hand.version
        other = HashEmbedder(model_id="other")
        assert ensure(other.identity) != hand.version
        assert ensure(replace(hand.embedder.identity, revision="newer")) not in (hand.version, ensure(other.identity))

    def test_many_that_ask_for_a_new_version_at_once_get_the_same(self, engine: Engine) -> None:
        identity = HashEmbedder().identity
        with ThreadPoolExecutor(4) as pool:
            versions = set(pool.map(engine.stores.embeddings.ensure_version, [identity] * 4))
        assert len(versions) == 1

    def test_nothing_is_answered_from_a_version_before_it_is_verified(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(hand.asset("a", "one"))
        assert engine.search_store.corpus().version is None
        assert hand.verify() == {}
        assert engine.search_store.corpus().version == hand.version
        assert engine.search_store.corpus().model == hand.embedder.identity

    def test_a_new_model_is_built_beside_the_old_one_and_promoted_when_it_is_whole(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        items = [hand.asset(name, f"text of {name}") for name in "ab"]
        hand.publish(*items)
        hand.verify()
        hand.end()
        new = Hand(engine, HashEmbedder(16, model_id="new"), run_id="run-2").begin()
        renewed = [new.asset(name, f"text of {name}") for name in "ab"]
        new.publish(renewed[0])
        # Half built: the old one answers, in full.
        assert new.verify() == {"eligible_without_vector": 1}
        assert engine.search_store.corpus().version == hand.version
        assert sorted(nearest(engine, hand, "text of b")) == ["a", "b"]
        new.publish(renewed[1])
        assert new.verify() == {}
        assert engine.search_store.corpus().version == new.version
        assert engine.search_store.corpus().model == new.embedder.identity
        assert nearest(engine, new, "text of b")["b"].best_cosine == pytest.approx(1, abs=1e-6)
        # The old one stays as it was, for a rollback that embeds nothing.
        assert nearest(engine, hand, "text of b")["b"].best_cosine == pytest.approx(1, abs=1e-6)
        back = Hand(engine, hand.embedder, run_id="run-2", holder=new.holder).begin()
        assert back.version == hand.version
        texts = list(hand.embedder.texts)
        back.publish(*items)
        assert back.verify() == {}
        assert hand.embedder.texts == texts
        assert engine.search_store.corpus().version == hand.version

    def test_a_version_with_a_graph_index_goes_on_being_published_to(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(*(hand.asset(f"asset-{number}", f"text {number}") for number in range(20)))
        assert hand.verify(exact_scan_rows=5) == {}
        assert hand.verify(exact_scan_rows=5) == {}
        hand.publish(hand.asset("asset-3", "changed words"), hand.asset("new", "new words"))
        assert hand.verify(exact_scan_rows=5) == {}
        question = Question(hand.embedder.embed_query("changed words"), KeywordQuery((), 0.0, ""), 1.0, 10)
        found = engine.graph_search_store.candidates(hand.version, question, everything(engine))
        best = max(found, key=lambda candidate: candidate.best_cosine or 0)
        assert (best.id, best.asset_key) == ("asset-3", asset_key("asset-3"))
