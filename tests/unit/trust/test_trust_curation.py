"""Curation score, gate, and what stewards are told."""

from __future__ import annotations

from itertools import combinations

import pytest

from services.catalog.model import Asset
from services.errors import SettingsError
from services.trust.curation import CurationScore, curation_score
from services.trust.gate import GateChange, GatedAsset, GateThresholds, gate, gate_changes, threshold_for
from services.trust.rules import load_rules
from services.trust.stewardship import ScoredAsset, cheapest_steps, contact, curation_score_after, gaps, worklist_entry

RULES = load_rules()


def asset(object_type="table", **fields):
    return Asset(id=fields.pop("id", "a"), object_type=object_type, name="orders", **fields)


def score(object_type="table", *, prefer_native=False, **fields):
    return curation_score(asset(object_type, **fields), RULES, prefer_native=prefer_native)


@pytest.mark.parametrize(
    ("object_type", "whole"),
    [
        ("table", 110),
        ("file", 110),
        ("report", 105),
        ("api", 105),
        ("code", 70),
        ("schema", 80),
        ("term", 55),
        ("tag", 20),
        ("data_product", 65),
        ("data_story", 40),
    ],
)
def test_each_object_type_has_its_own_items(object_type, whole):
    empty = score(object_type)
    assert sum(item.weight for item in empty.items) == whole
    assert empty.curation_score == 0


FILLED = {
    "business_description": ({"descriptions": {"business": "Orders as taken"}}, 20),
    "technical_description": ({"descriptions": {"technical": "One row per order"}}, 10),
    "title": ({"title": "Customer orders"}, 5),
    "owner_or_steward": ({"governance_roles": [{"role": "Technical Owner", "name": "sales-ops-lead"}]}, 15),
    "glossary_association": ({"terms": [{"name": "Order"}]}, 10),
    "tags": ({"tags": [["Sales"]]}, 5),
    "classification": ({"access": {"classification": "Internal"}}, 10),
    "described_columns": ({"columns": [{"name": "id", "description": "Order number"}]}, 15),
    "quality_or_profile": ({"profile_status": "Profiled"}, 5),
    "certification": ({"certification": {"status": "cautioned"}}, 5),
    "connection": ({"data_products": ["Sales"]}, 10),
}


@pytest.mark.parametrize("item", FILLED)
def test_each_item_brings_its_weight(item):
    fields, weight = FILLED[item]
    filled = score(**fields)
    assert filled.curation_score == pytest.approx(100 * weight / 110, abs=1e-6)
    assert [found.item for found in filled.items if found.achieved == 1] == [item]


def test_a_full_table_scores_100():
    fields = {key: value for filled, _ in FILLED.values() for key, value in filled.items()}
    fields["descriptions"] = {"business": "Orders as taken", "source": "ERP export"}
    assert score(**fields).curation_score == 100


@pytest.mark.parametrize(
    ("object_type", "fields", "points"),
    [
        ("term", {"attributes": {"definition": "What a customer asks for"}}, 100 * 20 / 55),
        ("term", {"attributes": {"category": "Sales", "governance_status": "Approved"}}, 100 * 15 / 55),
        ("tag", {"attributes": {"description": "All about sales"}}, 100),
        ("data_product", {"attributes": {"sensitivity": "Internal", "status": "Live"}}, 100 * 15 / 65),
        ("table", {"columns": [{"name": "a", "description": "A"}, {"name": "b"}, {"name": "c"}]}, 100 * 5 / 110),
        ("table", {"data_quality_score": 0}, 100 * 5 / 110),
        ("table", {"lineage": {"upstream": ["x"]}}, 100 * 10 / 110),
        ("table", {"relationships": [{"kind": "join", "target": "x"}]}, 100 * 10 / 110),
    ],
)
def test_items_are_measured_by_type(object_type, fields, points):
    assert score(object_type, **fields).curation_score == pytest.approx(points, abs=1e-6)


@pytest.mark.parametrize(
    "fields",
    [
        {"descriptions": {"business": "TBD", "technical": "n/a", "source": " - "}},
        {"descriptions": {"business": "TODO: describe", "source": "<p>&nbsp;</p>"}},
        {"title": "ORDERS "},
        {"governance_roles": [{"role": "owner", "name": "unknown"}, {"role": "reader", "name": "finance-stewards"}]},
        {"access": {"classification": " "}},
        {"columns": [{"name": "id", "description": "..."}]},
        {"profile_status": "Not profiled"},
        {"certification": {"status": "none"}},
        {"curation_score": 90},
    ],
)
def test_placeholders_fill_nothing_in(fields):
    assert score(**fields).curation_score == 0


def test_a_description_may_begin_with_a_placeholder_word():
    assert score(descriptions={"business": "Unknown, late and lost parcels by day"}).curation_score > 0
    assert score(descriptions={"business": "未定义"}).curation_score > 0


