"""What Prometheus may scrape: counts and times of requests.

Labels come from closed sets, never from the content of a request or of the index.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
UNMATCHED_ROUTE = "unmatched"
METHODS = frozenset({"GET", "HEAD", "POST", "OPTIONS"})
CONTENT_TYPE = CONTENT_TYPE_LATEST


class Stage(StrEnum):
    """The stages of one search request once its caller is known, in order."""

    PARSE = "parse"
    SEARCH = "search"
    RENDER = "render"


class ApiMetrics:
    """The counters of one app, in a registry of their own (several apps may live in one process)."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "vouch_http_requests",
            "Requests answered, by route, method and status.",
            ["route", "method", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "vouch_http_request_seconds",
            "Time from the request's arrival to its answer, by route.",
            ["route"],
            buckets=SECONDS,
            registry=self._registry,
        )
        self._stage_seconds = Histogram(
            "vouch_search_stage_seconds",
            "Time spent in each stage of a search request.",
            ["stage"],
            buckets=SECONDS,
            registry=self._registry,
        )

    def observe_request(self, route: str | None, method: str, status: int, seconds: float) -> None:
        label = route or UNMATCHED_ROUTE
        self._requests.labels(label, method if method in METHODS else "other", str(status)).inc()
        self._seconds.labels(label).observe(seconds)

    @contextmanager
    def stage(self, stage: Stage) -> Iterator[None]:
        """Time the block as that stage of a search, whether it succeeds or raises."""
        with self._stage_seconds.labels(stage).time():
            yield

    def exposition(self) -> bytes:
        """All metrics in the Prometheus text format; serve it as `CONTENT_TYPE`."""
        return generate_latest(self._registry)
