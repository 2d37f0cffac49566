"""Which way a search goes: vectors compared one by one, or proposed by the graph index."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

REMEMBERED_SECONDS = 30.0
REMEMBERED_SCOPES = 1000
# A filter that hides more than half may go with the topic of the question (a workspace, a department's access list),
# and then the graph index loses a fifth of what it should find. Comparing this many times the setting's vectors one
# by one costs less than the search that the graph index makes of such a filter.
NARROW_FACTOR = 5
SAMPLED_VECTORS = 4000
SURE_DEVIATIONS = 4

Counted = TypeVar("Counted")


@dataclass(frozen=True)
class VisibleVectors:
    """How many vectors a caller may be answered from, counted up to a limit, of about how many `stored` ones."""

    visible: int
    stored: int

    def are_few(self, exact_scan_rows: int) -> bool:
        return self.visible <= exact_scan_rows

    def are_compared(self, exact_scan_rows: int) -> bool:
        """Whether they are compared one by one."""
        narrow = self.visible <= NARROW_FACTOR * exact_scan_rows and 2 * self.visible <= self.stored
        return self.are_few(exact_scan_rows) or narrow


@dataclass(frozen=True)
class SampledVectors:
    """Of `sampled` vectors drawn from about `stored` ones, the `visible` ones, which belong to `visible_assets`."""

    sampled: int
    visible: int
    visible_assets: int
    stored: int

    def surely_exceed(self, limit: int) -> bool:
        """Whether more than `limit` vectors are visible beyond doubt.

        Assets are drawn, not vectors: a share of n visible assets is uncertain by 1 / sqrt(n) of itself.
        """
        least = self.visible - SURE_DEVIATIONS * self.visible / math.sqrt(max(1, self.visible_assets))
        return least * self.stored > limit * self.sampled


class CountMemory(Generic[Counted]):
    """Counts by scope, for a short time: one that is out of date costs time or a place in a list, never access.

    `clock` gives seconds, and never goes back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: dict[Hashable, tuple[float, Counted]] = {}

    def recall(self, scope: Hashable) -> Counted | None:
        """What was kept for the scope in the last `REMEMBERED_SECONDS`."""
        with self._lock:
            kept = self._counts.get(scope)
        return kept[1] if kept is not None and self._clock() - kept[0] < REMEMBERED_SECONDS else None

    def keep(self, scope: Hashable, counted: Counted) -> Counted:
        """Remember; of more than `REMEMBERED_SCOPES` the oldest is forgotten."""
        with self._lock:
            self._counts.pop(scope, None)
            self._counts[scope] = (self._clock(), counted)
            if len(self._counts) > REMEMBERED_SCOPES:
                del self._counts[next(iter(self._counts))]
        return counted
