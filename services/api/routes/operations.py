"""Health, readiness and metrics: open to everybody, so they tell nothing about assets."""

from __future__ import annotations

from http import HTTPStatus
from typing import Literal

from flask import Response
from pydantic import BaseModel, ConfigDict

from services.api.metrics import CONTENT_TYPE, ApiMetrics
from services.api.problems import FieldError, RequestRefused
from services.api.routing import Answer, Route, json_response
from services.api.services import ReadinessProbe
from services.retrieval.status import Readiness


class Health(BaseModel):
    """The process answers."""

    model_config = ConfigDict(frozen=True)

    status: Literal["ok"] = "ok"


def _healthz() -> Response:
    return json_response(Health())


def _ready_answer(found: Readiness, retry_after_seconds: int) -> Response:
    """The checks when all of them hold. Raises RequestRefused (503) naming those that fail."""
    if found.ready:
        return json_response(found)
    failing = tuple(FieldError(field=check.name, message=check.detail) for check in found.checks if not check.ok)
    raise RequestRefused(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "not-ready",
        "Questions cannot be answered yet; see the checks that fail.",
        failing,
        {"Retry-After": str(retry_after_seconds)},
    )


def operations_routes(readiness: ReadinessProbe, metrics: ApiMetrics, retry_after_seconds: int) -> tuple[Route, ...]:
    """`retry_after_seconds` is what a caller is told to wait while the service is not ready."""

    def readyz() -> Response:
        return _ready_answer(readiness.check(), retry_after_seconds)

    def exposition() -> Response:
        return Response(metrics.exposition(), content_type=CONTENT_TYPE)

    return (
        Route(
            method="GET",
            path="/healthz",
            name="healthz",
            summary="The process is alive.",
            tag="operations",
            answer=Answer("Alive.", Health),
            view=_healthz,
        ),
        Route(
            method="GET",
            path="/readyz",
            name="readyz",
            summary="Questions can be answered now.",
            tag="operations",
            answer=Answer("Ready, with each check.", Readiness),
            view=readyz,
            problems=(HTTPStatus.SERVICE_UNAVAILABLE,),
        ),
        Route(
            method="GET",
            path="/metrics",
            name="metrics",
            summary="Counts and times of requests for Prometheus.",
            tag="operations",
            answer=Answer("Prometheus text format.", media_type="text/plain"),
            view=exposition,
        ),
    )
