"""GET /v1/worklist: who may ask, what may be asked, and the two forms of its answer."""

from __future__ import annotations

import csv
import io
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from services.access.principal import Permission
from services.api.routes.worklist import WorklistQuery
from services.catalog.model import ObjectType
from services.errors import InvalidRequest
from services.retrieval.worklist_view import ContactView, StepView, WorklistItem, WorklistRequest

from .conftest import GOVERNANCE, Api

PATH = "/v1/worklist"
STEP = StepView(item="owner_or_steward", points=13.636364, step="Name an owner or a steward")
ITEM = WorklistItem(
    id="t:orders",
    object_type=ObjectType.TABLE,
    name="=cmd|' /C calc'!A0",
    title="Größe",
    source="shop",
    url=None,
    curation_score=50,
    curation_native=False,
    threshold=60,
    points_missing=10,
    gaps=(STEP,),
    fewest_steps=(STEP,),
    curation_score_after=63.636364,
    contact=ContactView(role=None, names=()),
    governance_score=0.2,
    governance=GOVERNANCE,
)


def get(api: Api, query: str = "", **headers: str) -> Any:
    return api.client.get(f"{PATH}{query}", headers={**api.headers(Permission.STEWARD), **headers})


def errors(response: Any) -> dict[str, str]:
    assert response.status_code == 422
    assert response.mimetype == "application/problem+json"
    return {error["field"]: error["message"] for error in response.json["errors"]}


def test_it_needs_the_permission_steward(api: Api) -> None:
    others = [permission for permission in Permission if permission is not Permission.STEWARD]
    assert api.client.get(PATH).status_code == 401
    refused = api.client.get(PATH, headers=api.headers(*others))
    assert refused.status_code == 403
    assert "steward" in refused.json["detail"]
    assert api.worklist.asked == []
    assert get(api).status_code == 200


def test_the_answer_as_json(api: Api) -> None:
    api.worklist.items = (ITEM,)
    response = get(api)
    assert response.mimetype == "application/json"
    assert set(response.json) == {
        "request_id", "index_version", "data_age_seconds", "entries", "next_cursor", "summary",
    }  # fmt: skip
    [entry] = response.json["entries"]
    assert entry["gaps"] == [{"item": "owner_or_steward", "points": 13.636364, "step": "Name an owner or a steward"}]
    assert (entry["contact"], entry["curation_native"]) == ({"role": None, "names": []}, False)
    assert entry["governance"][0]["origin"] == "native"
    assert (response.json["next_cursor"], response.json["summary"]["assets"]) == (None, 1)
    assert "Link" not in response.headers
    assert (response.headers["X-Vouch-Index-Version"], response.headers["X-Vouch-Data-Age-Seconds"]) == ("7", "94")
    assert response.headers["Vary"] == "Accept"


@pytest.mark.parametrize(
    ("query", "accept", "is_csv"),
    [
        ("", "text/csv", True),
        ("", "text/csv;q=0.9, application/json;q=0.5", True),
        ("", "application/json, text/csv;q=0.5", False),
        ("", "*/*", False),
        ("", "text/html", False),
        ("?format=csv", "application/json", True),
        ("?format=json", "text/csv", False),
    ],
)
def test_the_form_is_the_one_asked_for(api: Api, query: str, accept: str, is_csv: bool) -> None:
    response = get(api, query, Accept=accept)
    assert response.mimetype == ("text/csv" if is_csv else "application/json")
    [(asked, _)] = api.worklist.asked
    assert asked.summary is not is_csv  # nothing is added up that is not shown


def test_the_answer_as_csv_is_utf_8_with_a_header_and_no_formula(api: Api) -> None:
    api.worklist.items = (ITEM,)
    response = get(api, "?format=csv")
    assert response.headers["Content-Type"] == "text/csv; charset=utf-8; header=present"
    assert response.headers["Content-Disposition"] == 'attachment; filename="worklist.csv"'
    [row] = csv.DictReader(io.StringIO(response.data.decode("utf-8")))
    assert (row["title"], row["name"]) == ("Größe", "'" + ITEM.name)
    assert (row["ask"], row["fewest_steps"]) == ("nobody on record", "Name an owner or a steward (+13.64)")
    assert response.headers["X-Vouch-Index-Version"] == "7"


