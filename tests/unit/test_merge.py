"""One asset out of an owner's record and overlays: fields, lists, columns, and what may not be lost."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.catalog.merge import merge_payloads
from services.catalog.model import Asset, CatalogRecord

OWNER: dict[str, Any] = {
    "id": "a",
    "object_type": "table",
    "name": "orders",
    "descriptions": {"source": "from the database", "business": "old words"},
    "tags": [["Finance"], ["Finance", "Revenue"]],
    "synonyms": ["sales"],
    "columns": [{"name": "id", "data_type": "int"}, {"name": "total", "data_type": "numeric", "tags": [["Money"]]}],
    "custom_fields": [{"name": "Cadence", "value": "daily"}],
    "lineage": {"upstream": ["x"]},
    "access": {"classification": "Internal", "groups": ["sales"]},
}


def payload(**fields: Any) -> dict[str, Any]:
    """What a source's line amounts to in the store."""
    return CatalogRecord.model_validate({"id": "a", **fields}).payload()


def test_one_record_is_itself_and_none_is_nothing() -> None:
    assert merge_payloads([OWNER]) == OWNER
    assert merge_payloads([]) == {}


def test_a_stated_field_of_the_overlay_wins_and_an_absent_or_null_one_does_not() -> None:
    merged = merge_payloads([OWNER, payload(title="Orders", descriptions={"business": "new words", "source": None})])
    assert merged["title"] == "Orders"
    assert merged["name"] == "orders"
    assert merged["descriptions"] == {"source": "from the database", "business": "new words"}
    assert merge_payloads([OWNER, {"id": "a", "name": None}])["name"] == "orders"


@pytest.mark.parametrize("stated", [False, 0])
def test_false_and_zero_are_stated(stated: object) -> None:
    owner = payload(critical_data_element=True, data_quality_score=90)
    field = "critical_data_element" if stated is False else "data_quality_score"
    assert merge_payloads([owner, payload(**{field: stated})])[field] == stated


def test_an_overlay_can_take_a_certification_away() -> None:
    owner = payload(certification={"status": "certified", "by": "finance-stewards"})
    merged = merge_payloads([owner, payload(certification={"status": "none"})])
    assert merged["certification"]["status"] == "none"
    assert CatalogRecord.model_validate(merged).payload() == merged


def test_a_certification_without_a_status_takes_none_away() -> None:
    owner = payload(certification={"status": "certified"})
    merged = merge_payloads([owner, payload(certification={"by": "finance-stewards"})])
    assert merged["certification"] == {"status": "certified", "by": "finance-stewards"}


def test_lists_are_united_the_owners_entries_first() -> None:
    merged = merge_payloads(
        [
            OWNER,
            payload(
                tags=[["Finance", "Revenue"], ["PII"]],
                synonyms=["sales", "bookings"],
                lineage={"upstream": ["y", "x"], "downstream": ["z"]},
                access={"groups": ["finance"]},
            ),
        ]
    )
    assert merged["tags"] == [["Finance"], ["Finance", "Revenue"], ["PII"]]
    assert merged["synonyms"] == ["sales", "bookings"]
    assert merged["lineage"] == {"upstream": ["x", "y"], "downstream": ["z"]}
    assert merged["access"] == {"classification": "Internal", "groups": ["sales", "finance"]}


def test_columns_and_custom_fields_unite_by_name() -> None:
    overlay = payload(
        columns=[{"name": "total", "description": "net", "tags": [["PII"]]}, {"name": "tax"}],
        custom_fields=[{"name": "Cadence", "value": "hourly"}, {"name": "Golden Source?", "value": True}],
    )
    merged = merge_payloads([OWNER, overlay])
    assert merged["columns"] == [
        {"name": "id", "data_type": "int"},
        {"name": "total", "data_type": "numeric", "tags": [["Money"], ["PII"]], "description": "net"},
        {"name": "tax"},
    ]
    assert merged["custom_fields"] == [
        {"name": "Cadence", "value": "hourly"},
        {"name": "Golden Source?", "value": True},
    ]


def test_an_owner_that_names_a_column_twice_loses_neither() -> None:
    owner = {"id": "a", "columns": [{"name": "c", "data_type": "int"}, {"name": "c", "data_type": "text"}]}
    merged = merge_payloads([owner, {"id": "a", "columns": [{"name": "c", "title": "C"}]}])
    assert merged["columns"] == [*owner["columns"], {"name": "c", "title": "C"}]


@pytest.mark.parametrize("key", ["columns", "custom_fields"])
@pytest.mark.parametrize("items", [["a", "b"], [{"x": 1}], [{"name": 5}], [["a"], 5, None]])
def test_a_list_of_such_a_name_below_extra_may_hold_anything(key: str, items: list[Any]) -> None:
    owner, overlay = payload(extra={key: items}), payload(extra={key: [*items, "new"]})
    assert merge_payloads([owner, overlay])["extra"][key] == [*items, "new"]


def test_values_of_two_kinds_are_replaced_not_mixed() -> None:
    merged = merge_payloads([payload(extra={"k": {"a": 1}, "l": [1]}), payload(extra={"k": [1], "l": {"a": 1}})])
    assert merged["extra"] == {"k": [1], "l": {"a": 1}}


def test_a_later_overlay_wins_over_an_earlier_one() -> None:
    merged = merge_payloads([OWNER, payload(title="first", url="u"), payload(title="second")])
    assert (merged["title"], merged["url"]) == ("second", "u")


def test_the_records_are_left_as_they_were() -> None:
    overlay = payload(
        columns=[{"name": "total", "title": "T", "tags": [["PII"]]}], tags=[["PII"]], extra={"k": {"a": 1}}
    )
    before = copy.deepcopy((OWNER, overlay))
    merge_payloads([OWNER, overlay, overlay])
    assert (OWNER, overlay) == before


names = st.sampled_from(["id", "total", "tax"])
columns = st.lists(st.fixed_dictionaries({"name": names}, optional={"description": names}), max_size=3)
records = st.fixed_dictionaries(
    {},
    optional={
        "title": st.none() | names,
        "critical_data_element": st.none() | st.booleans(),
        "synonyms": st.lists(names, max_size=3, unique=True),
        "columns": columns,
        "certification": st.none() | st.fixed_dictionaries({"status": st.sampled_from(["certified", "none"])}),
    },
)


@given(st.lists(records, min_size=1, max_size=4))
def test_whatever_is_merged_is_an_asset_again_and_adding_the_last_record_twice_changes_nothing(
    overlays: list[dict[str, Any]],
) -> None:
    payloads = [payload(object_type="table", name="orders"), *(payload(**overlay) for overlay in overlays)]
    merged = merge_payloads(payloads)
    assert Asset.model_validate(merged).payload() == merged
    assert merge_payloads([*payloads, payloads[-1]]) == merged
