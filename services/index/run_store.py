"""What the bookkeeping of runs needs of an engine: the lease that fences them, their counts, the sources they pull."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol


@dataclass(frozen=True)
class SourceEntry:
    name: str
    kind: str
    overlay: bool
    path: str | None
    registered: bool = False


@dataclass(frozen=True)
class ListingEnd:
    outcome: str
    detail: str


class RunKind(StrEnum):
    """What a run is: only a refresh pulls sources and makes data younger."""

    REFRESH = "refresh"
    REEVALUATION = "reevaluation"


@dataclass(frozen=True)
class Run:
    """One refresh or reevaluation; `counts` by source, then by name."""

    run_id: str
    kind: RunKind
    holder: str
    status: str
    sources: tuple[str, ...]
    full: bool
    dry_run: bool
    started_at: datetime
    finished_at: datetime | None
    index_version: int | None
    error: str | None
    seconds: float
    listings: Mapping[str, ListingEnd]
    counts: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class LeaseHolder:
    run_id: str
    kind: RunKind
    holder: str
    started_at: datetime
    silent_seconds: float


class RunStore(Protocol):
    """Bookkeeping of runs and the lease that fences them."""

    def begin(
        self,
        run_id: str,
        holder: str,
        sources: Sequence[str],
        *,
        full: bool,
        dry_run: bool,
        is_dead: Callable[[LeaseHolder], bool],
        kind: RunKind = RunKind.REFRESH,
    ) -> str:
        """Take the lease; the id of the run that holds it (an earlier one of the same holder goes on).

        Raises RefreshInProgress when a living other run holds it.
        """
        ...

    def run(self, run_id: str) -> Run: ...

    def recent(self, limit: int) -> tuple[Run, ...]: ...

    def count(self, run_id: str, source: str, counts: Mapping[str, float], *, add: bool = False) -> None:
        """Note counts of a stage: replaced when the stage runs again, or added up over its batches."""
        ...

    def end_listing(self, run_id: str, source: str, outcome: str, detail: str) -> None: ...

    def end(self, run_id: str, status: str, *, error: str | None, version: int | None) -> None: ...


class SourceStore(Protocol):
    """The sources that are known to the index."""

    def put_sources(self, entries: Sequence[SourceEntry]) -> None: ...

    def forget(self, name: str) -> bool:
        """Take a registration back; False when no source of that name was registered. Its assets stay."""
        ...

    def sources(self) -> tuple[Mapping[str, Any], ...]:
        """Each source with its record count, last listing and data age, as plain values."""
        ...
