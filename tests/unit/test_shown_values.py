"""What of an asset an answer may show: values under the sensitivity rule, and no reference to a hidden asset."""

from __future__ import annotations

from typing import Any

import pytest

from services.access.rule import Level
from services.catalog.model import Asset
from services.retrieval.assets import shown_values, without_references

SENSITIVE = frozenset({"pii"})
ROWS = [{"Home": "Zanzibar", "size": 3, "note": "n"}]


def shown(**fields: Any) -> dict[str, Any]:
    columns = fields.pop(
        "columns", [{"name": "home", "top_values": ["Zanzibar"]}, {"name": "size", "min": 1, "max": 9}]
    )
    asset = Asset.model_validate(
        {"id": "t", "object_type": "table", "name": "t", "columns": columns, "sample_rows": ROWS, **fields}
    )
    return shown_values(asset, asset.payload(), Level.INTERNAL, SENSITIVE)


def test_values_of_an_open_asset_are_shown() -> None:
    values = shown()
    assert values["sample_rows"] == ROWS
    assert values["columns"][0]["top_values"] == ["Zanzibar"]


@pytest.mark.parametrize("secret", [{"tags": [["PII", "Address"]]}, {"classification": "Restricted"}])
def test_a_secret_column_keeps_its_values_in_whatever_case_a_row_names_it(secret: dict[str, Any]) -> None:
    values = shown(columns=[{"name": "home", "top_values": ["Zanzibar"], **secret}, {"name": "size", "max": 9}])
    assert values["sample_rows"] == [{"size": 3, "note": "n"}]
    assert "top_values" not in values["columns"][0]
    assert values["columns"][1]["max"] == 9


def test_a_row_that_nests_a_secret_column_keeps_what_it_is_nested_in() -> None:
    values = shown(columns=[{"name": "Home.street", "tags": [["PII"]]}, {"name": "size"}])
    assert values["sample_rows"] == [{"size": 3, "note": "n"}]


@pytest.mark.parametrize("columns", [[], [{"name": "home"}]])
def test_a_sensitive_asset_shows_no_value_of_columns_that_it_does_not_list(columns: list[dict[str, Any]]) -> None:
    values = shown(columns=columns, tags=[["PII"]])
    assert values["sample_rows"] == [{}]


def test_nothing_is_added_that_the_asset_does_not_have() -> None:
    asset = Asset.model_validate({"id": "t", "object_type": "term", "name": "t"})
    assert shown_values(asset, asset.payload(), Level.INTERNAL, SENSITIVE) == {}


def test_what_refers_to_a_hidden_asset_goes_and_names_that_read_like_its_id_stay() -> None:
    payload = {
        "id": "orders",
        "name": "orders",
        "columns": [{"name": "salaries"}],
        "terms": [{"id": "salaries", "name": "Salary"}, {"name": "Order"}],
        "relationships": [{"kind": "join", "target": "salaries"}, {"kind": "join", "target": "items"}],
        "lineage": {"upstream": ["salaries", "items"]},
        "attributes": {"parent": "salaries", "domain": "Sales"},
        "extra": {"siblings": ["salaries"]},
    }
    assert without_references(payload, frozenset({"salaries"})) == {
        "id": "orders",
        "name": "orders",
        "columns": [{"name": "salaries"}],
        "terms": [{"name": "Order"}],
        "relationships": [{"kind": "join", "target": "items"}],
        "lineage": {"upstream": ["items"]},
        "attributes": {"domain": "Sales"},
    }


def test_a_custom_field_with_a_hidden_id_is_no_field() -> None:
    payload = {
        "id": "a",
        "custom_fields": [{"name": "source of", "value": "t:secret"}, {"name": "cadence", "value": "daily"}],
    }
    assert without_references(payload, frozenset({"t:secret"})) == {
        "id": "a",
        "custom_fields": [{"name": "cadence", "value": "daily"}],
    }
