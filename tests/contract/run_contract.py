"""Runs, the lease that fences them, and sources."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from services.errors import PermanentError, RefreshInProgress, RunFenced
from services.index.run_store import LeaseHolder, RunKind, SourceEntry
from services.index.store import QuarantineEntry
from services.trust.gate import GateThresholds
from tests.contract.engine import Engine, Hand, alive, dead, record

ZOMBIE = "run-zombie"

# Every method that writes, as a zombie would call it.
WRITES: dict[str, Callable[[Hand], object]] = {
    "merge": lambda hand: hand.engine.stores.records.merge(ZOMBIE, "shop", overlay=False, records=[record("b")]),
    "quarantine": lambda hand: hand.engine.stores.records.quarantine(
        ZOMBIE, [QuarantineEntry("shop", "line 1", "extract", "bad")]
    ),
    "resolve_quarantine": lambda hand: hand.engine.stores.records.resolve_quarantine(ZOMBIE, "extract", None),
    "stage": lambda hand: hand.engine.stores.drafts.stage(ZOMBIE, [hand.asset("b", "text").draft]),
    "set_composed": lambda hand: hand.engine.stores.drafts.set_composed(
        ZOMBIE, {hand.asset("a", "x").key: hand.asset("a", "another text").composed}
    ),
    "add_vectors": lambda hand: hand.engine.stores.embeddings.add_vectors(
        ZOMBIE, ["ab" * 32], np.ones((1, hand.embedder.identity.dimension), dtype=np.float32)
    ),
    "publish": lambda hand: hand.engine.stores.embeddings.publish(ZOMBIE, hand.version, [hand.asset("a", "x").key]),
    "verify": lambda hand: hand.engine.stores.embeddings.verify(ZOMBIE, hand.version, 10),
    "set_scores": lambda hand: hand.engine.stores.scores.set_scores(ZOMBIE, {}, []),
    "recompose_drafts": lambda hand: hand.engine.stores.scores.recompose_drafts(ZOMBIE, "others", GateThresholds()),
    "set_verdicts": lambda hand: hand.engine.stores.scores.set_verdicts(ZOMBIE, hand.version, {}),
    "keep_histogram": lambda hand: hand.engine.stores.history.keep_histogram(ZOMBIE),
    "count": lambda hand: hand.engine.stores.runs.count(ZOMBIE, "shop", {"seen": 1}),
    "end_listing": lambda hand: hand.engine.stores.runs.end_listing(ZOMBIE, "shop", "complete", ""),
}


class RunContract:
    """Needs the fixture `engine`."""

    def test_a_run_is_known_from_its_begin_to_its_end(self, engine: Engine) -> None:
        runs = engine.stores.runs
        assert runs.begin("r1", "process:h:1:1", ["b", "a"], full=True, dry_run=False, is_dead=alive) == "r1"
        run = runs.run("r1")
        assert (run.status, run.sources, run.full, run.dry_run) == ("running", ("b", "a"), True, False)
        assert run.kind is RunKind.REFRESH
        assert (run.finished_at, run.index_version, run.error) == (None, None, None)
        assert run.seconds >= 0
        runs.end("r1", "incomplete", error="source 'a' failed", version=3)
        ended = runs.run("r1")
        assert (ended.status, ended.error, ended.index_version) == ("incomplete", "source 'a' failed", 3)
        assert ended.finished_at is not None

    def test_a_run_that_ended_stays_as_it_ended(self, engine: Engine) -> None:
        runs = engine.stores.runs
        runs.begin("r1", "process:h:1:1", ["a"], full=False, dry_run=False, is_dead=alive)
        runs.end("r1", "succeeded", error=None, version=1)
        runs.end("r1", "failed", error="too late", version=None)
        assert (runs.run("r1").status, runs.run("r1").error) == ("succeeded", None)

    def test_an_unknown_run_is_named(self, engine: Engine) -> None:
        with pytest.raises(PermanentError, match="no run 'r9'"):
            engine.stores.runs.run("r9")

    def test_counts_are_replaced_when_a_stage_runs_again_and_added_up_over_batches(self, engine: Engine) -> None:
        runs = engine.stores.runs
        runs.begin("r1", "process:h:1:1", ["a"], full=False, dry_run=False, is_dead=alive)
        runs.count("r1", "a", {"seen": 5, "changed": 2})
        runs.count("r1", "a", {"seen": 7})
        runs.count("r1", "a", {"embedded": 3}, add=True)
        runs.count("r1", "a", {"embedded": 4}, add=True)
        runs.count("r1", "b", {"seen": 1})
        assert runs.run("r1").counts == {"a": {"seen": 7, "changed": 2, "embedded": 7}, "b": {"seen": 1}}

    def test_a_listing_that_is_tried_again_is_told_as_it_ended_last(self, engine: Engine) -> None:
        runs = engine.stores.runs
        runs.begin("r1", "process:h:1:1", ["a"], full=False, dry_run=False, is_dead=alive)
        runs.end_listing("r1", "a", "failed", "gone")
        runs.end_listing("r1", "a", "complete", "")
        listing = runs.run("r1").listings["a"]
        assert (listing.outcome, listing.detail) == ("complete", "")

    def test_the_latest_runs_come_first(self, engine: Engine) -> None:
        runs = engine.stores.runs
        for number in range(4):
            runs.begin(f"r{number}", "process:h:1:1", ["a"], full=False, dry_run=False, is_dead=alive)
            runs.end(f"r{number}", "succeeded", error=None, version=1)
        assert [run.run_id for run in runs.recent(3)] == ["r3", "r2", "r1"]

    def test_a_second_refresh_is_refused_and_told_who_runs(self, engine: Engine) -> None:
        runs = engine.stores.runs
        runs.begin("r1", "process:hostname:1:1", ["a"], full=False, dry_run=False, is_dead=alive)
        asked: list[LeaseHolder] = []

        def is_dead(held: LeaseHolder) -> bool:
            asked.append(held)
            return False

        with pytest.raises(RefreshInProgress, match=r"refresh r1 .*process:hostname:1:1"):
            runs.begin("r2", "process:hostname:2:2", ["a"], full=False, dry_run=False, is_dead=is_dead)
        assert asked[0].run_id == "r1"
        assert asked[0].holder == "process:hostname:1:1"
        assert 0 <= asked[0].silent_seconds < 60
        with pytest.raises(PermanentError):
            runs.run("r2")

    def test_the_lease_is_free_once_a_run_has_ended(self, engine: Engine) -> None:
        runs = engine.stores.runs
        runs.begin("r1", "process:h:1:1", ["a"], full=False, dry_run=False, is_dead=alive)
        runs.end("r1", "failed", error="x", version=None)
        assert runs.begin("r2", "process:h:2:2", ["a"], full=False, dry_run=False, is_dead=alive) == "r2"

    def test_a_dead_run_is_taken_over_and_marked(self, engine: Engine) -> None:
        runs = engine.stores.runs
        runs.begin("r1", "process:h:1:1", ["a"], full=False, dry_run=False, is_dead=alive)
        assert runs.begin("r2", "process:h:2:2", ["a"], full=False, dry_run=False, is_dead=dead) == "r2"
        assert runs.run("r1").status == "abandoned"
        assert runs.run("r1").finished_at is not None
        # The one that was taken over for dead cannot free the lease of its successor.
        runs.end("r1", "succeeded", error=None, version=1)
        with pytest.raises(RefreshInProgress, match="r2"):
            runs.begin("r3", "process:h:3:3", ["a"], full=False, dry_run=False, is_dead=alive)

    def test_the_same_holder_goes_on_with_its_run(self, engine: Engine) -> None:
        runs = engine.stores.runs
        runs.begin("r1", "airflow:dag:1", ["a"], full=False, dry_run=False, is_dead=alive)
        assert runs.begin("r2", "airflow:dag:1", ["a"], full=False, dry_run=False, is_dead=alive) == "r1"

    @pytest.mark.parametrize(
        "other", [{"dry_run": True}, {"full": True}, {"sources": ["a", "b"]}, {"kind": RunKind.REEVALUATION}]
    )
    def test_the_same_holder_asking_for_something_else_does_not_get_its_old_run(
        self, engine: Engine, other: dict[str, object]
    ) -> None:
        runs = engine.stores.runs
        asked = {"sources": ["a"], "full": False, "dry_run": False}
        runs.begin("r1", "airflow:dag:1", is_dead=alive, **asked)  # type: ignore[arg-type]
        with pytest.raises(RefreshInProgress):
            runs.begin("r2", "airflow:dag:1", is_dead=alive, **{**asked, **other})  # type: ignore[arg-type]
        assert runs.begin("r2", "airflow:dag:1", is_dead=dead, **{**asked, **other}) == "r2"  # type: ignore[arg-type]

    def test_of_many_that_begin_at_once_one_wins(self, engine: Engine) -> None:
        runs = engine.stores.runs
        start = threading.Barrier(4)

        def begin(number: int) -> str | None:
            start.wait()
            try:
                holder = f"process:h:{number}:1"
                return runs.begin(f"r{number}", holder, ["a"], full=False, dry_run=False, is_dead=alive)
            except RefreshInProgress:
                return None

        with ThreadPoolExecutor(4) as pool:
            winners = [run_id for run_id in pool.map(begin, range(4)) if run_id]
        assert len(winners) == 1
        assert [run.run_id for run in runs.recent(10)] == winners

    def test_a_second_refresh_is_refused_at_once_while_a_rehearsal_is_under_way(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        with engine.stores.rehearsal() as rehearsed, ThreadPoolExecutor(1) as pool:
            rehearsed.records.merge(hand.run_id, "shop", overlay=False, records=[record("a")])
            runs = engine.stores.runs
            begun = pool.submit(runs.begin, "r2", "process:h:2:2", ["a"], full=False, dry_run=False, is_dead=alive)
            with pytest.raises(RefreshInProgress):
                begun.result(timeout=5)

    def test_a_run_may_tell_how_far_it_is_while_it_rehearses(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        with engine.stores.rehearsal() as rehearsed, ThreadPoolExecutor(1) as pool:
            rehearsed.records.merge(hand.run_id, "shop", overlay=False, records=[record("a")])
            pool.submit(engine.stores.runs.count, hand.run_id, "shop", {"seen": 500}).result(timeout=5)
        assert engine.stores.runs.run(hand.run_id).counts == {"shop": {"seen": 500}}

    @pytest.mark.parametrize("method", WRITES)
    def test_a_zombie_cannot_write(self, engine: Engine, method: str) -> None:
        stores = engine.stores
        stores.runs.begin(ZOMBIE, "process:h:1:1", ["shop"], full=False, dry_run=False, is_dead=alive)
        hand = Hand(engine, run_id=ZOMBIE, holder="process:h:1:1").begin()
        hand.prepare([hand.asset("a", "one text")])
        hand.embed_missing()
        stores.records.quarantine(ZOMBIE, [QuarantineEntry("shop", "line 7", "extract", "bad")])
        stores.runs.begin("r2", "process:h:2:2", ["shop"], full=False, dry_run=False, is_dead=dead)
        stores.records.quarantine("r2", [QuarantineEntry("shop", "line 8", "extract", "bad")])
        with pytest.raises(RunFenced, match="run-zombie no longer holds the lease"):
            WRITES[method](hand)
        assert stores.records.keys("shop").size == 0
        assert {item["record_ref"] for item in stores.records.quarantined(10)} == {"line 7", "line 8"}
        assert stores.drafts.drafted() == {"shop": 1}
        assert stores.drafts.publishable("shop", -1, 10) == (hand.asset("a", "x").key,)
        assert engine.search_store.corpus().assets == 0
        assert engine.search_store.corpus().version is None
        assert stores.runs.run(ZOMBIE).counts == {}
        assert stores.runs.run(ZOMBIE).listings == {}

    def test_a_zombie_cannot_write_in_a_rehearsal_either(self, engine: Engine) -> None:
        stores = engine.stores
        stores.runs.begin(ZOMBIE, "process:h:1:1", ["shop"], full=False, dry_run=True, is_dead=alive)
        stores.runs.begin("r2", "process:h:2:2", ["shop"], full=False, dry_run=False, is_dead=dead)
        with stores.rehearsal() as rehearsed, pytest.raises(RunFenced):
            rehearsed.records.merge(ZOMBIE, "shop", overlay=False, records=[record("a")])

    def test_sources_are_told_with_their_records_and_their_last_listing(self, engine: Engine) -> None:
        stores = engine.stores
        stores.sources.put_sources(
            [SourceEntry("team", "jsonl", True, "/team.jsonl"), SourceEntry("shop", "postgres", False, None)]
        )
        shop, team = stores.sources.sources()
        assert (shop["name"], shop["kind"], shop["overlay"], shop["records"]) == ("shop", "postgres", False, 0)
        assert (team["name"], team["path"], team["overlay"]) == ("team", "/team.jsonl", True)
        assert (shop["run_id"], shop["data_age_seconds"]) == (None, None)
        hand = Hand(engine).begin()
        stores.records.merge(hand.run_id, "shop", overlay=False, records=[record("a"), record("b")])
        stores.runs.count(hand.run_id, "shop", {"seen": 2})
        stores.runs.end_listing(hand.run_id, "shop", "complete", "")
        hand.end()
        shop, team = stores.sources.sources()
        assert (shop["records"], shop["run_id"], shop["outcome"]) == (2, hand.run_id, "complete")
        assert shop["counts"] == {"seen": 2}
        assert 0 <= shop["data_age_seconds"] < 60
        assert (team["records"], team["data_age_seconds"]) == (0, None)

    def test_a_failed_listing_makes_no_data_younger(self, engine: Engine) -> None:
        stores = engine.stores
        stores.sources.put_sources([SourceEntry("shop", "postgres", False, None)])
        hand = Hand(engine).begin()
        stores.runs.end_listing(hand.run_id, "shop", "failed", "gone")
        stores.runs.end(hand.run_id, "incomplete", error="x", version=None)
        (shop,) = stores.sources.sources()
        assert (shop["outcome"], shop["detail"], shop["data_age_seconds"]) == ("failed", "gone", None)

    def test_a_source_is_replaced_by_its_name(self, engine: Engine) -> None:
        sources = engine.stores.sources
        sources.put_sources([SourceEntry("shop", "postgres", False, None)])
        sources.put_sources([SourceEntry("shop", "jsonl", True, "/x", registered=True)])
        (shop,) = sources.sources()
        assert (shop["kind"], shop["overlay"], shop["path"], shop["registered"]) == ("jsonl", True, "/x", True)