def test_a_native_score_wins_only_when_preferred():
    assert score(curation_score=90, title="Orders!").curation_score < 90
    native = score(curation_score=90, title="Orders!", prefer_native=True)
    assert (native.curation_score, native.native) == (90, True)
    assert score(title="Orders!", prefer_native=True).native is False
    assert cheapest_steps(native, 95) == ()


def test_a_score_survives_storage():
    made = score(title="Orders!")
    assert CurationScore.from_json(made.to_json()) == made


def test_the_gate_opens_at_the_threshold():
    assert gate(60.0, 60).eligible
    below = gate(59.99, 60)
    assert not below.eligible
    assert below.reasons == ("curation score 59.99 is below the threshold 60",)
    assert gate(0, 0).eligible


def test_a_source_s_threshold_wins_over_its_type_s():
    settings = GateThresholds(10, {"table": 40, "term": 20}, {"erp": 70})
    assert threshold_for("table", "erp", settings) == 70
    assert threshold_for("table", "crm", settings) == 40
    assert threshold_for("api", "crm", settings) == 10


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"default": 101}, "gate_threshold"),
        ({"by_object_type": {"table": -1}}, "gate_threshold_by_type.table"),
        ({"by_object_type": {"tables": 1}}, "gate_threshold_by_type.tables"),
        ({"by_source": {"erp": float("nan")}}, "gate_threshold_by_source.erp"),
    ],
)
def test_an_impossible_threshold_names_its_key(settings, key):
    with pytest.raises(SettingsError, match=key):
        GateThresholds(**settings)


def test_a_threshold_shows_what_it_would_change():
    assets = [
        GatedAsset("table", "erp", 50, eligible=True),
        GatedAsset("table", "erp", 65, eligible=True),
        GatedAsset("table", "crm", 70, eligible=False),
        GatedAsset("term", "crm", 10, eligible=False),
    ]
    assert gate_changes(assets, GateThresholds(60)) == (
        GateChange("crm", "table", leaving=0, entering=1),
        GateChange("erp", "table", leaving=1, entering=0),
    )


def test_gaps_come_heaviest_first_with_their_step():
    found = gaps(score(**FILLED["business_description"][0], columns=[{"name": f"c{n}"} for n in range(7)]))
    assert [gap.item for gap in found[:2]] == ["owner_or_steward", "described_columns"]
    assert found[0].text == "Name an owner or a steward"
    assert found[1].text.endswith("(7 of 7 columns: c0, c1, c2, c3, c4, …)")
    assert sum(gap.points for gap in found) == pytest.approx(100 * 90 / 110, abs=1e-4)


@pytest.mark.parametrize("threshold", [1, 18.181818, 18.19, 35, 60, 80, 99, 100])
def test_the_cheapest_steps_are_fewest_and_then_richest(threshold):
    made = score(title="Orders!", columns=[{"name": "a", "description": "A"}, {"name": "b"}])
    chosen = cheapest_steps(made, threshold)
    reached = curation_score_after(made, chosen)
    assert reached >= threshold
    for count in range(len(chosen)):
        assert all(curation_score_after(made, some) < threshold for some in combinations(gaps(made), count))
    richest = max((curation_score_after(made, some) for some in combinations(gaps(made), len(chosen))), default=reached)
    assert reached == richest


def test_following_the_steps_brings_exactly_what_was_promised():
    before = {"title": "Orders!", "columns": [{"name": "a", "description": "A"}, {"name": "b"}, {"name": "c"}]}
    made = score(**before)
    steps = cheapest_steps(made, 60)
    after = dict(before)
    for step in steps:
        fields, _ = FILLED[step.item]
        for name, value in fields.items():
            after[name] = {**after.get(name, {}), **value} if isinstance(value, dict) else value
    if any(step.item == "described_columns" for step in steps):
        after["columns"] = [{"name": name, "description": name.upper()} for name in "abc"]
    assert score(**after).curation_score == curation_score_after(made, steps)


def test_the_stewards_are_asked_before_the_owners():
    roles = asset(
        governance_roles=[
            {"role": "owner", "name": "sales-ops-lead"},
            {"role": "Data Steward", "name": "finance-stewards"},
            {"role": "DATA_STEWARDS", "name": "sales-stewards"},
        ]
    ).governance_roles
    assert contact(roles).names == ("finance-stewards", "sales-stewards")
    assert contact(roles[:1]).names == ("sales-ops-lead",)
    assert contact(()).names == ()


def test_an_entry_tells_what_is_missing_and_whom_to_ask():
    owned = asset(**FILLED["owner_or_steward"][0])
    entry = worklist_entry(ScoredAsset("a", "orders", "table", "erp", score(**FILLED["owner_or_steward"][0]), 60,
                                       owned.governance_roles))  # fmt: skip
    assert entry.points_missing == pytest.approx(60 - 100 * 15 / 110, abs=1e-5)
    assert entry.curation_score_after >= 60
    assert entry.contact.names == ("sales-ops-lead",)
    assert entry.gaps[: len(entry.fewest_steps)] == entry.fewest_steps
