"""The OpenAPI document and a page to read and try it: everything is served from here, no network is needed."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import Any

from flask import Response
from werkzeug.exceptions import NotFound

from services.api.routing import JSON, Answer, Route

# Swagger UI sets style attributes while it runs; scripts come from files only.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
TAG = "documentation"
HTML = "text/html"
PAGE = ("services", "api/pages/docs.html", HTML)
SWAGGER_UI = "flask_openapi3_swagger"
ASSETS = {
    "docs.js": ("services", "api/pages/docs.js", "text/javascript"),
    "swagger-ui.css": (SWAGGER_UI, "templates/swagger/css/swagger-ui.css", "text/css"),
    "swagger-ui-bundle.js": (SWAGGER_UI, "templates/swagger/js/swagger-ui-bundle.js", "text/javascript"),
    "swagger.svg": (SWAGGER_UI, "templates/swagger/images/swagger.svg", "image/svg+xml"),
}


@cache
def _packaged(package: str, path: str) -> bytes:
    return files(package).joinpath(path).read_bytes()


def docs_routes(document: Callable[[], dict[str, Any]]) -> tuple[Route, ...]:
    """`document` gives the OpenAPI document; it is asked when one is wanted, since it describes these routes too."""

    def openapi() -> Response:
        return Response(json.dumps(document()), mimetype=JSON)

    at_docs = Answer("The documentation is at /docs.", media_type=HTML, status=HTTPStatus.FOUND)
    the_page = Answer("The page.", media_type=HTML)
    a_file = Answer("A file.", media_type="*/*")
    no_file = (HTTPStatus.NOT_FOUND,)
    return (
        Route("GET", "/", "home", "Leads to the documentation.", TAG, at_docs, _home),
        Route("GET", "/openapi.json", "openapi", "This document.", TAG, Answer("OpenAPI 3.1."), openapi),
        Route("GET", "/docs", "docs", "A page to read and try this document.", TAG, the_page, _page),
        Route(
            "GET",
            "/docs/<name>",
            "docs_asset",
            "Scripts and styles of the page.",
            TAG,
            a_file,
            _asset,
            problems=no_file,
        ),
    )


def _home() -> Response:
    return Response(status=HTTPStatus.FOUND, headers={"Location": "/docs"})


def _page() -> Response:
    response = _file(*PAGE)
    response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    return response


def _asset(name: str) -> Response:
    if name not in ASSETS:
        raise NotFound
    response = _file(*ASSETS[name])
    response.cache_control.max_age = 3600
    return response


def _file(package: str, path: str, media_type: str) -> Response:
    return Response(_packaged(package, path), mimetype=media_type)
