"""The measures of ranking quality, against values worked out by hand."""

from __future__ import annotations

import math

import pytest

from services.evaluation.metrics import Judged, complete_recall_at, ndcg_at, recall_at, reciprocal_rank, summary

RANKED = ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("gold", "depth", "recall", "complete"),
    [
        (("a",), 1, 1.0, 1.0),
        (("b",), 1, 0.0, 0.0),
        (("a", "d"), 3, 0.5, 0.0),
        (("a", "d"), 4, 1.0, 1.0),
        (("a", "x"), 4, 0.5, 0.0),
        (("a", "a"), 1, 1.0, 1.0),  # named twice is wanted once
    ],
)
def test_recall(gold: tuple[str, ...], depth: int, recall: float, complete: float) -> None:
    assert recall_at(RANKED, gold, depth) == recall
    assert complete_recall_at(RANKED, gold, depth) == complete


def test_reciprocal_rank_is_that_of_the_first_gold() -> None:
    assert reciprocal_rank(RANKED, ("c", "d")) == pytest.approx(1 / 3)
    assert reciprocal_rank(RANKED, ("x",)) == 0.0


def test_ndcg_discounts_by_place() -> None:
    assert ndcg_at(RANKED, ("a", "b"), 10) == pytest.approx(1.0)
    gained = 1 / math.log2(3) + 1 / math.log2(5)
    best = 1 + 1 / math.log2(3)
    assert ndcg_at(RANKED, ("b", "d"), 10) == pytest.approx(gained / best)
    assert ndcg_at(RANKED, ("b",), 1) == 0.0


def test_ndcg_knows_that_no_list_is_longer_than_its_depth() -> None:
    assert ndcg_at(("a", "b"), ("a", "b", "c"), 2) == pytest.approx(1.0)


def test_summary_is_the_mean_over_queries() -> None:
    judged = [Judged("1", ("a",), RANKED), Judged("2", ("d",), RANKED), Judged("3", ("x",), ())]
    measures = summary(judged, (1, 5))
    assert measures["queries"] == 3
    assert measures["recall@1"] == pytest.approx(1 / 3)
    assert measures["recall@5"] == measures["complete_recall@5"] == pytest.approx(2 / 3)
    assert measures["mrr"] == pytest.approx((1 + 1 / 4 + 0) / 3)
    assert list(measures) == [
        "queries", "recall@1", "recall@5", "complete_recall@1", "complete_recall@5", "mrr", "ndcg@10",
    ]  # fmt: skip


def test_no_query_has_no_mean() -> None:
    assert summary([], (1,)) == {"queries": 0}


def test_gold_ranks_say_what_was_not_found() -> None:
    assert Judged("1", ("c", "x"), RANKED).gold_ranks == {"c": 3, "x": None}
