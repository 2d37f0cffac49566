"""From the bytes of a request to a checked record, or a refusal that names each field and what would be right."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any, NoReturn, TypeVar, get_origin

from flask import Request
from pydantic import BaseModel, ValidationError
from werkzeug.exceptions import RequestEntityTooLarge

from services.api.expectations import expectation, known_fields
from services.api.problems import FieldError, RequestRefused
from services.api.routing import JSON
from services.retrieval.model import QUERY_BYTES_LIMIT, Mode, SearchRequest
from services.text.clean import scrub

Record = TypeVar("Record", bound=BaseModel)
WHOLE_BODY = "body"
# An answer must not grow with what is wrong in the request.
ERRORS_TOLD = 20
FIELD_CHARACTERS = 200


def parse_search(request: Request) -> SearchRequest:
    """The search that the request asks for. Raises RequestRefused: 400 no JSON, 413, 415, 422 a field is wrong."""
    document, canonical = _json_object(request)
    query = document.get("query")
    if isinstance(query, str) and len(query.encode()) > QUERY_BYTES_LIMIT:
        _refuse(FieldError(field="query", message=f"must be at most {QUERY_BYTES_LIMIT} bytes of UTF-8"))
    search = _validated(SearchRequest, canonical)
    if search.mode is Mode.ANALYSIS and not search.query:
        _refuse(FieldError(field="query", message="must not be empty; only discovery mode searches without a query"))
    return search


def parse_parameters(model: type[Record], request: Request) -> Record:
    """The record that the query string asks for; a parameter may be repeated where its field takes several values.

    Raises RequestRefused (422) for a parameter that is unknown, repeated or wrong.
    """
    given: dict[str, list[str] | str] = {}
    errors: list[FieldError] = []
    for name, values in request.args.lists():
        field = model.model_fields.get(name)
        if field is None:
            known = ", ".join(model.model_fields)
            errors.append(FieldError(field=_cut(name), message=f"unknown parameter; known are: {known}"))
        elif scrub(values)[1]:
            errors.append(FieldError(field=name, message="must not contain NUL characters or lone surrogates"))
        elif get_origin(field.annotation) is tuple:
            given[name] = values
        elif len(values) > 1:
            errors.append(FieldError(field=name, message="must not stand more than once"))
        else:
            given[name] = values[0]
    try:
        record = model.model_validate(given)
    except ValidationError as error:
        for fault in error.errors(include_url=False, include_input=False, include_context=False):
            message = f"must be {expectation(model, fault['loc'])}".removesuffix(" or null")
            errors.append(FieldError(field=".".join(map(str, fault["loc"])), message=message))
    if errors:
        _refuse(*errors[:ERRORS_TOLD])
    return record


def _cut(name: str) -> str:
    return str(scrub(name)[0])[:FIELD_CHARACTERS]


def _json_object(request: Request) -> tuple[dict[str, Any], str]:
    """The body as a JSON object whose every string a store can keep, and written again as JSON."""
    if request.mimetype != JSON:
        raise RequestRefused(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "unsupported-media-type",
            f"Send the body as {JSON}.",
            headers={"Accept-Post": JSON},
        )
    try:
        body = request.get_data()
    except OSError as error:  # what the server raises for chunks that are none
        raise _malformed() from error
    if request.content_length is None and len(body) == request.max_content_length:
        raise RequestEntityTooLarge  # a body of unannounced length is cut at the limit without a word
    try:
        document = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
        canonical = json.dumps(document)
    except json.JSONDecodeError as error:
        raise _malformed(f" (line {error.lineno}, column {error.colno})") from error
    except (ValueError, RecursionError) as error:  # no UTF-8, no JSON value, or nested beyond any request
        raise _malformed() from error
    if not isinstance(document, dict):
        _refuse(FieldError(field=WHOLE_BODY, message="must be a JSON object"))
    for field, value in document.items():
        if scrub([field, value])[1]:
            name = scrub(field)[0]
            _refuse(FieldError(field=name, message="must not contain NUL characters or lone surrogates"))
    return document, canonical


def _malformed(where: str = "") -> RequestRefused:
    return RequestRefused(
        HTTPStatus.BAD_REQUEST, "malformed-body", f"The body is not one JSON document in UTF-8{where}."
    )


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return document


def _validated(model: type[Record], canonical: str) -> Record:
    """Strict: a string is no number and no boolean. (Pydantic is strict in JSON's own types only when given JSON.)"""
    try:
        return model.model_validate_json(canonical, strict=True)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        if faults[0]["type"] == "json_invalid":  # Python reads deeper nesting than pydantic
            raise _malformed() from error
        _refuse(*(_field_error(model, fault["loc"], fault["type"]) for fault in faults[:ERRORS_TOLD]))


def _field_error(model: type[BaseModel], location: tuple[int | str, ...], fault: str) -> FieldError:
    field = ".".join(map(str, location))[:FIELD_CHARACTERS]
    if fault == "extra_forbidden":
        known = ", ".join(known_fields(model, location[:-1]))
        return FieldError(field=field, message=f"unknown field; known are: {known}")
    return FieldError(field=field, message=f"must be {expectation(model, location)}")


def _refuse(*errors: FieldError) -> NoReturn:
    named = ", ".join(dict.fromkeys(error.field for error in errors))
    raise RequestRefused(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "invalid-request",
        f"The request cannot be carried out as asked; see: {named}.",
        errors,
    )
