"""services.context.keywords: what counts for how much, and which whole names an asset answers to."""

from __future__ import annotations

from typing import Any

import pytest

from services.access.rule import access_rule
from services.catalog.model import Asset
from services.context.keywords import (
    DEFAULT_FIELDS,
    KeywordDocument,
    KeywordFields,
    keyword_document,
    whole_names,
    whole_synonyms,
)
from services.context.narrative import NarrativeRules
from services.text.tokens import normal_form, tokens

RULES = NarrativeRules(sensitive_names=frozenset({"PII"}))


def document(fields: KeywordFields = DEFAULT_FIELDS, **attributes: Any) -> KeywordDocument:
    asset = Asset(**{"id": "1", "object_type": "table", "name": "t", **attributes})
    return keyword_document(asset, {}, access_rule("Internal"), RULES, fields)


FALCON: dict[str, tuple[dict[str, Any], str]] = {
    "names": ({"name": "falcon"}, "names"),
    "title": ({"title": "Falcon"}, "names"),
    "synonyms": ({"synonyms": ["falcon"]}, "synonyms"),
    "terms": ({"terms": [{"name": "Falcon"}]}, "terms"),
    "location": ({"location": ["falcon", "t"]}, "location"),
    "columns": ({"columns": [{"name": "falcon"}]}, "columns"),
    "column titles": ({"columns": [{"name": "c", "title": "Falcon"}]}, "columns"),
    "tags": ({"tags": [["Birds", "Falcon"]]}, "tags"),
    "column tags": ({"columns": [{"name": "c", "tags": [["Falcon"]]}]}, "tags"),
    "data products": ({"data_products": ["Falcon"]}, "data_products"),
    "details": ({"attributes": {"domain": "Falcon"}}, "details"),
    "term places": ({"terms": [{"name": "x", "domain": "Falcon"}]}, "details"),
    "descriptions": ({"descriptions": {"source": "the falcon"}}, "descriptions"),
    "definitions": ({"terms": [{"name": "x", "definition": "a falcon"}]}, "descriptions"),
    "stories": ({"object_type": "data_story", "attributes": {"body": "<p>falcon</p>"}}, "descriptions"),
    "column descriptions": ({"columns": [{"name": "c", "description": "falcon"}]}, "column_descriptions"),
    "custom field names": ({"custom_fields": [{"name": "falcon", "value": True}]}, "custom_fields"),
    "custom field values": ({"custom_fields": [{"name": "x", "value": "falcon"}]}, "custom_fields"),
    "values": ({"columns": [{"name": "c", "top_values": ["falcon"]}]}, "values"),
}


@pytest.mark.parametrize(("attributes", "field"), FALCON.values(), ids=FALCON.keys())
def test_every_field_counts_by_its_weight(attributes: dict[str, Any], field: str) -> None:
    assert document(**attributes).terms["falcon"] == pytest.approx(getattr(KeywordFields(), field))
    assert document(KeywordFields(**{field: 7.0}), **attributes).terms["falcon"] == pytest.approx(7.0)


@pytest.mark.parametrize(
    "attributes",
    [
        {"access": {"classification": "Falcon", "groups": ["falcon"], "users": ["falcon"], "workspaces": ["falcon"]}},
        {"columns": [{"name": "c", "classification": "falcon"}]},
        {"governance_roles": [{"role": "owner", "name": "falcon"}]},
        {"object_type": "data_product", "attributes": {"sensitivity": "falcon"}},
        {"descriptions": {"source": "https://x.example/falcon"}},
        {"columns": [{"name": "c", "tags": [["PII"]], "top_values": ["falcon"]}]},
        {"sample_rows": [{"c": "falcon"}]},
    ],
)
def test_access_people_addresses_and_hidden_values_never_count(attributes: dict[str, Any]) -> None:
    assert "falcon" not in document(**attributes).terms


def test_a_word_in_every_column_counts_a_little_more_than_in_one() -> None:
    once = document(columns=[{"name": "order_id"}]).terms["order"]
    often = document(columns=[{"name": f"order_{word}"} for word in ("id", "day", "sum", "tax")]).terms["order"]

    assert once < often < 3 * once


def test_a_column_of_a_wide_table_counts_less_and_the_name_as_much() -> None:
    narrow = document(name="falcon", columns=[{"name": "wing"}])
    wide = document(name="falcon", columns=[{"name": "wing"}, *({"name": f"c{number}"} for number in range(999))])

    assert wide.terms["wing"] < narrow.terms["wing"] / 3
    assert wide.terms["falcon"] == narrow.terms["falcon"]


def test_the_length_is_the_sum_of_what_counts() -> None:
    found = document(name="cust_ord", descriptions={"business": "One order a row, one row an order."})

    assert found.length == pytest.approx(sum(found.terms.values()))


def test_fields_add_up() -> None:
    assert document(name="falcon", synonyms=["falcon"]).terms["falcon"] == pytest.approx(5.0)


@pytest.mark.parametrize(
    "asked",
    ["cust_ord_hdr", "CUST ORD HDR", "custOrdHdr", "Order headers", "sales.cust_ord_hdr"],
)
def test_a_whole_query_meets_every_name(asked: str) -> None:
    asset = Asset(
        id="1",
        object_type="table",
        name="cust_ord_hdr",
        title="Order headers",
        synonyms=["Order book"],
        location=["shop", "sales", "cust_ord_hdr"],
    )

    assert normal_form(asked) in whole_names(asset)
    assert whole_synonyms(asset) == ("order book",)


@pytest.mark.parametrize("asked", ["fctBooking", "fctbooking", "FCTBOOKING", "fct booking"])
def test_a_camel_case_name_is_met_without_its_humps(asked: str) -> None:
    assert normal_form(asked) in whole_names(Asset(id="1", object_type="table", name="fctBooking"))


def test_names_without_words_meet_nothing() -> None:
    assert whole_names(Asset(id="1", object_type="table", name="---", title=" ")) == ()
    assert whole_synonyms(Asset(id="1", object_type="table", name="x", synonyms=["%"])) == ()


def test_a_name_that_is_only_an_id_is_still_found_by_it() -> None:
    raw = "550e8400-e29b-41d4-a716-446655440000"

    assert set(tokens(raw)) <= set(document(name=raw).terms)
