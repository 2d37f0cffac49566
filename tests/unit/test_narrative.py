"""services.context.narrative: what may enter a narrative, what may not, and what leaves it as it was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from services.access.rule import AccessRule, access_rule
from services.catalog.model import Asset, ObjectType
from services.context.keywords import keyword_document
from services.context.labels import Neighbour, reference_ids, visible_neighbours
from services.context.narrative import NarrativeRules, compose

RULES = NarrativeRules(sensitive_names=frozenset({"PII", "PHI", "Sensitive", "Restricted"}))
INTERNAL = access_rule("Internal")


def table(**fields: Any) -> Asset:
    return Asset(**{"id": "dwh.orders", "object_type": "table", "name": "orders", **fields})


def told(asset: Asset, neighbours: Mapping[str, Neighbour] | None = None, own: AccessRule = INTERNAL) -> str:
    return compose(asset, neighbours or {}, own, RULES).text


def words_known(asset: Asset, neighbours: Mapping[str, Neighbour], own: AccessRule = INTERNAL) -> str:
    """All that any text about the asset tells: the narrative and the keyword tokens."""
    tokens = keyword_document(asset, neighbours, own, RULES).terms
    return f"{told(asset, neighbours, own)} {' '.join(tokens)}".casefold()


def neighbour(asset_id: str, name: str, access: AccessRule, title: str | None = None) -> Neighbour:
    return Neighbour(asset_id, ObjectType.TABLE, name, title, access)


REFERENCES: dict[str, dict[str, Any]] = {
    "upstream": {"lineage": {"upstream": ["other"]}},
    "downstream": {"lineage": {"downstream": ["other"]}},
    "relationship": {"relationships": [{"kind": "foreign_key", "target": "other"}]},
    "term": {"terms": [{"id": "other", "name": "Falcon", "domain": "Falcon", "definition": "Falcon plan"}]},
    "column term": {"columns": [{"name": "amount", "terms": [{"id": "other", "name": "Falcon"}]}]},
    "data product": {"data_products": ["other"]},
    "parent report": {"object_type": "report", "attributes": {"parent_report": "other"}},
    "parent story": {"object_type": "data_story", "attributes": {"parent_story": "other"}},
    "child story": {"object_type": "data_story", "attributes": {"child_stories": ["other"]}},
    "parent tag": {"object_type": "tag", "attributes": {"parent": "other"}},
}


@pytest.mark.parametrize("fields", REFERENCES.values(), ids=REFERENCES.keys())
@pytest.mark.parametrize(
    ("own", "other", "named"),
    [
        (access_rule("Internal"), access_rule("Public"), True),
        (access_rule("Internal"), access_rule("Confidential"), False),
        (access_rule("Internal"), access_rule("Internal", groups=["board"]), False),
        (access_rule("Internal", groups=["board"]), access_rule("Internal", groups=["board", "audit"]), True),
        (access_rule("Internal"), access_rule("Internal", denied_users=["temp"]), False),
    ],
)
def test_a_neighbour_is_named_only_when_at_least_as_visible(
    fields: dict[str, Any], own: AccessRule, other: AccessRule, named: bool
) -> None:
    asset = table(**fields)
    around = {"other": neighbour("other", "project_falcon", other, "Falcon")}

    assert reference_ids(asset) == ("other",)
    text = told(asset, around, own).casefold()
    assert ("falcon" in text) is named
    if not named:
        assert "falcon" not in words_known(asset, around, own)


def test_an_unknown_reference_is_told_only_where_it_may_be_a_name() -> None:
    asset = table(
        data_products=["Orders 360", "urn:li:dataProduct:42", "ovaledge:product:7"],
        lineage={"upstream": ["raw.web_orders"]},
        relationships=[{"kind": "join", "target": "dwh.lines"}],
    )

    assert told(asset) == "orders table\nIt belongs to the data product Orders 360."


def test_a_renamed_neighbour_changes_the_narrative_of_those_that_name_it() -> None:
    asset = table(lineage={"upstream": ["other"]}, terms=[{"id": "term", "name": "Turnover"}])
    before = {
        "other": neighbour("other", "web_orders", INTERNAL),
        "term": neighbour("term", "turnover", INTERNAL, "Turnover"),
    }
    after = {
        "other": neighbour("other", "shop_orders", INTERNAL),
        "term": neighbour("term", "turnover", INTERNAL, "Net revenue"),
    }

    assert "web orders" in told(asset, before)
    assert "shop orders" in told(asset, after)
    assert "Net revenue" in told(asset, after)


def test_visible_neighbours_are_those_that_every_reader_may_see() -> None:
    seen = visible_neighbours(
        access_rule("Confidential"),
        [neighbour("a", "a", access_rule("Public")), neighbour("b", "b", access_rule("Restricted"))],
    )

    assert list(seen) == ["a"]


def test_reference_ids_are_distinct_in_field_order_and_without_the_asset_itself() -> None:
    asset = table(
        lineage={"upstream": ["u"], "downstream": ["d", "u"]},
        relationships=[{"kind": "join", "target": "dwh.orders"}, {"kind": "join", "target": "r"}],
        terms=[{"id": "t", "name": "T"}, {"name": "without id"}],
        columns=[{"name": "c", "terms": [{"id": "ct", "name": "CT"}]}],
        data_products=["p"],
    )

    assert reference_ids(asset) == ("u", "d", "r", "t", "ct", "p")


STEADY: dict[str, Any] = {"descriptions": {"business": "One row per order."}, "columns": [{"name": "amount"}]}


@pytest.mark.parametrize(
    "changed",
    [
        {"data_quality_score": 93.5, "curation_score": 71, "rating": 4.5, "profile_status": "profiled"},
        {"usage": {"queries_30d": 4711, "users_30d": 12}, "statistics": {"row_count": 99_123, "size_bytes": 5}},
        {"updated_at": "2026-02-03T04:05:06Z", "url": "https://catalog.example/7"},
        {"certification": {"status": "certified", "at": "2026-02-03T00:00:00Z", "by": "data-office"}},
        {"access": {"classification": "Restricted", "groups": ["board"], "users": ["sales-ops-lead"]}},
        {"access": {"workspaces": ["quarter-close"], "denied_groups": ["contractors"]}},
        {"governance_roles": [{"role": "owner", "name": "finance-stewards"}]},
        {"sample_rows": [{"amount": "sampled value"}]},
        {"custom_fields": [{"name": "DQ score", "value": "97 percent"}, {"name": "Rows", "value": 5_000}]},
        {"custom_fields": [{"name": "Last review", "value": "2026-02-03"}, {"name": "Since", "value": "3 March 2025"}]},
        {"custom_fields": [{"name": "Owner", "value": "N/A"}, {"name": "Note", "value": None}]},
        {"columns": [{"name": "amount", "null_ratio": 0.25, "distinct_count": 7, "min": 1, "max": "2025-01-01"}]},
        {"columns": [{"name": "amount", "top_values": ["12.50", "2024-01-02", "x", ""]}]},
        {"descriptions": {"business": "One row per order.", "source": "TBD", "technical": "-"}},
        {"attributes": {"table_count": 7, "api_url": "https://x.example", "source_code": "select 1", "author": "ops"}},
    ],
)
def test_what_may_change_often_and_what_says_nothing_leaves_no_trace(changed: dict[str, Any]) -> None:
    assert told(table(**{**STEADY, **changed})) == told(table(**STEADY))


def test_the_sensitivity_of_a_data_product_is_access_and_stays_out() -> None:
    def product(**attributes: str) -> Asset:
        return Asset(
            id="p", object_type="data_product", name="orders_360", attributes={"domain": "Sales", **attributes}
        )

    rated = product(sensitivity="Confidential")

    assert told(rated) == told(product())
    assert "confidenti" not in words_known(rated, {})


@pytest.mark.parametrize("object_type", list(ObjectType))
def test_an_asset_of_any_type_with_a_name_alone_is_a_heading(object_type: ObjectType) -> None:
    narrative = compose(Asset(id="1", object_type=object_type, name="fctBooking"), {}, INTERNAL, RULES)

    assert narrative.sections == ()
    assert narrative.heading.startswith("fct booking ")


@pytest.mark.parametrize(
    ("fields", "heading"),
    [
        ({"name": "cust_ord_hdr"}, "cust ord hdr table (cust_ord_hdr)"),
        ({"location": ["shop", "orders"]}, "orders table (shop.orders)"),
        ({"location": ["shop", "public"], "title": "Orders"}, "orders table (public.orders)"),
        ({"title": "All orders", "location": ["shop"]}, "All orders: orders table (shop.orders)"),
        ({"name": "550e8400-e29b-41d4-a716-446655440000", "title": "Orders"}, "Orders: table"),
    ],
)
def test_the_heading_says_what_and_where(fields: dict[str, Any], heading: str) -> None:
    assert compose(table(**fields), {}, INTERNAL, RULES).heading == heading


def test_outer_containers_and_camel_humps_are_told_once_in_words() -> None:
    assert told(table(location=["shopProd", "core_sales", "orders"])).endswith("\nIt stands in shop prod.")
    assert told(table(location=["shop", "coreSales"])).endswith("\nIt stands in shop and core sales.")
    assert told(table(location=["core_sales"])) == "orders table (core_sales.orders)"


def test_markup_urls_and_ids_stay_out_of_every_field() -> None:
    dirty = "<b>Gross</b> **value** https://x.example/1 550e8400-e29b-41d4-a716-446655440000 \u202eend\u200b"
    asset = table(
        title=dirty,
        synonyms=[dirty + " two"],
        descriptions={"business": dirty + " three"},
        terms=[{"name": dirty, "definition": dirty}],
        tags=[[dirty, dirty]],
        custom_fields=[{"name": dirty, "value": dirty}],
        columns=[{"name": "amount", "title": dirty, "description": dirty + " four", "top_values": [dirty]}],
    )

    text = told(asset)

    assert "Gross value end" in text
    for noise in ("<", ">", "**", "http", "550e8400", "\u202e", "\u200b"):
        assert noise not in text


def test_a_long_definition_is_told_by_its_beginning() -> None:
    two_sentences = table(terms=[{"name": "Order", "definition": "A promise to buy. " + "It binds both sides. " * 40}])
    one_endless = table(terms=[{"name": "Order", "definition": "promise " * 400}])

    assert told(two_sentences).endswith("the business term Order, which means A promise to buy.")
    assert told(one_endless).endswith("promise promise.")
    assert len(told(one_endless)) < 300


def test_a_description_that_repeats_the_name_or_another_is_told_once() -> None:
    same = table(title="All orders", descriptions={"business": "All orders.", "source": "Raw", "technical": "raw."})

    assert told(same) == "All orders: orders table\nRaw."


def test_governance_words_enter_as_given() -> None:
    narrative = compose(table(), {}, INTERNAL, RULES, ("certified", "high data quality"))

    assert narrative.text.endswith("It is known as certified and high data quality.")


@pytest.mark.parametrize(
    ("asset_fields", "column_fields", "shown"),
    [
        ({}, {}, True),
        ({}, {"classification": "Internal"}, True),
        ({}, {"classification": "Confidential"}, False),
        ({}, {"classification": "Top secret"}, False),
        ({}, {"tags": [["Sensitivity", "PII"]]}, False),
        ({}, {"tags": [["pii", "Email", "Work"]]}, False),
        ({}, {"tags": [["PII.Email"]]}, False),
        ({}, {"tags": [["Non-PII"]]}, True),
        ({}, {"terms": [{"name": "Patient", "domain": "PHI"}]}, False),
        ({"tags": [["PII"]]}, {}, False),
        ({"terms": [{"name": "sensitive"}]}, {}, False),
    ],
)
def test_values_are_told_last_and_only_of_columns_that_are_not_sensitive(
    asset_fields: dict[str, Any], column_fields: dict[str, Any], shown: bool
) -> None:
    column = {"name": "home", "top_values": ["Zanzibar", "Aarhus"], **column_fields}
    asset = table(columns=[column], sample_rows=[{"home": "Zanzibar"}], **asset_fields)

    assert told(asset).endswith("Values of home are Aarhus and Zanzibar.") is shown
    assert ("zanzibar" in words_known(asset, {})) is shown


def test_a_highly_classified_column_may_speak_in_an_asset_classified_as_high() -> None:
    asset = table(columns=[{"name": "home", "classification": "Confidential", "top_values": ["Aarhus"]}])

    assert "Aarhus" in told(asset, own=access_rule("Confidential"))


def test_a_custom_field_that_holds_an_id_is_told_by_words_or_not_at_all() -> None:
    asset = table(custom_fields=[{"name": "Source of", "value": "t:other"}, {"name": "Cadence", "value": "daily"}])
    assert reference_ids(asset) == ("t:other",)
    open_one = {"t:other": neighbour("t:other", "falcon_plan", access_rule("Public"))}
    hidden_one = {"t:other": neighbour("t:other", "falcon_plan", access_rule("Restricted"))}
    assert "falcon plan" in words_known(asset, open_one)
    words = words_known(asset, hidden_one)
    assert "falcon" not in words
    assert "other" not in words
    assert "daily" in words
