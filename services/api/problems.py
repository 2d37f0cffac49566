"""Every error as problem+json (RFC 9457): one record, one table from our errors to it, one place that renders it."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import structlog
from flask import Flask, Response, g
from pydantic import BaseModel, ConfigDict, Field
from werkzeug.exceptions import HTTPException

from services.api.config import ApiConfig
from services.errors import AssetNotFound, InvalidRequest, TransientError, VouchError

PROBLEM_JSON = "application/problem+json"

log = structlog.get_logger("vouch.api")


class FieldError(BaseModel):
    """What is wrong with one field, and what would be right."""

    model_config = ConfigDict(frozen=True)

    field: str = Field(description="dotted path in the request body, or the name of a check")
    message: str


class Problem(BaseModel):
    """An error (RFC 9457)."""

    model_config = ConfigDict(frozen=True)

    type: str = Field(description="names the kind of problem; stable, for programs")
    title: str = Field(description="the kind of problem in words")
    status: int
    detail: str = Field(description="what is wrong with this request, and the fix")
    instance: str = Field(description="the request id, as in the log and in the header X-Request-ID")
    errors: tuple[FieldError, ...] = ()


class RequestRefused(Exception):
    """A request that gets a problem as its answer. `kind` becomes the type: urn:vouch:problem:<kind>."""

    def __init__(
        self,
        status: HTTPStatus,
        kind: str,
        detail: str,
        errors: tuple[FieldError, ...] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.errors = errors
        self.headers = dict(headers or {})


def problem_response(refused: RequestRefused) -> Response:
    """The refusal as problem+json (RFC 9457); `instance` is the id of the request."""
    problem = Problem(
        type=f"urn:vouch:problem:{refused.kind}",
        title=refused.kind.replace("-", " ").capitalize(),
        status=refused.status,
        detail=refused.detail,
        instance=g.request_id,
        errors=refused.errors,
    )
    return Response(problem.model_dump_json(), refused.status, refused.headers, mimetype=PROBLEM_JSON)


def register_problems(app: Flask, config: ApiConfig) -> None:
    """Answer every error of the app with a problem; what is not the caller's fault is logged with the request id."""

    def refused(error: RequestRefused) -> Response:
        return problem_response(error)

    def http(error: HTTPException) -> Response:
        return problem_response(_from_http(error, config))

    def ours(error: VouchError) -> Response:
        return problem_response(_from_ours(error, config))

    def unknown(error: Exception) -> Response:
        _log_failure(error)
        return problem_response(_internal())

    app.register_error_handler(RequestRefused, refused)
    app.register_error_handler(HTTPException, http)
    app.register_error_handler(VouchError, ours)
    app.register_error_handler(Exception, unknown)


_HTTP_DETAILS = {
    HTTPStatus.NOT_FOUND: "There is nothing at this address; /openapi.json lists what there is.",
    HTTPStatus.METHOD_NOT_ALLOWED: "This address does not take this method; the header Allow names those it takes.",
}


def _from_http(error: HTTPException, config: ApiConfig) -> RequestRefused:
    """A problem for what Flask itself refuses; its headers (Allow) are kept, its words are not."""
    status = HTTPStatus(error.code or HTTPStatus.INTERNAL_SERVER_ERROR)
    if status is HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return RequestRefused(
            status, "body-too-large", f"The request body is larger than {config.body_bytes_limit} bytes."
        )
    headers = {name: value for name, value in error.get_headers() if name.lower() not in {"content-type"}}
    kind = status.phrase.lower().replace(" ", "-")
    return RequestRefused(status, kind, _HTTP_DETAILS.get(status, status.description or status.phrase), headers=headers)


def _from_ours(error: VouchError, config: ApiConfig) -> RequestRefused:
    if isinstance(error, AssetNotFound):
        # One sentence for hidden and missing: the error's own words could tell them apart.
        return RequestRefused(HTTPStatus.NOT_FOUND, "asset-not-found", "No such asset, or none that you may see.")
    if isinstance(error, InvalidRequest):
        return RequestRefused(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-request", str(error))
    if isinstance(error, TransientError):
        _log_failure(error)
        return RequestRefused(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "temporarily-unavailable",
            "The index cannot be reached at the moment; the same request may succeed later.",
            headers={"Retry-After": str(config.retry_after_seconds)},
        )
    _log_failure(error)
    return _internal()


def _internal() -> RequestRefused:
    return RequestRefused(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "internal-error",
        "Something went wrong here. The log says more under the request id that is this problem's instance.",
    )


def _log_failure(error: Exception) -> None:
    """Our own messages are safe to log. Others may quote the query, so above debug only their place is told."""
    facts: dict[str, Any] = {
        "request_id": g.request_id,
        "error": type(error).__name__,
        "raised_at": [
            f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)
        ],
    }
    if isinstance(error, VouchError):
        facts["message"] = str(error)
    log.error("request failed", **facts)
    log.debug("request failed: full error", request_id=g.request_id, exc_info=error)
