"""The trend of golden queries and their baselines, whichever engine keeps them.

An engine's test class inherits `EvaluationContract` and gives the fixture `engine`.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier

import pytest

from services.errors import PermanentError
from services.evaluation.quality import (
    AnsweredQuery,
    Decision,
    EvaluationStatus,
    QualityVerdict,
    QueryOutcome,
    compare,
    decide,
)
from services.evaluation.store import Evaluation, PastQuery
from tests.contract.engine import Engine, Hand

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MANY = 100
MEASURES = {"queries": 2, "recall@5": 0.5, "complete_recall@5": 0.25, "mrr": 0.125, "ndcg@10": 0.75}


def answered(
    digest: str, ndcg: float = 1.0, ranks: Mapping[str, int | None] | None = None, top: tuple[str, ...] = ("a", "b")
) -> AnsweredQuery:
    return AnsweredQuery(digest, f"qid of {digest}", "where?", QueryOutcome(ndcg, ranks or {"a": 1}, top))


def evaluation(number: int, *queries: AnsweredQuery, version: int = 1) -> Evaluation:
    """A run; a higher number is a later one."""
    moment = NOON + timedelta(minutes=number)
    return Evaluation(f"evaluation-{number:03}", moment, version, "these questions", MEASURES, queries)


def as_decided(status: EvaluationStatus, verdict: QualityVerdict, *raised: str) -> Decision:
    return Decision(status, verdict, frozenset(raised))


def record(engine: Engine, item: Evaluation, kept: int = MANY, *, accept: bool = False) -> Decision:
    return engine.evaluation_store.record(item, lambda before: decide(before, item.answered, accept=accept), kept)


def baselines(engine: Engine, *digests: str) -> dict[str, QueryOutcome]:
    """What a run of these queries would be held against; nothing is kept of the look."""
    seen: dict[str, QueryOutcome] = {}

    class Looked(Exception):
        pass

    def look(before: Mapping[str, QueryOutcome]) -> Decision:
        seen.update(before)
        raise Looked

    with pytest.raises(Looked):
        engine.evaluation_store.record(evaluation(999, *map(answered, digests)), look, MANY)
    return seen


class EvaluationContract:
    """Needs the fixture `engine`."""

    def test_a_run_comes_back_as_it_was_kept(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(hand.asset("a", "text"))
        hand.verify()
        hand.end()
        queries = (answered("z", 0.5, {"a": 1, "b": None}), answered("y", 0.25, {"ö 'x\"": 12}))
        record(engine, evaluation(1, answered("z"), answered("y")))
        record(engine, evaluation(2, *queries, version=hand.version))
        later, first = engine.evaluation_store.recent(10)
        assert (later.evaluation_id, first.evaluation_id) == ("evaluation-002", "evaluation-001")
        assert later.evaluated_at == NOON + timedelta(minutes=2)
        assert (later.index_version, later.model_id) == (hand.version, hand.embedder.identity.model_id)
        assert (later.run_id, later.question_set) == ("run-1", "these questions")
        assert list(later.measures.items()) == list(MEASURES.items())
        assert (later.status, later.compared) == (EvaluationStatus.FELL, 2)
        assert (later.ndcg_before, later.ndcg_after) == (1.0, 0.375)
        assert later.fallen == ("qid of y", "qid of z")
        assert later.queries == (
            PastQuery("qid of y", 0.25, {"ö 'x\"": 12}),
            PastQuery("qid of z", 0.5, {"a": 1, "b": None}),
        )
        assert (first.status, first.compared, first.ndcg_before) == (EvaluationStatus.FIRST, 0, None)

    def test_a_run_before_any_index_and_of_an_unknown_version_is_kept_too(self, engine: Engine) -> None:
        record(engine, evaluation(1, answered("q"), version=77))
        (run,) = engine.evaluation_store.recent(10)
        assert (run.index_version, run.model_id, run.run_id) == (77, None, None)

    def test_only_a_run_that_published_counts_as_the_last(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(hand.asset("a", "text"))
        hand.verify()
        hand.end()
        for run_id, dry_run, status in (("run-2", False, "failed"), ("run-3", True, "succeeded")):
            runs = engine.stores.runs
            runs.begin(run_id, f"process:{run_id}:1:1", [], full=False, dry_run=dry_run, is_dead=lambda _held: False)
            runs.end(run_id, status, error=None, version=None)
        record(engine, evaluation(1, answered("q")))
        assert engine.evaluation_store.recent(1)[0].run_id == "run-1"

    def test_the_decision_sees_the_baselines_of_its_own_queries_alone(self, engine: Engine) -> None:
        outcome = QueryOutcome(0.5, {"a": 2, "b": None}, ('x, "y"', "a"))
        query = AnsweredQuery("one", "q", "where?", outcome)
        record(engine, evaluation(1, query, answered("two")))
        assert baselines(engine, "one", "unknown") == {"one": outcome}

    def test_what_the_decision_raises_becomes_the_baseline_and_the_rest_stays(self, engine: Engine) -> None:
        first = evaluation(1, answered("one", 0.5), answered("two", 0.5))
        record(engine, first)
        second = evaluation(2, answered("one", 0.6), answered("two", 0.7), answered("three", 0.8))
        engine.evaluation_store.record(
            second,
            lambda before: as_decided(EvaluationStatus.PASSED, compare(before, second.answered), "one", "three"),
            MANY,
        )
        found = baselines(engine, "one", "two", "three")
        assert {digest: outcome.ndcg for digest, outcome in found.items()} == {"one": 0.6, "two": 0.5, "three": 0.8}

    def test_a_run_that_fell_is_kept_and_changes_no_baseline(self, engine: Engine) -> None:
        record(engine, evaluation(1, answered("one", 0.9)))
        assert record(engine, evaluation(2, answered("one", 0.1))).status is EvaluationStatus.FELL
        assert baselines(engine, "one")["one"].ndcg == 0.9
        assert [run.status.value for run in engine.evaluation_store.recent(10)] == ["fell", "first"]
        assert record(engine, evaluation(3, answered("one", 0.1)), accept=True).status is EvaluationStatus.ACCEPTED
        assert baselines(engine, "one")["one"].ndcg == 0.1

    def test_a_decision_that_fails_leaves_nothing(self, engine: Engine) -> None:
        def fail(_before: Mapping[str, QueryOutcome]) -> Decision:
            raise PermanentError("no")

        with pytest.raises(PermanentError, match="no"):
            engine.evaluation_store.record(evaluation(1, answered("one")), fail, MANY)
        assert engine.evaluation_store.recent(10) == ()

    def test_only_the_latest_runs_are_kept_and_the_baseline_outlives_the_run_that_set_it(self, engine: Engine) -> None:
        record(engine, evaluation(1, answered("one", 0.9), answered("gone", 0.9)))
        for number in range(2, 6):
            record(engine, evaluation(number, answered("one", 0.89)), kept=3)
        assert [run.evaluation_id[-1] for run in engine.evaluation_store.recent(10)] == ["5", "4", "3"]
        found = baselines(engine, "one", "gone")
        assert {digest: outcome.ndcg for digest, outcome in found.items()} == {"one": 0.9}

    def test_recent_is_bounded(self, engine: Engine) -> None:
        for number in range(3):
            record(engine, evaluation(number, answered("one")))
        assert [run.evaluation_id[-1] for run in engine.evaluation_store.recent(2)] == ["2", "1"]

    def test_of_runs_at_the_same_time_each_decides_by_what_the_others_left(self, engine: Engine) -> None:
        levels = (0.1, 0.3, 0.5, 0.7)
        start = Barrier(len(levels))

        def run(number: int) -> EvaluationStatus:
            start.wait()
            return record(engine, evaluation(number, answered("one", levels[number]))).status

        with ThreadPoolExecutor(len(levels)) as pool:
            statuses = list(pool.map(run, range(len(levels))))
        assert statuses.count(EvaluationStatus.FIRST) == 1
        assert baselines(engine, "one")["one"].ndcg == max(levels)

    def test_published_ids_and_what_the_gate_says_of_them(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(hand.asset("in", "text"), hand.asset("below", "text", eligible=False))
        hand.prepare([hand.asset("drafted", "text")])
        asked = ["in", "below", "drafted", "unknown", "in"]
        assert engine.evaluation_store.eligible(asked) == {"in": True, "below": False}
        assert engine.evaluation_store.eligible([]) == {}
