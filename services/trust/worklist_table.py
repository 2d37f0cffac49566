"""The stewards' work list as a table: for reports, grouped by whom to ask, and as CSV that is safe to open."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

import pandas as pd

from services.trust.stewardship import Step, WorklistEntry

NOBODY = "nobody on record"
_FORMULA_STARTS = frozenset("=+-@|%")  # what a spreadsheet may take for a formula or a command
_TEXT_COLUMNS = ("asset_id", "name", "object_type", "source", "ask", "ask_role", "gaps", "fewest_steps")
_NUMBER_COLUMNS = ("curation_score", "threshold", "points_missing", "steps", "score_after")


def worklist_table(entries: Iterable[WorklistEntry]) -> pd.DataFrame:
    """One row per entry, in their order; the columns are the same when there are no entries."""
    rows = [
        {
            "asset_id": entry.asset.asset_id,
            "name": entry.asset.name,
            "object_type": entry.asset.object_type,
            "source": entry.asset.source,
            "ask": "; ".join(entry.contact.names) or NOBODY,
            "ask_role": entry.contact.role,
            "gaps": _told(entry.gaps),
            "fewest_steps": _told(entry.fewest_steps),
            "curation_score": entry.asset.curation.curation_score,
            "threshold": entry.asset.threshold,
            "points_missing": entry.points_missing,
            "steps": len(entry.fewest_steps),
            "score_after": entry.score_after,
        }
        for entry in entries
    ]
    return pd.DataFrame(rows, columns=[*_TEXT_COLUMNS, *_NUMBER_COLUMNS])


def work_by_contact(entries: Sequence[WorklistEntry]) -> pd.DataFrame:
    """Columns ask, assets, steps: the work that each steward or owner could do, most assets first, then by name.

    An asset with several people to ask counts for each of them.
    """
    rows = [
        {"ask": name, "assets": 1, "steps": len(entry.fewest_steps)}
        for entry in entries
        for name in entry.contact.names or (NOBODY,)
    ]
    table = pd.DataFrame(rows, columns=["ask", "assets", "steps"])
    summed = table.groupby("ask", as_index=False).sum()
    return summed.sort_values(["assets", "ask"], ascending=[False, True], ignore_index=True)


def worklist_csv(table: pd.DataFrame) -> str:
    """RFC 4180 text of a work list. No cell can act as a formula when a spreadsheet opens it."""
    safe = table.copy()
    for column in safe.columns.intersection(list(_TEXT_COLUMNS)):
        safe[column] = [spreadsheet_safe(str(cell)) for cell in safe[column]]
    return safe.to_csv(index=False, lineterminator="\r\n")


def spreadsheet_safe(cell: str) -> str:
    """The text on one line and, where it could begin a formula, behind an apostrophe, which spreadsheets hide."""
    line = " ".join("".join(char if char.isprintable() else " " for char in cell).split())
    first = unicodedata.normalize("NFKC", line)[:1]
    return f"'{line}" if first in _FORMULA_STARTS and first else line


def _told(steps: Sequence[Step]) -> str:
    return "; ".join(f"{step.text} (+{step.points:.4g})" for step in steps)
