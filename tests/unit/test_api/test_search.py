"""POST /v1/search: what is asked reaches the service, what is wrong is named, and nothing wrong reaches it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from werkzeug.test import TestResponse

from services.access.principal import Permission
from services.access.rule import Level
from services.retrieval.model import Mode, SearchRequest

from .conftest import Api

QUERY_LIMIT = 16 * 1024


def ask(api: Api, body: object, *permissions: Permission) -> TestResponse:
    return api.client.post("/v1/search", json=body, headers=api.headers(*permissions))


def send(api: Api, body: bytes, content_type: str | None = "application/json") -> TestResponse:
    return api.client.post("/v1/search", data=body, content_type=content_type, headers=api.headers())


def errors(response: TestResponse) -> dict[str, str]:
    assert response.json is not None
    return {error["field"]: error["message"] for error in response.json["errors"]}


def test_the_answer_is_the_services_own_with_its_version_and_age_in_headers(api: Api) -> None:
    response = ask(api, {"query": "  orders per customer ", "limit": 5, "filters": {"tag": ["Finance"]}})

    assert response.status_code == 200
    assert response.json is not None
    assert response.json["index_version"] == 7
    assert response.json["results"][0]["id"] == "postgres:table:shop.public.orders"
    assert response.headers["X-Vouch-Index-Version"] == "7"
    assert response.headers["X-Vouch-Data-Age-Seconds"] == "94"
    assert response.headers["Cache-Control"] == "no-store"
    [(asked, caller, request_id)] = api.search.asked
    assert asked.query == "orders per customer"
    assert (asked.mode, asked.limit, asked.filters.tag) == (Mode.ANALYSIS, 5, ("Finance",))
    assert (caller.user, caller.groups, caller.administrator) == ("sales-ops-lead", ("sales",), False)
    assert request_id == response.json["request_id"] == response.headers["X-Request-ID"]


def test_optional_parts_are_left_out_while_an_absent_signal_is_null(api: Api) -> None:
    plain = ask(api, {"query": "orders"}).json
    explained = ask(api, {"query": "orders", "explain": True}, Permission.SEARCH, Permission.EXPLAIN).json

    assert plain is not None
    assert explained is not None
    assert "refusal" not in plain
    assert not {"pinned", "siblings", "explain"} & set(plain["results"][0])
    assert plain["results"][0]["url"] is None
    assert explained["results"][0]["explain"]["vector_similarity"] is None
    assert explained["results"][0]["explain"]["governance"][0]["contribution"] == 0.2


def test_explain_without_its_permission_is_refused_by_name_before_any_search(api: Api) -> None:
    response = ask(api, {"query": "orders", "explain": True}, Permission.SEARCH)
    assert response.status_code == 403
    assert response.json is not None
    assert "'explain'" in response.json["detail"]
    assert api.search.asked == []


def test_a_filter_that_would_tell_a_guarded_number_bit_by_bit_needs_the_permission_for_the_number(api: Api) -> None:
    body = {"query": "orders", "filters": {"min_curation_score": 50}}
    response = ask(api, body, Permission.SEARCH, Permission.STEWARD)
    assert response.status_code == 403
    assert response.json is not None
    assert response.json["type"] == "urn:vouch:problem:permission-missing"
    assert response.json["detail"].startswith("The filter min_curation_score needs the permission 'explain'")
    assert api.search.asked == []
    # Zero would say nothing, but a rule with exceptions is one to be mistaken about.
    assert ask(api, {"query": "orders", "filters": {"min_curation_score": 0}}).status_code == 403
    assert ask(api, body, Permission.SEARCH, Permission.EXPLAIN).status_code == 200
    own = ask(api, {"query": "orders", "min_relevance": 0.4}, Permission.SEARCH)
    assert own.status_code == 403
    assert own.json is not None
    assert own.json["detail"].startswith("A min_relevance of one's own needs the permission 'explain'")
    assert ask(api, {"query": "orders", "min_relevance": 0.4}, Permission.SEARCH, Permission.EXPLAIN).status_code == 200
    # What an asset's attributes show to everybody who sees it is open to filter by.
    assert ask(api, {"query": "orders", "filters": {"min_data_quality": 50}}).status_code == 200


@pytest.mark.parametrize(
    ("change", "field", "right"),
    [
        ({"limit": 0}, "limit", "from 1 to 50"),
        ({"limit": -1}, "limit", "from 1 to 50"),
        ({"limit": 51}, "limit", "from 1 to 50"),
        ({"limit": "x"}, "limit", "a whole number from 1 to 50"),
        ({"limit": "5"}, "limit", "a whole number from 1 to 50"),
        ({"limit": 5.0}, "limit", "a whole number from 1 to 50"),
        ({"limit": True}, "limit", "a whole number from 1 to 50"),
        ({"limit": None}, "limit", "a whole number from 1 to 50"),
        ({"limit": 10**400}, "limit", "from 1 to 50"),
        ({"candidate_limit": 201}, "candidate_limit", "from 1 to 200"),
        ({"mode": "reasoning"}, "mode", "one of: analysis, discovery"),
        ({"query": 5}, "query", "a string"),
        ({"query": None}, "query", "a string"),
        ({"query": ["orders"]}, "query", "a string"),
        ({"explain": "yes"}, "explain", "true or false"),
        ({"explain": 1}, "explain", "true or false"),
        ({"object_types": "table"}, "object_types", "an array"),
        ({"object_types": ["table", "view"]}, "object_types.1", "one of: table, file, report"),
        ({"filters": []}, "filters", "an object"),
        ({"filters": {"tag": "Finance"}}, "filters.tag", "an array of which each item is a string"),
        ({"filters": {"tag": [1]}}, "filters.tag.0", "a string"),
        ({"filters": {"certification": ["gold"]}}, "filters.certification.0", "one of: certified, cautioned"),
        (
            {"filters": {"classification": ["Public", "Secrt"]}},
            "filters.classification.1",
            "one of: Public, Internal, Confidential, Restricted",
        ),
        ({"filters": {"classification": [""]}}, "filters.classification.0", "one of: Public, Internal"),
        ({"filters": {"min_curation_score": 101}}, "filters.min_curation_score", "from 0 to 100 or null"),
        ({"filters": {"critical_data_element": "no"}}, "filters.critical_data_element", "true or false or null"),
        ({"filters": {"colour": ["red"]}}, "filters.colour", "unknown field; known are: source, tag, term"),
        ({"min_relevance": 1.5}, "min_relevance", "from 0 to 1 or null"),
        ({"question": "orders"}, "question", "unknown field; known are: query, mode, limit"),
    ],
)
def test_a_wrong_field_is_named_with_what_would_be_right(
    api: Api, change: dict[str, Any], field: str, right: str
) -> None:
    response = ask(api, {"query": "orders", **change})
    assert response.status_code == 422
    assert response.mimetype == "application/problem+json"
    assert list(errors(response)) == [field]
    assert right in errors(response)[field]
    assert api.search.asked == []


def test_the_levels_of_the_classification_filter_are_those_that_there_are_in_any_case(api: Api) -> None:
    names = [level.label for level in Level]
    response = ask(api, {"query": "orders", "filters": {"classification": [" public ", "INTERNAL", *names[2:]]}})
    assert response.status_code == 200
    assert list(api.search.asked[0][0].filters.classification) == names


def test_every_wrong_field_is_named_at_once(api: Api) -> None:
    response = ask(api, {"query": "orders", "limit": 0, "mode": "x", "who": "me"})
    assert set(errors(response)) == {"limit", "mode", "who"}


@pytest.mark.parametrize("query", ["", "   ", "\t\n"])
def test_an_empty_query_is_for_discovery_only(api: Api, query: str) -> None:
    refused = ask(api, {"query": query})
    assert refused.status_code == 422
    assert "discovery" in errors(refused)["query"]
    assert ask(api, {}).status_code == 422
    assert api.search.asked == []

    assert ask(api, {"query": query, "mode": "discovery"}).status_code == 200
    assert api.search.asked[0][0] == SearchRequest(mode=Mode.DISCOVERY)


@pytest.mark.parametrize("character", ["q", "ü", "漢", "😀"])
def test_a_query_is_measured_in_bytes_of_utf8(api: Api, character: str) -> None:
    most = character * (QUERY_LIMIT // len(character.encode()))
    assert ask(api, {"query": most}).status_code == 200
    refused = ask(api, {"query": most + character})
    assert refused.status_code == 422
    assert "16384 bytes" in errors(refused)["query"]


@pytest.mark.parametrize(("size", "status"), [(20_000, 422), (100_000, 413)])
def test_a_large_query_is_refused_and_a_larger_body_is_not_even_read(api: Api, size: int, status: int) -> None:
    response = ask(api, {"query": "q" * size})
    assert response.status_code == status
    assert response.mimetype == "application/problem+json"
    assert api.search.asked == []


@pytest.mark.parametrize(
    "text", [r'{"query": "a\u0000b"}', r'{"query": "\ud800"}', r'{"query": "\udc00\ud800 swapped"}']
)
def test_characters_that_no_store_can_keep_are_refused_in_the_query(api: Api, text: str) -> None:
    response = send(api, text.encode())
    assert response.status_code == 422
    assert "query" in errors(response)
    assert api.search.asked == []


@pytest.mark.parametrize(
    "text", [r'{"query": "a", "filters": {"tag": ["\u0000"]}}', r'{"query": "a", "filters": {"\ud800": []}}']
)
def test_characters_that_no_store_can_keep_are_refused_everywhere(api: Api, text: str) -> None:
    assert "filters" in errors(send(api, text.encode()))


def test_a_surrogate_pair_is_a_character_like_any_other(api: Api) -> None:
    assert send(api, rb'{"query": "\ud83d\ude00"}').status_code == 200
    assert api.search.asked[0][0].query == "😀"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"query": "a"} x',
        b"{'query': 'a'}",
        b'{"query": NaN}',
        b'{"min_relevance": Infinity}',
        b'{"query": "a", "query": "b"}',
        b'{"filters": {"tag": [], "tag": ["x"]}}',
        b'{"query": "\xff"}',
        '{"query": "a"}'.encode("utf-16"),
        b"[" * 60_000,
        b'{"limit": ' + b"9" * 5_000 + b"}",
    ],
)
def test_what_is_not_one_json_document_is_a_bad_request(api: Api, body: bytes) -> None:
    response = send(api, body)
    assert response.status_code == 400
    assert response.mimetype == "application/problem+json"
    assert api.search.asked == []


class BrokenChunks:
    """A body whose chunks are none, as the server's input tells it."""

    def tell(self) -> int:
        return 0

    def seek(self, _offset: int, _whence: int = 0) -> int:
        return 0

    def close(self) -> None:
        return

    def read(self, _size: int = -1) -> bytes:
        raise OSError("Invalid chunk size: 'zz'")


