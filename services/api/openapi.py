"""The OpenAPI 3.1 document: built from the route table and the records, so that it says what the code does."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from services.api.problems import PROBLEM_JSON, Problem
from services.api.routing import DATA_AGE_HEADER, INDEX_VERSION_HEADER, JSON, LINK_HEADER, Route

Document = dict[str, Any]

SCHEMAS = "#/components/schemas/"
SECURITY: list[dict[str, list[str]]] = [{"bearer": []}, {"apiKey": []}]
_PATH_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
_PARAMETERS = {
    "asset_id": "the asset's id, percent-encoded (slashes may stay as they are)",
    "name": "the file's name",
}
_PROBLEMS = {
    HTTPStatus.BAD_REQUEST: "The body is no JSON.",
    HTTPStatus.UNAUTHORIZED: "No API key, or one that is not valid.",
    HTTPStatus.FORBIDDEN: "The API key lacks a permission; the problem names it.",
    HTTPStatus.NOT_FOUND: "There is no such thing, or none that the caller may see.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is too large.",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "The body is not sent as application/json.",
    HTTPStatus.UNPROCESSABLE_ENTITY: "A field is wrong; the problem names each and what would be right.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "Something went wrong here.",
    HTTPStatus.SERVICE_UNAVAILABLE: "Not now; the header Retry-After says when to try again.",
}
_EXAMPLE_SEARCH = {"query": "monthly revenue per customer", "limit": 5}


def openapi_document(routes: tuple[Route, ...]) -> Document:
    """The whole document. Every route is in it once, with its parameters, answers, problems and security."""
    paths: dict[str, Document] = {}
    for route in routes:
        paths.setdefault(openapi_path(route.path), {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Vouch query API",
            "version": version("vouch"),
            "description": "Which governed assets answer this, may this caller see them, and why believe them?",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": tag} for tag in dict.fromkeys(route.tag for route in routes)],
        "paths": paths,
        "components": {
            "schemas": _schemas(routes),
            "headers": _headers(),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            },
        },
    }


def openapi_path(rule: str) -> str:
    """A Flask rule as OpenAPI writes it: `/v1/assets/<asset_id:asset_id>` -> `/v1/assets/{asset_id}`."""
    return _PATH_PARAMETER.sub(r"{\1}", rule)


def _operation(route: Route) -> Document:
    operation: Document = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [route.tag],
        "security": SECURITY if route.keyed else [],
        "parameters": [
            *(_path_parameter(name) for name in _PATH_PARAMETER.findall(route.path)),
            *_query_parameters(route.query),
            {
                "name": "X-Request-ID",
                "in": "header",
                "description": "the caller's own id for this request; one is made when it is missing or unfit",
                "schema": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"},
            },
        ],
        "responses": {str(route.answer.status.value): _answer(route)} | _problems(route),
    }
    if route.permission is not None:
        operation["description"] = f"Needs the permission `{route.permission}`."
    if route.body is not None:
        content = {"schema": {"$ref": SCHEMAS + route.body.__name__}, "example": _EXAMPLE_SEARCH}
        operation["requestBody"] = {"required": True, "content": {JSON: content}}
    return operation


def _path_parameter(name: str) -> Document:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": _PARAMETERS[name],
        "schema": {"type": "string"},
    }


def _query_parameters(model: type[BaseModel] | None) -> list[Document]:
    """One parameter for each field; one that takes several values is repeated."""
    if model is None:
        return []
    properties = model.model_json_schema(ref_template=SCHEMAS + "{model}")["properties"]
    return [_query_parameter(name, dict(schema)) for name, schema in properties.items()]


def _query_parameter(name: str, schema: Document) -> Document:
    description = schema.pop("description", "")
    if schema.get("default", "") is None:  # left out, not sent as null
        [schema] = [option for option in schema["anyOf"] if option != {"type": "null"}]
    parameter = {"name": name, "in": "query", "required": False, "schema": schema}
    return {**parameter, "description": description} if description else parameter


def _answer(route: Route) -> Document:
    names = ["X-Request-ID", *([INDEX_VERSION_HEADER, DATA_AGE_HEADER] if route.rests_on_index else [])]
    names += [LINK_HEADER] if route.paged else []
    answer: Document = {"description": route.answer.description, "headers": _header_references(names)}
    if route.answer.model is not None:
        answer["content"] = {JSON: {"schema": {"$ref": SCHEMAS + route.answer.model.__name__}}}
    elif route.answer.status is HTTPStatus.OK:
        answer["content"] = {route.answer.media_type: {"schema": {}}}
    for media_type in route.answer.also:
        answer["content"][media_type] = {"schema": {"type": "string"}}
    return answer


def _problems(route: Route) -> Document:
    statuses = {HTTPStatus.INTERNAL_SERVER_ERROR, *route.problems}
    if route.keyed:
        statuses |= {HTTPStatus.UNAUTHORIZED, HTTPStatus.SERVICE_UNAVAILABLE}
    if route.permission is not None:
        statuses.add(HTTPStatus.FORBIDDEN)
    if route.body is not None:
        statuses |= {
            HTTPStatus.BAD_REQUEST,
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            HTTPStatus.UNPROCESSABLE_ENTITY,
        }
    if route.query is not None:
        statuses.add(HTTPStatus.UNPROCESSABLE_ENTITY)
    return {str(status.value): _problem(status) for status in sorted(statuses)}


def _problem(status: HTTPStatus) -> Document:
    names = ["X-Request-ID"]
    if status is HTTPStatus.UNAUTHORIZED:
        names.append("WWW-Authenticate")
    if status is HTTPStatus.SERVICE_UNAVAILABLE:
        names.append("Retry-After")
    return {
        "description": _PROBLEMS[status],
        "headers": _header_references(names),
        "content": {PROBLEM_JSON: {"schema": {"$ref": SCHEMAS + Problem.__name__}}},
    }


def _header_references(names: list[str]) -> Document:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _headers() -> Document:
    def header(description: str, kind: str) -> Document:
        return {"description": description, "schema": {"type": kind}}

    return {
        "X-Request-ID": header("the id of this request, as in the log", "string"),
        INDEX_VERSION_HEADER: header("the index version that answered", "integer"),
        LINK_HEADER: header('the next page, as rel="next"; left out on the last one', "string"),
        DATA_AGE_HEADER: header("seconds since the last successful refresh; left out before the first", "integer"),
        "WWW-Authenticate": header("how to authenticate", "string"),
        "Retry-After": header("seconds to wait before the same request is worth another try", "integer"),
    }


def _schemas(routes: tuple[Route, ...]) -> Document:
    bodies = {model for route in routes for model in (route.body, route.query) if model is not None}
    answers = {route.answer.model for route in routes if route.answer.model is not None} | {Problem}
    _, definitions = models_json_schema(
        [*_in_mode(bodies, "validation"), *_in_mode(answers, "serialization")], ref_template=SCHEMAS + "{model}"
    )
    schemas: Document = definitions["$defs"]
    return schemas


def _in_mode(models: Iterable[type[BaseModel]], mode: JsonSchemaMode) -> list[tuple[type[BaseModel], JsonSchemaMode]]:
    return [(model, mode) for model in sorted(models, key=lambda model: model.__name__)]
