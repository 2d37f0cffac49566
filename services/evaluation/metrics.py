"""Quality of a ranking against known answers, with binary relevance. Fractions, 0..1; the mean over queries."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

NDCG_DEPTH = 10


@dataclass(frozen=True)
class Judged:
    """One answered question: the ranked ids, best first, and the ids that were to be found (at least one)."""

    qid: str
    gold: tuple[str, ...]
    ranked: tuple[str, ...]

    @property
    def gold_ranks(self) -> Mapping[str, int | None]:
        """Where each gold id stands, counted from 1; None when it was not found."""
        places = {asset_id: place for place, asset_id in reversed(list(enumerate(self.ranked, start=1)))}
        return {asset_id: places.get(asset_id) for asset_id in self.gold}

    def first(self, depth: int) -> Judged:
        """The same question with no more than the first `depth` of its ranking."""
        return replace(self, ranked=self.ranked[:depth])


def recall_at(ranked: Sequence[str], gold: Collection[str], depth: int) -> float:
    """The share of the gold ids that stand within the first `depth`."""
    wanted = set(gold)
    return len(wanted & set(ranked[:depth])) / len(wanted)


def complete_recall_at(ranked: Sequence[str], gold: Collection[str], depth: int) -> float:
    """1 when all gold ids stand within the first `depth`, else 0."""
    return float(set(gold) <= set(ranked[:depth]))


def reciprocal_rank(ranked: Sequence[str], gold: Collection[str]) -> float:
    """1 / the place of the first gold id; 0 when there is none."""
    wanted = set(gold)
    return next((1 / place for place, asset_id in enumerate(ranked, start=1) if asset_id in wanted), 0.0)


def ndcg_at(ranked: Sequence[str], gold: Collection[str], depth: int) -> float:
    """Discounted gain of the first `depth`, 1 / log2(place + 1) each, as a share of the best that was possible."""
    wanted = set(gold)
    gained = sum(1 / math.log2(place + 1) for place, item in enumerate(ranked[:depth], start=1) if item in wanted)
    best = sum(1 / math.log2(place + 1) for place in range(1, min(len(wanted), depth) + 1))
    return gained / best


def summary(judged: Sequence[Judged], depths: Sequence[int]) -> dict[str, float]:
    """The means of all measures: `queries`, `recall@K` and `complete_recall@K` for each depth, `mrr`, `ndcg@10`."""
    count = len(judged)
    if not count:
        return {"queries": 0}
    result: dict[str, float] = {"queries": count}
    for depth in depths:
        result[f"recall@{depth}"] = sum(recall_at(item.ranked, item.gold, depth) for item in judged) / count
    for depth in depths:
        total = sum(complete_recall_at(item.ranked, item.gold, depth) for item in judged)
        result[f"complete_recall@{depth}"] = total / count
    result["mrr"] = sum(reciprocal_rank(item.ranked, item.gold) for item in judged) / count
    result[f"ndcg@{NDCG_DEPTH}"] = sum(ndcg_at(item.ranked, item.gold, NDCG_DEPTH) for item in judged) / count
    return result
