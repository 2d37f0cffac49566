"""The limits of the query API."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ApiConfig:
    """`body_bytes_limit`: a larger request body is refused unread (413). It leaves room for a query at its own limit

    of 16 KiB with every character escaped. `retry_after_seconds`: what a 503 tells its caller to wait.
    """

    body_bytes_limit: int = 64 * 1024
    retry_after_seconds: int = 2
