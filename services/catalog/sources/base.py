"""What every source has in common: pages of records, rejections as data, and an explicit ending."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from services.catalog.model import CatalogRecord

PAGE_SIZE = 500


@dataclass(frozen=True)
class Rejection:
    """A record that could not be read. `record_ref` finds it again: its id, or "line 17".

    `asset_id` is its id, as far as that could be read: such an asset is still there. Without it nobody can say what a
    listing lacks.
    """

    record_ref: str
    error: str
    payload: str = ""
    asset_id: str | None = None


@dataclass(frozen=True)
class Page:
    """At most `PAGE_SIZE` records in listing order, and what was rejected on the way."""

    records: tuple[CatalogRecord, ...]
    rejected: tuple[Rejection, ...] = ()
    notices: tuple[str, ...] = ()  # repaired on reading: replaced characters, unknown keys, cut values


class Outcome(StrEnum):
    COMPLETE = "complete"  # everything was listed
    PARTIAL = "partial"  # a filter or a watermark applied
    FAILED = "failed"  # listing stopped early


@dataclass(frozen=True)
class Ending:
    """The last thing a listing says. Only after COMPLETE may what was neither listed nor rejected count as missing."""

    outcome: Outcome
    detail: str = ""


class Source(Protocol):
    """One catalog. `listing` yields pages and then exactly one `Ending`; single bad records are rejections.

    Raises SourceError for a wrong configuration and SourceUnavailable when it cannot be reached; anything else that
    goes wrong half-way ends the listing with FAILED.
    """

    @property
    def name(self) -> str: ...

    @property
    def overlay(self) -> bool: ...

    def listing(self) -> Iterator[Page | Ending]: ...

    def probe(self) -> str:
        """One line that says what is there ("67 datasets, ..."); raises like `listing`."""
        ...