def test_filters_and_paging_reach_the_service(api: Api) -> None:
    get(api, "?source=shop&source=lake&type=table&type=file&owner=sales-data-owners&limit=1000&cursor=abc")
    [(asked, caller)] = api.worklist.asked
    assert asked == WorklistRequest(
        source=("shop", "lake"),
        type=(ObjectType.TABLE, ObjectType.FILE),
        owner=("sales-data-owners",),
        limit=1000,
        cursor="abc",
    )
    assert type(asked) is WorklistRequest
    assert caller.user == "sales-ops-lead"


@pytest.mark.parametrize("form", ["json", "csv"])
def test_the_next_page_is_linked_with_the_same_filters(api: Api, form: str) -> None:
    api.worklist.next_cursor = "WzEuNSwgImEiXQ"
    response = get(api, f"?source=a%26b&source=c&type=table&limit=5&format={form}")
    target, _, relation = response.headers["Link"].partition(">; ")
    assert relation == 'rel="next"'
    address = urlsplit(target.removeprefix("<"))
    assert address.path == PATH
    asked = parse_qs(address.query)
    assert (asked["cursor"], asked["source"], asked["type"]) == ([api.worklist.next_cursor], ["a&b", "c"], ["table"])
    follow = get(api, f"?{address.query}")
    assert follow.status_code == 200
    assert api.worklist.asked[-1][0].cursor == api.worklist.next_cursor
    assert follow.mimetype == ("text/csv" if form == "csv" else "application/json")


@pytest.mark.parametrize(
    ("query", "field", "message"),
    [
        ("?limit=0", "limit", "must be a whole number from 1 to 1000"),
        ("?limit=1001", "limit", "must be a whole number from 1 to 1000"),
        ("?limit=ten", "limit", "must be a whole number from 1 to 1000"),
        ("?limit=5&limit=6", "limit", "must not stand more than once"),
        ("?type=spreadsheet", "type.0", "must be one of: table, file, "),
        ("?format=xml", "format", "must be one of: json, csv"),
        ("?summary=perhaps", "summary", "must be true or false"),
        ("?owner=a%00b", "owner", "must not contain NUL"),
        ("?cursor=%00", "cursor", "must not contain NUL"),
        ("?Source=shop", "Source", "unknown parameter; known are: source, type, owner, "),
        ("?" + "x" * 500 + "=1", "x" * 200, "unknown parameter"),
    ],
)
def test_what_is_wrong_is_named_with_what_would_be_right(api: Api, query: str, field: str, message: str) -> None:
    found = errors(get(api, query))
    assert found[field].startswith(message)
    assert api.worklist.asked == []


def test_everything_that_is_wrong_is_named_at_once_but_not_without_end(api: Api) -> None:
    assert set(errors(get(api, "?limit=0&format=xml&colour=red"))) == {"limit", "format", "colour"}
    many = "&".join(f"p{number}=1" for number in range(100))
    assert len(errors(get(api, f"?{many}"))) == 20


def test_a_cursor_that_is_none_is_a_problem_that_names_it(api: Api) -> None:
    api.worklist.fails_with = InvalidRequest("cursor: this is none")
    response = get(api, "?cursor=x")
    assert (response.status_code, response.mimetype) == (422, "application/problem+json")
    assert response.json["detail"].startswith("cursor: ")


def test_the_document_shows_parameters_and_both_forms(api: Api) -> None:
    document: Any = api.client.get("/openapi.json").json
    operation = document["paths"][PATH]["get"]
    parameters = {item["name"]: item for item in operation["parameters"] if item["in"] == "query"}
    assert list(parameters) == list(WorklistQuery.model_fields)
    assert not any(item["required"] for item in parameters.values())
    assert (parameters["limit"]["schema"]["minimum"], parameters["limit"]["schema"]["maximum"]) == (1, 1000)
    assert parameters["type"]["schema"]["items"] == {"$ref": "#/components/schemas/ObjectType"}
    assert parameters["format"]["schema"]["enum"] == ["json", "csv"]
    assert set(operation["responses"]["200"]["content"]) == {"application/json", "text/csv"}
    assert {"200", "401", "403", "422", "500", "503"} == set(operation["responses"])
    assert "Link" in operation["responses"]["200"]["headers"]
    assert "steward" in operation["description"]
