"""The golden queries asked of the index, kept with their trend, and held against the best level there was."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from services.errors import PermanentError, TransientError
from services.evaluation.golden import Ask, GoldenQuery, ask_all, question_set
from services.evaluation.metrics import NDCG_DEPTH, Judged, ndcg_at, summary
from services.evaluation.quality import (
    RANKS_KEPT,
    AnsweredQuery,
    Decision,
    EvaluationStatus,
    QueryOutcome,
    decide,
    describe_fallen,
)
from services.evaluation.store import Evaluation, EvaluationStore, PastEvaluation
from services.retrieval.model import SearchAnswer, SearchRequest

EVALUATIONS_KEPT = 400  # more than a year of daily refreshes
RECALL_DEPTHS = (1, 5, 10)
GOLD_NAMED = 20  # in a message
HOW_TO_GO_ON = (
    "mend what has changed (vouch evaluate --trend shows since when), or take this level for the new baseline: trigger"
    " retrieval_evaluation with the param accept, or run: vouch evaluate --accept"
)

log = structlog.get_logger()

Progress = Callable[[int, int], None]


class QualityFell(PermanentError):
    """nDCG@10 fell by more than the limit; names the queries that fell, what overtook their gold, and the ways on."""


class IndexChanged(TransientError):
    """Another index version was promoted while the queries were asked."""


@dataclass(frozen=True)
class UnreachableGold:
    """A gold id that no ranking can hold, and the queries that want it: it is not in the index (any more), or the gate
    keeps it out of analysis."""

    id: str
    is_published: bool
    qids: tuple[str, ...]


@dataclass(frozen=True)
class Asked:
    """The queries with their rankings, in the same order, all from one index version."""

    queries: tuple[GoldenQuery, ...]
    judged: tuple[Judged, ...]
    index_version: int
    unreachable: tuple[UnreachableGold, ...]

    @property
    def answered(self) -> tuple[AnsweredQuery, ...]:
        """What `quality.compare` takes."""
        return tuple(map(_answered, self.queries, self.judged))


@dataclass(frozen=True)
class Checked:
    """A run that is kept, and what it was taken for."""

    evaluation: Evaluation
    decision: Decision
    unreachable: tuple[UnreachableGold, ...]

    @property
    def fell(self) -> bool:
        return self.decision.status is EvaluationStatus.FELL

    def report(self) -> dict[str, Any]:
        """Ids and numbers, as plain values."""
        verdict = self.decision.verdict
        return {
            "evaluation_id": self.evaluation.evaluation_id,
            "index_version": self.evaluation.index_version,
            "status": self.decision.status.value,
            "compared": verdict.compared,
            "ndcg_before": verdict.ndcg_before,
            "ndcg_after": verdict.ndcg_after,
            "fallen": [query.qid for query in verdict.fallen],
            "unreachable_gold": len(self.unreachable),
            "measures": dict(self.evaluation.measures),
        }

    def explanation(self) -> str:
        """What a person needs to act on a run that fell."""
        verdict = self.decision.verdict
        parts = [*verdict.reasons, "queries that fell:", *(f"  {line}" for line in describe_fallen(verdict.fallen))]
        if self.unreachable:
            parts += ["gold that cannot be found:", *(f"  {line}" for line in describe_unreachable(self.unreachable))]
        return "\n".join([*parts, HOW_TO_GO_ON])


class QualityCheck:
    """Asks, keeps and compares. Raises what the search raises, and StoreUnavailable."""

    def __init__(self, ask: Ask, store: EvaluationStore, now: Callable[[], datetime]) -> None:
        self._ask = ask
        self._store = store
        self._now = now

    def run(self, queries: Sequence[GoldenQuery], *, accept: bool) -> dict[str, Any]:
        """Ask the queries, keep the run, and return its report. Raises QualityFell, the run being kept all the same;
        with `accept` it becomes the baseline whatever came out."""
        checked = self.keep(self.ask(queries), accept=accept)
        if checked.fell:
            raise QualityFell(checked.explanation())
        return checked.report()

    def ask(
        self,
        queries: Sequence[GoldenQuery],
        *,
        sources: Sequence[str] = (),
        depth: int = RANKS_KEPT,
        progress: Progress = lambda _done, _total: None,
    ) -> Asked:
        """The rankings of now, `depth` results deep. Raises IndexChanged."""
        versions: set[int] = set()

        def ask(request: SearchRequest) -> SearchAnswer:
            answer = self._ask(request)
            versions.add(answer.index_version)
            return answer

        judged: list[Judged] = []
        for item in ask_all(queries, ask, sources=sources, depth=depth):
            judged.append(item)
            progress(len(judged), len(queries))
        if len(versions) != 1:
            raise IndexChanged(f"index versions {sorted(versions)} answered in turn: one was promoted; ask again")
        return Asked(tuple(queries), tuple(judged), versions.pop(), self._unreachable(queries))

    def keep(self, asked: Asked, *, accept: bool) -> Checked:
        """Keep a run, with what it is taken for by `quality.decide`."""
        evaluated_at = self._now()
        evaluation = Evaluation(
            evaluation_id=f"{evaluated_at:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}",
            evaluated_at=evaluated_at,
            index_version=asked.index_version,
            question_set=question_set(asked.queries),
            measures=summary([item.first(NDCG_DEPTH) for item in asked.judged], RECALL_DEPTHS),
            answered=asked.answered,
        )
        decision = self._store.record(
            evaluation, lambda before: decide(before, evaluation.answered, accept=accept), EVALUATIONS_KEPT
        )
        checked = Checked(evaluation, decision, asked.unreachable)
        log.info("golden queries evaluated", **checked.report())
        return checked

    def recent(self, limit: int) -> tuple[PastEvaluation, ...]:
        """The latest runs, newest first."""
        return self._store.recent(limit)

    def _unreachable(self, queries: Sequence[GoldenQuery]) -> tuple[UnreachableGold, ...]:
        wanted_by: dict[str, list[str]] = {}
        for query in queries:
            for gold in dict.fromkeys(query.gold):
                wanted_by.setdefault(gold, []).append(query.qid)
        eligible = self._store.eligible(list(wanted_by))
        return tuple(
            UnreachableGold(gold, gold in eligible, tuple(qids))
            for gold, qids in wanted_by.items()
            if not eligible.get(gold, False)
        )


def describe_unreachable(unreachable: Sequence[UnreachableGold]) -> list[str]:
    """A line for each gold id that no ranking can hold, at most `GOLD_NAMED`."""
    lines = [
        f"{gold.id!r} {'is below the curation threshold' if gold.is_published else 'is not in the index'}"
        f" (gold of {', '.join(gold.qids)})"
        for gold in unreachable[:GOLD_NAMED]
    ]
    left_out = len(unreachable) - len(lines)
    return [*lines, f"and {left_out} more"] if left_out else lines


def _answered(query: GoldenQuery, judged: Judged) -> AnsweredQuery:
    ndcg = ndcg_at(judged.ranked, judged.gold, NDCG_DEPTH)
    outcome = QueryOutcome(ndcg, judged.gold_ranks, judged.ranked[:NDCG_DEPTH])
    return AnsweredQuery(query.digest, query.qid, query.question, outcome)
