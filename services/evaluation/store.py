"""What the trend of quality needs of an engine: runs of the golden queries, and the baseline they are held against."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from services.evaluation.quality import AnsweredQuery, Decision, EvaluationStatus, QueryOutcome

Decide = Callable[[Mapping[str, QueryOutcome]], Decision]


@dataclass(frozen=True)
class Evaluation:
    """One run of the golden queries. `measures` are those of `metrics.summary`."""

    evaluation_id: str
    evaluated_at: datetime
    index_version: int
    question_set: str
    measures: Mapping[str, float]
    answered: tuple[AnsweredQuery, ...]


@dataclass(frozen=True)
class PastQuery:
    """How a query fared in a run: nDCG@10, and the rank of each gold id."""

    qid: str
    ndcg: float
    gold_ranks: Mapping[str, int | None]


@dataclass(frozen=True)
class PastEvaluation:
    """A run as it is kept. `run_id` is the refresh or reevaluation that had published last, None when that is unknown;
    `ndcg_before` and `ndcg_after` are the means over the `compared` queries."""

    evaluation_id: str
    evaluated_at: datetime
    index_version: int
    model_id: str | None
    run_id: str | None
    question_set: str
    status: EvaluationStatus
    measures: Mapping[str, float]
    compared: int
    ndcg_before: float | None
    ndcg_after: float | None
    fallen: tuple[str, ...]
    queries: tuple[PastQuery, ...]


class EvaluationStore(Protocol):
    """Runs of the golden queries, and for each query the outcome that later ones are held against."""

    def eligible(self, asset_ids: Sequence[str]) -> Mapping[str, bool]:
        """Those of the ids that are published, and whether the gate lets them through."""
        ...

    def record(self, evaluation: Evaluation, decide: Decide, kept: int) -> Decision:
        """Keep a run with what `decide` makes of it, given the baselines of its queries by digest.

        One transaction: of two runs at the same time, the second decides by the baseline that the first has left. Only
        the latest `kept` runs stay, and the baselines of queries that one of them has asked.
        """
        ...

    def recent(self, limit: int) -> tuple[PastEvaluation, ...]:
        """The latest runs, newest first, their queries by qid."""
        ...
