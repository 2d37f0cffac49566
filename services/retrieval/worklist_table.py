"""The stewards' work list as a table: as CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

import pandas as pd

from services.retrieval.worklist_view import WorklistItem, asked, fewest_told, told

_FORMULA_STARTS = frozenset("=+-@|%")  # what a spreadsheet may take for a formula or a command
_TEXT_COLUMNS = (
    "id", "name", "title", "object_type", "source", "url", "ask", "ask_role", "gaps", "fewest_steps", "governance",
)  # fmt: skip
_NUMBER_COLUMNS = (
    "curation_score", "threshold", "points_missing", "steps", "curation_score_after", "curation_native",
    "governance_score",
)  # fmt: skip


def worklist_table(items: Iterable[WorklistItem]) -> pd.DataFrame:
    """One row per entry, in their order; the columns are the same when there are no entries."""
    rows = [
        {
            "id": item.id,
            "name": item.name,
            "title": item.title or "",
            "object_type": item.object_type.value,
            "source": item.source,
            "url": item.url or "",
            "ask": asked(item),
            "ask_role": item.contact.role or "",
            "gaps": told(item.gaps),
            "fewest_steps": fewest_told(item),
            "governance": "; ".join(f"{part.signal} {part.value:g} ({part.origin})" for part in item.governance),
            "curation_score": item.curation_score,
            "threshold": item.threshold,
            "points_missing": item.points_missing,
            "steps": len(item.fewest_steps),
            "curation_score_after": item.curation_score_after,
            "curation_native": item.curation_native,
            "governance_score": item.governance_score,
        }
        for item in items
    ]
    return pd.DataFrame(rows, columns=[*_TEXT_COLUMNS, *_NUMBER_COLUMNS])


def worklist_csv(table: pd.DataFrame, *, header: bool = True) -> str:
    """RFC 4180 text of a work list. No cell can act as a formula when a spreadsheet opens it."""
    safe = table.copy()
    for column in safe.columns.intersection(list(_TEXT_COLUMNS)):
        safe[column] = [spreadsheet_safe(str(cell)) for cell in safe[column]]
    return safe.to_csv(index=False, header=header, lineterminator="\r\n")


def spreadsheet_safe(cell: str) -> str:
    """The text on one line and, where it could begin a formula, behind an apostrophe, which spreadsheets hide.

    Where semicolons part cells, as in much of Europe, a formula could also begin behind one.
    """
    line = " ".join("".join(char if char.isprintable() else " " for char in cell).split())
    return ";".join(_no_formula(part) for part in line.split(";"))


def _no_formula(part: str) -> str:
    first = unicodedata.normalize("NFKC", part.lstrip())[:1]
    return f"'{part}" if first in _FORMULA_STARTS and first else part
