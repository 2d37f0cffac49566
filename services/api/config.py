"""The limits of the query API."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ApiConfig:
    """What the API allows itself and its callers."""

    # A larger body is refused unread (413). A query at its own limit of 16 KiB fits even with every character beyond
    # ASCII escaped: that triples it at most.
    body_bytes_limit: int = 64 * 1024
    # What a 503 tells its caller to wait.
    retry_after_seconds: int = 2
