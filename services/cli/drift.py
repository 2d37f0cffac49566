"""How scores lie and drift, for a person at a terminal."""

from __future__ import annotations

from services.cli.common import console, print_table
from services.retrieval.status import DriftReport, ScoreDrift

MOVERS_SHOWN = 5
TENTHS = tuple(f"{tenth}0%" for tenth in range(1, 11))


def print_drift(drift: DriftReport) -> None:
    """Assets by tenths of both scales, and the largest changes of the run."""
    kinds = {"curation": drift.curation_score, "governance": drift.governance_score}
    print_table(("assets by score, up to", *TENTHS), [(name, *kind.histogram) for name, kind in kinds.items()])
    rows = [row for name, kind in kinds.items() for row in _movers(name, kind)]
    if rows:
        console.print(f"moved most in run {drift.run_id}:", highlight=False)
        print_table(("score", "before", "after", "cause", "type", "id"), rows)


def _movers(name: str, drift: ScoreDrift) -> list[tuple[object, ...]]:
    return [
        (name, f"{mover.score_before:.4g}", f"{mover.score_after:.4g}", mover.cause, mover.object_type, mover.id)
        for mover in drift.movers[:MOVERS_SHOWN]
    ]
