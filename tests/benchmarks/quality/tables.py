"""Tables of quality: printed, written, and held against the last accepted ones. Fractions, 0..1; shown in percent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.evaluation.golden import GoldenQuery
from services.evaluation.metrics import Judged, summary

DEPTHS = (1, 5, 10)
MEASURES = {
    "recall@1": "R@1",
    "recall@5": "R@5",
    "recall@10": "R@10",
    "complete_recall@5": "CR@5",
    "complete_recall@10": "CR@10",
    "mrr": "MRR",
    "ndcg@10": "nDCG@10",
}
DECIMALS = 4
# The same code gives the same table on the same machine. Documents are embedded in bfloat16 where the processor
# multiplies it and in float32 elsewhere, which swaps near ties: on the first set it moved measures by up to 0.3 points.
# Half a point is more than that, and less than two questions of the smallest set.
TOLERANCE = 0.005

KEYWORD_ALONE = "keyword alone"
VECTOR_ALONE = "vector alone"
RELEVANCE = "relevance"
OWN_METHODS = (KEYWORD_ALONE, VECTOR_ALONE, RELEVANCE)
DECISIVE = ("recall@5", "complete_recall@10")

Measures = Mapping[str, float]


@dataclass(frozen=True)
class QualityTable:
    """`rows`: by method ("BM25, names", "relevance"), its measures."""

    name: str
    queries: int
    rows: Mapping[str, Measures]

    def peers(self, method: str = "") -> dict[str, Measures]:
        """The peers' rows; with a method, that one's over each kind of text."""
        others = {row: measures for row, measures in self.rows.items() if row not in OWN_METHODS}
        return {row: measures for row, measures in others.items() if not method or row.startswith(f"{method}, ")}


def measured(queries: Sequence[GoldenQuery], rankings: Sequence[Sequence[str]]) -> dict[str, float]:
    """The measures of one row, rounded as they are written."""
    judged = [Judged(query.qid, query.gold, tuple(ranked)) for query, ranked in zip(queries, rankings, strict=True)]
    means = summary(judged, DEPTHS)
    return {measure: round(means[measure], DECIMALS) for measure in MEASURES}


def lines(table: QualityTable, what: str) -> Iterator[str]:
    yield f"{table.name}: {table.queries} questions over {what}"
    yield f"{'':24}" + "".join(f"{head:>9}" for head in MEASURES.values())
    for row, measures in table.rows.items():
        yield f"{row:24}" + "".join(f"{100 * measures[measure]:9.1f}" for measure in MEASURES)


def fallen(table: QualityTable, accepted: QualityTable) -> list[str]:
    """What stands more than the tolerance below the accepted table. Peers too: a weaker peer is an easier victory."""
    return [
        f"{table.name}, {row}: {measure} fell from {100 * before:.1f} to {100 * table.rows[row][measure]:.1f}"
        for row, measures in accepted.rows.items()
        for measure, before in measures.items()
        if table.rows[row][measure] < before - TOLERANCE
    ]


def not_above(table: QualityTable) -> list[str]:
    """Where a peer is not beaten: relevance must be above every peer, each signal alone at least at its like."""
    own = table.rows
    found = [
        f"{table.name}: {measure} of {RELEVANCE} is not above that of {row}"
        for row, measures in table.peers().items()
        for measure in DECISIVE
        if own[RELEVANCE][measure] <= measures[measure]
    ]
    for method, like in ((KEYWORD_ALONE, "BM25"), (VECTOR_ALONE, "dense")):
        found += [
            f"{table.name}: {measure} of {method} is below that of {row}"
            for row, measures in table.peers(like).items()
            for measure in DECISIVE
            if own[method][measure] < measures[measure]
        ]
    return found


def read_tables(file: Path) -> dict[str, QualityTable]:
    """The tables of a file, by set; none when there is no file."""
    if not file.is_file():
        return {}
    written: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return {name: QualityTable(name, item["queries"], item["rows"]) for name, item in written.items()}


def write_table(file: Path, table: QualityTable) -> None:
    """Put one table into a file, beside those of other sets."""
    tables = {**read_tables(file), table.name: table}
    document = {name: {"queries": tables[name].queries, "rows": tables[name].rows} for name in sorted(tables)}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
