"""GET /v1/status."""

from __future__ import annotations

from http import HTTPStatus

from flask import Response, g
from pydantic import BaseModel, ConfigDict, Field

from services.access.principal import Permission, Principal
from services.api.routing import Answer, Route, json_response
from services.api.services import ReadinessProbe, Status
from services.retrieval.model import is_absent
from services.retrieval.status import DriftReport, RecentRun, SourceStatus, StatusReport


class StatusAnswer(BaseModel):
    """Freshness of the index. Model, sources, runs and drift are left out when the key lacks the permission `operate`:

    names, errors and counts of sources can tell of assets that the caller may not see.
    """

    model_config = ConfigDict(frozen=True)

    request_id: str
    ready: bool
    index_version: int
    engine: str
    data_age_seconds: float | None
    access_age_seconds: float | None
    model: str | None = Field(default=None, exclude_if=is_absent)
    sources: tuple[SourceStatus, ...] | None = Field(default=None, exclude_if=is_absent)
    runs: tuple[RecentRun, ...] | None = Field(
        default=None, exclude_if=is_absent, description="the last 10, newest first"
    )
    drift: DriftReport | None = Field(default=None, exclude_if=is_absent)


ALWAYS_SHOWN = frozenset({"index_version", "engine", "data_age_seconds", "access_age_seconds"})


def status_answer(report: StatusReport, ready: bool, caller: Principal, request_id: str) -> StatusAnswer:
    """The report as far as the caller's permissions go."""
    operates = Permission.OPERATE in caller.permissions
    shown = {name: getattr(report, name) for name in StatusReport.model_fields if operates or name in ALWAYS_SHOWN}
    return StatusAnswer(request_id=request_id, ready=ready, **shown)


def status_routes(service: Status, readiness: ReadinessProbe) -> tuple[Route, ...]:
    def status(caller: Principal) -> Response:
        report = service.status(caller)
        answer = status_answer(report, readiness.check().ready, caller, g.request_id)
        return json_response(answer, index_version=report.index_version, data_age_seconds=report.data_age_seconds)

    return (
        Route(
            method="GET",
            path="/v1/status",
            name="status",
            summary="How fresh the index is; for operators also its model, sources, last runs and drift.",
            tag="operations",
            answer=Answer("Freshness, and what the key's permissions add.", StatusAnswer),
            view=status,
            keyed=True,
            rests_on_index=True,
            problems=(HTTPStatus.SERVICE_UNAVAILABLE,),
        ),
    )
