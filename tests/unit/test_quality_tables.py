"""The arithmetic of the quality benchmark: its peers, and what counts as a fall."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from services.evaluation.golden import GoldenQuery
from tests.benchmarks.quality.peers import bm25_scores, min_max, peer_rankings, reciprocal_rank_fusion
from tests.benchmarks.quality.tables import (
    MEASURES,
    TOLERANCE,
    QualityTable,
    fallen,
    measured,
    not_above,
    read_tables,
    write_table,
)


def row(fraction: float) -> dict[str, float]:
    return dict.fromkeys(MEASURES, fraction)


def table(**fractions: float) -> QualityTable:
    rows = {"BM25, names": 0.5, "dense, names": 0.4, "keyword alone": 0.6, "vector alone": 0.6, "relevance": 0.7}
    named = {method.replace("_", " "): fraction for method, fraction in fractions.items()}
    return QualityTable("shop", 10, {method: row(named.get(method, value)) for method, value in rows.items()})


def test_bm25_finds_the_words_of_a_name_in_another_form() -> None:
    scores = bm25_scores(["customer order", "store", "shipping address"], ["which orders were shipped", "qwerty"])
    assert scores.argmax(axis=1)[0] == 0
    assert scores[0, 2] > scores[0, 1] == 0
    assert not scores[1].any()


def test_min_max_stretches_each_question_by_itself() -> None:
    stretched = min_max(np.array([[1.0, 3.0, 2.0], [5.0, 5.0, 5.0]]))
    assert stretched.tolist() == [[0.0, 1.0, 0.5], [0.0, 0.0, 0.0]]


def test_rank_fusion_adds_up_reciprocal_ranks() -> None:
    fused = reciprocal_rank_fusion(np.array([[9.0, 1.0, 5.0]]), np.array([[0.1, 0.9, 0.1]]))
    # Ranks 1 3 2 and, where the tie goes by order, 2 1 3.
    assert fused[0] == pytest.approx([1 / 61 + 1 / 62, 1 / 63 + 1 / 61, 1 / 62 + 1 / 63])


def test_peers_rank_every_question_and_break_ties_by_id() -> None:
    vectors = {"cust_orders": [1.0, 0.0], "stores": [0.0, 1.0], "orders": [1.0, 0.0], "xyzzy": [0.0, 0.0]}

    def embed(texts: list[str]) -> np.ndarray:
        return np.array([vectors[text] for text in texts], dtype=np.float32)

    rankings = peer_rankings({"b": "stores", "c": "cust_orders", "a": "stores"}, ["orders", "xyzzy"], embed)
    assert set(rankings) == {"BM25", "dense", "min-max hybrid", "RRF"}
    assert {method: ranked[0] for method, ranked in rankings.items()} == dict.fromkeys(rankings, ("c", "a", "b"))
    assert rankings["dense"][1] == ("a", "b", "c")


def test_a_row_holds_the_measures_of_its_rankings() -> None:
    queries = (GoldenQuery(qid="1", question="?", gold=("a",)), GoldenQuery(qid="2", question="?", gold=("b", "x")))
    measures = measured(queries, [("a",), ("c", "b")])
    assert list(measures) == list(MEASURES)
    assert (measures["recall@1"], measures["recall@5"], measures["complete_recall@5"]) == (0.5, 0.75, 0.5)
    assert measures["mrr"] == 0.75


@pytest.mark.parametrize("method", ["relevance", "keyword_alone", "vector_alone"])
def test_a_row_may_fall_by_the_tolerance_and_no_further(method: str) -> None:
    before = table(**{method: 0.65})
    assert fallen(table(**{method: 0.65 - TOLERANCE + 0.0001}), before) == []
    assert len(fallen(table(**{method: 0.65 - TOLERANCE - 0.0001}), before)) == len(MEASURES)


def test_a_peer_may_not_be_made_weaker() -> None:
    weaker = QualityTable("shop", 10, {**table().rows, "BM25, names": row(0.3)})
    assert len(fallen(weaker, table())) == len(MEASURES)


def test_relevance_is_above_every_peer_and_each_signal_at_least_at_its_like() -> None:
    assert not_above(table()) == []
    assert not_above(table(keyword_alone=0.5, vector_alone=0.4)) == []
    assert not_above(table(relevance=0.5)) == [
        "shop: recall@5 of relevance is not above that of BM25, names",
        "shop: complete_recall@10 of relevance is not above that of BM25, names",
    ]
    assert len(not_above(table(keyword_alone=0.49))) == 2
    assert len(not_above(table(vector_alone=0.39))) == 2


def test_tables_of_several_sets_share_a_file(tmp_path: Path) -> None:
    file = tmp_path / "new" / "quality.json"
    assert read_tables(file) == {}
    other = QualityTable("bank", 3, {"relevance": row(0.25)})
    for written in (table(relevance=0.9), other, table()):
        write_table(file, written)
    assert read_tables(file) == {"shop": table(), "bank": other}
