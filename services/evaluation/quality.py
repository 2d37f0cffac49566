"""Whether the ranking is still as good as it was: golden queries before and after, and what to make of a drop.

Pure. The same comparison serves the run after each refresh and the check before an index version is promoted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

NDCG_DROP_LIMIT = 0.02  # of the mean nDCG@10 over the queries that are compared
ROUNDING = 1e-9  # sums of the same numbers in another order are the same quality
FALLEN_NAMED = 20  # in a message
OVERTAKERS_NAMED = 3  # of a gold id that sank
RANKS_KEPT = 30  # as many candidates as a question has by default: to look at them all changes no rank


@dataclass(frozen=True)
class QueryOutcome:
    """How a golden query fared: its nDCG@10, the rank of each gold id (None: beyond `RANKS_KEPT`), and the ids of the
    first ten."""

    ndcg: float
    gold_ranks: Mapping[str, int | None]
    top: tuple[str, ...]


@dataclass(frozen=True)
class AnsweredQuery:
    """A golden query with its outcome. `digest` stands for what is asked and what is expected (`GoldenQuery.digest`):
    a query that was edited has another one."""

    digest: str
    qid: str
    question: str
    outcome: QueryOutcome


@dataclass(frozen=True)
class GoldMove:
    """A gold id that sank, and the ids that stand above it now and did not before, best first. Ranks count from 1."""

    id: str
    rank_before: int | None
    rank_after: int | None
    overtaken_by: tuple[str, ...]


@dataclass(frozen=True)
class FallenQuery:
    qid: str
    question: str
    ndcg_before: float
    ndcg_after: float
    moves: tuple[GoldMove, ...]


@dataclass(frozen=True)
class QualityVerdict:
    """Means of nDCG@10 over the `compared` queries, those that stand on both sides; None when there are none.

    `passed` unless the mean fell by more than the limit. `fallen` are the compared queries whose own nDCG@10 fell, the
    deepest fall first, also when the verdict is passed.
    """

    passed: bool
    reasons: tuple[str, ...]
    compared: int
    ndcg_before: float | None
    ndcg_after: float | None
    fallen: tuple[FallenQuery, ...]


class EvaluationStatus(StrEnum):
    """What a run was taken for: there was nothing to compare it with; it passed; it fell; an operator accepted it."""

    FIRST = "first"
    PASSED = "passed"
    FELL = "fell"
    ACCEPTED = "accepted"


@dataclass(frozen=True)
class Decision:
    """What follows from a run; `raised` are the digests of the queries whose baseline it becomes."""

    status: EvaluationStatus
    verdict: QualityVerdict
    raised: frozenset[str]


def compare(
    before: Mapping[str, QueryOutcome], after: Sequence[AnsweredQuery], drop_limit: float = NDCG_DROP_LIMIT
) -> QualityVerdict:
    """The verdict on `after`, given earlier outcomes by digest.

    Only queries that stand on both sides are compared: a query that is new, or was edited, has no earlier outcome. With
    none in common there is nothing to hold against `after`, and it passes.
    """
    shared = [query for query in after if query.digest in before]
    if not shared:
        return QualityVerdict(True, ("no query was asked before, there is nothing to compare with",), 0, None, None, ())
    ndcg_before = sum(before[query.digest].ndcg for query in shared) / len(shared)
    ndcg_after = sum(query.outcome.ndcg for query in shared) / len(shared)
    drop = ndcg_before - ndcg_after
    passed = drop <= drop_limit + ROUNDING
    moved = f"fell by {drop:.4f}" if drop > ROUNDING else f"rose by {-drop:.4f}" if drop < -ROUNDING else "stayed"
    reasons = [
        f"nDCG@10 of {len(shared)} golden queries {moved}, from {ndcg_before:.4f} to {ndcg_after:.4f};"
        f" a drop of {drop_limit:g} is let through"
    ]
    if len(shared) < len(after):
        reasons.append(f"new or edited, so without a baseline yet: {len(after) - len(shared)}")
    fallen = [
        _fallen(query, before[query.digest])
        for query in shared
        if query.outcome.ndcg < before[query.digest].ndcg - ROUNDING
    ]
    fallen.sort(key=lambda query: (query.ndcg_after - query.ndcg_before, query.qid))
    return QualityVerdict(passed, tuple(reasons), len(shared), ndcg_before, ndcg_after, tuple(fallen))


def decide(before: Mapping[str, QueryOutcome], after: Sequence[AnsweredQuery], *, accept: bool) -> Decision:
    """What a run is taken for, and which queries' baseline it becomes.

    The baseline only rises: a run that is as good or better becomes the baseline of all its queries; one that is worse
    within the limit, of those alone that had none. So small drops in a row add up against the same baseline, until they
    are beyond the limit together. A run that fell becomes nobody's baseline, unless an operator accepts it.
    """
    verdict = compare(before, after)
    asked = frozenset(query.digest for query in after)
    if accept:
        return Decision(EvaluationStatus.ACCEPTED, verdict, asked)
    if verdict.ndcg_before is None or verdict.ndcg_after is None:
        return Decision(EvaluationStatus.FIRST, verdict, asked)
    if not verdict.passed:
        return Decision(EvaluationStatus.FELL, verdict, frozenset())
    is_as_good = verdict.ndcg_after >= verdict.ndcg_before - ROUNDING
    return Decision(EvaluationStatus.PASSED, verdict, asked if is_as_good else asked - before.keys())


def describe_fallen(fallen: Sequence[FallenQuery]) -> list[str]:
    """A line for each query that fell, at most `FALLEN_NAMED`: its nDCG@10, old and new ranks, and what overtook."""
    lines = [
        f"{query.qid} {query.question!r}: nDCG@10 {query.ndcg_before:.3f} -> {query.ndcg_after:.3f}"
        + "".join(f"; {_describe_move(move)}" for move in query.moves)
        for query in fallen[:FALLEN_NAMED]
    ]
    left_out = len(fallen) - len(lines)
    return [*lines, f"and {left_out} more"] if left_out else lines


def _fallen(query: AnsweredQuery, before: QueryOutcome) -> FallenQuery:
    after = query.outcome
    moves = [
        GoldMove(gold, before.gold_ranks.get(gold), rank, _overtakers(gold, rank, before, after))
        for gold, rank in after.gold_ranks.items()
        if _sank(before.gold_ranks.get(gold), rank)
    ]
    return FallenQuery(query.qid, query.question, before.ndcg, after.ndcg, tuple(moves))


def _sank(before: int | None, after: int | None) -> bool:
    return before is not None and (after is None or after > before)


def _overtakers(gold: str, rank: int | None, before: QueryOutcome, after: QueryOutcome) -> tuple[str, ...]:
    above_before = set(before.top[: before.top.index(gold)]) if gold in before.top else set(before.top)
    above_now = after.top[: rank - 1] if rank is not None else after.top
    return tuple(found for found in above_now if found not in above_before and found not in after.gold_ranks)


def _describe_move(move: GoldMove) -> str:
    where = f"to {move.rank_after}" if move.rank_after is not None else f"to beyond {RANKS_KEPT}"
    named = ", ".join(map(repr, move.overtaken_by[:OVERTAKERS_NAMED]))
    left_out = len(move.overtaken_by) - OVERTAKERS_NAMED
    by = f", overtaken by {named}" + (f" and {left_out} more" if left_out > 0 else "") if named else ""
    return f"{move.id!r} from rank {move.rank_before} {where}{by}"