def test_a_body_that_breaks_off_between_chunks_is_a_bad_request(api: Api) -> None:
    response = api.client.post(
        "/v1/search",
        headers=api.headers(),
        content_type="application/json",
        input_stream=BrokenChunks(),
        environ_overrides={"wsgi.input_terminated": True},
    )
    assert response.status_code == 400
    assert api.search.asked == []


@pytest.mark.parametrize("depth", [3, 150, 250, 600, 900, 990, 1100, 20_000])
def test_nesting_of_any_depth_is_the_callers_error(api: Api, depth: int) -> None:
    body = '{"query": "a", "filters": {"tag": ' + "[" * depth + "]" * depth + "}}"
    assert send(api, body.encode()).status_code in {400, 422}


@pytest.mark.parametrize("body", ["[]", '"orders"', "5", "null", "true"])
def test_json_that_is_no_object_is_named_so(api: Api, body: str) -> None:
    response = send(api, body.encode())
    assert response.status_code == 422
    assert errors(response) == {"body": "must be a JSON object"}


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded", "application/xml"])
def test_another_media_type_is_refused(api: Api, content_type: str | None) -> None:
    response = send(api, b'{"query": "a"}', content_type)
    assert response.status_code == 415
    assert response.headers["Accept-Post"] == "application/json"


def test_a_charset_beside_the_media_type_is_fine(api: Api) -> None:
    assert send(api, b'{"query": "a"}', "application/json; charset=utf-8").status_code == 200


def test_the_answer_to_many_errors_stays_small(api: Api) -> None:
    body = {f"unknown{number}": 1 for number in range(3_000)} | {"x" * 10_000: 1}
    response = send(api, json.dumps(body).encode())
    assert response.status_code == 422
    assert len(response.data) < 20_000
