"""/openapi.json is a valid OpenAPI 3.1 document, complete against the routes and true of what they answer."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from services.access.principal import Permission
from services.api.openapi import openapi_path

from .conftest import Api, asset_view

Document = dict[str, Any]


@pytest.fixture
def document(api: Api) -> Document:
    found = api.client.get("/openapi.json").json
    assert found is not None
    return found


def test_the_document_is_valid_openapi_3_1(document: Document) -> None:
    assert document["openapi"] == "3.1.0"
    OpenAPIV31SpecValidator(document).validate()


def test_every_route_is_documented_and_nothing_else_is(api: Api, document: Document) -> None:
    served = {
        (openapi_path(rule.rule), method.lower())
        for rule in api.app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    documented = {(path, method) for path, operations in document["paths"].items() for method in operations}
    assert documented == served
    assert ("/v1/search", "post") in documented


def test_what_needs_a_key_says_so(document: Document) -> None:
    for path, operations in document["paths"].items():
        for operation in operations.values():
            keyed = path.startswith("/v1/")
            assert bool(operation["security"]) == keyed, path
            assert ("401" in operation["responses"]) == keyed, path
    assert set(document["components"]["securitySchemes"]) == {"bearer", "apiKey"}


def test_the_search_request_shows_its_ranges(document: Document) -> None:
    schema = document["components"]["schemas"]["SearchRequest"]
    assert schema["additionalProperties"] is False
    assert (schema["properties"]["limit"]["minimum"], schema["properties"]["limit"]["maximum"]) == (1, 50)
    body = document["paths"]["/v1/search"]["post"]["requestBody"]["content"]["application/json"]
    Draft202012Validator({**schema, "components": document["components"]}).validate(body["example"])


CALLS: list[tuple[str, str, Document | None]] = [
    ("post", "/v1/search", {"query": "orders", "explain": True}),
    ("post", "/v1/search", {"query": "orders", "limit": 0}),
    ("get", "/v1/assets/{asset_id}", None),
    ("get", "/v1/worklist", None),
    ("get", "/v1/status", None),
    ("get", "/healthz", None),
    ("get", "/readyz", None),
    ("get", "/metrics", None),
    ("get", "/", None),
    ("get", "/openapi.json", None),
    ("get", "/docs", None),
    ("get", "/docs/{name}", None),
]


@pytest.mark.parametrize("permissions", [(), (Permission.SEARCH,), tuple(Permission)])
@pytest.mark.parametrize(("method", "path", "body"), CALLS)
def test_every_answer_is_one_that_the_document_promises(
    api: Api, document: Document, method: str, path: str, body: Document | None, permissions: tuple[Permission, ...]
) -> None:
    api.assets.views["a"] = asset_view(id="a")
    headers = api.headers(*permissions) if permissions else {}
    url = path.replace("{asset_id}", "a").replace("{name}", "docs.js")
    response = api.client.open(url, method=method.upper(), json=body, headers=headers)

    promised = document["paths"][path][method]["responses"][str(response.status_code)]

    for name in promised["headers"]:
        assert name in {"X-Vouch-Data-Age-Seconds", "Link"} or name in response.headers, name
    content = promised.get("content", {})
    if response.mimetype in content and response.is_json:
        schema = {**content[response.mimetype]["schema"], "components": document["components"]}
        Draft202012Validator(schema).validate(response.json)
    else:
        assert not content or response.mimetype in content or "*/*" in content
