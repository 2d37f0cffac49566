"""What happens around every request: its id in and out, one log line, its metrics, its headers."""

from __future__ import annotations

import re
import time
from uuid import uuid4

import structlog
from flask import Flask, Response, g, request

from services.api.metrics import UNMATCHED_ROUTE, ApiMetrics

REQUEST_ID_HEADER = "X-Request-ID"
# Fit for a log line, a header and a URI reference; anything else is replaced, not refused.
_REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")

log = structlog.get_logger("vouch.api.access")


def register_lifecycle(app: Flask, metrics: ApiMetrics) -> None:
    """Every request gets an id, is timed, counted and logged by its rule; answers of /v1 are stored nowhere."""

    def begin() -> None:
        g.started = time.perf_counter()
        g.request_id = request_id(request.headers.get(REQUEST_ID_HEADER))
        g.user = None

    def end(response: Response) -> Response:
        seconds = time.perf_counter() - g.started
        # The rule, not the path: a path holds an asset's id.
        rule = request.url_rule.rule if request.url_rule else None
        response.headers[REQUEST_ID_HEADER] = g.request_id
        response.headers["X-Content-Type-Options"] = "nosniff"
        if request.path.startswith("/v1/"):
            response.headers["Cache-Control"] = "no-store"
        metrics.observe_request(rule, request.method, response.status_code, seconds)
        log.info(
            "request",
            request_id=g.request_id,
            method=request.method,
            route=rule or UNMATCHED_ROUTE,
            status=response.status_code,
            duration_ms=round(seconds * 1000, 2),
            user=g.user,
        )
        return response

    app.before_request(begin)
    app.after_request(end)


def request_id(offered: str | None) -> str:
    """The caller's id when it is fit to be written down, else a new one."""
    return offered if offered and _REQUEST_ID.fullmatch(offered) else uuid4().hex
