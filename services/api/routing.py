"""A route as data: what Flask serves and what the OpenAPI document says come from the same record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from http import HTTPStatus
from typing import Any

from flask import Flask, Response, g, request
from pydantic import BaseModel
from werkzeug.routing import BaseConverter

from services.access.principal import Permission, Principal
from services.api.auth import authenticated, require
from services.api.services import Keys

JSON = "application/json"
INDEX_VERSION_HEADER = "X-Vouch-Index-Version"
DATA_AGE_HEADER = "X-Vouch-Data-Age-Seconds"
LINK_HEADER = "Link"


class AssetIdConverter(BaseConverter):
    """The rest of the path as an asset id: ids may hold slashes, double ones and a leading one included."""

    part_isolating = False
    regex = ".+"


@dataclass(frozen=True)
class Answer:
    """A good answer: its media type and, for JSON, its record; `also` are media types that a caller may ask for."""

    description: str
    model: type[BaseModel] | None = None
    media_type: str = JSON
    also: tuple[str, ...] = ()
    status: HTTPStatus = HTTPStatus.OK


@dataclass(frozen=True)
class Route:
    """One method at one path. `view` takes the parameters of the path, after the caller when `keyed`.

    `query` is the record of the query string; a `paged` answer names the next page in its header Link. `problems` are
    the error statuses that the view can answer beside those that its other fields imply.
    """

    method: str
    path: str
    name: str
    summary: str
    tag: str
    answer: Answer
    view: Callable[..., Response]
    keyed: bool = False
    permission: Permission | None = None
    body: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    paged: bool = False
    rests_on_index: bool = False
    problems: tuple[HTTPStatus, ...] = ()


def add_routes(app: Flask, routes: tuple[Route, ...], keys: Keys) -> None:
    """Serve the routes; those that are `keyed` find out who is calling before their view runs."""
    for route in routes:
        view = _guarded(route, keys) if route.keyed else route.view
        app.add_url_rule(route.path, endpoint=route.name, view_func=view, methods=[route.method])


def _guarded(route: Route, keys: Keys) -> Callable[..., Response]:
    """The view behind its guard: the caller first, then the permission, and only then the request is read."""

    @wraps(route.view)
    def view(**path_parameters: Any) -> Response:
        caller: Principal = authenticated(request.headers, keys)
        g.user = caller.user
        if route.permission is not None:
            require(caller, route.permission)
        return route.view(caller, **path_parameters)

    return view


def json_response(
    document: BaseModel, *, index_version: int | None = None, data_age_seconds: float | None = None
) -> Response:
    """The record as JSON; what it rests on is said in headers too, so that no caller needs to parse for it."""
    return rested(Response(document.model_dump_json(), mimetype=JSON), index_version, data_age_seconds)


def rested(response: Response, index_version: int | None, data_age_seconds: float | None) -> Response:
    """The response with what it rests on in its headers."""
    if index_version is not None:
        response.headers[INDEX_VERSION_HEADER] = str(index_version)
    if data_age_seconds is not None:
        response.headers[DATA_AGE_HEADER] = str(round(data_age_seconds))
    return response
