"""Signals: native first, then stand-ins; labels; contradictions; certifications that end; policies."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from services.catalog.model import Asset
from services.catalog.parts import CertificationStatus
from services.trust.governance import governance_score
from services.trust.rules import load_rules
from services.trust.signals import Signals, governance_words, read_signals

RULES = load_rules()
NOW = datetime(2026, 3, 31, 8, tzinfo=UTC)


def asset(object_type="table", *, fields=None, tags=(), terms=(), **rest):
    return Asset(
        id="a",
        object_type=object_type,
        name="orders",
        custom_fields=tuple({"name": name, "value": value} for name, value in (fields or {}).items()),
        tags=tags,
        terms=tuple({"name": term} for term in terms),
        **rest,
    )


def signals_of(*args, **kwargs):
    return read_signals(asset(*args, **kwargs), RULES)


def score(signals, now=NOW):
    return governance_score(signals, RULES, now=now)


def test_native_values_are_used_as_they_are():
    signals = signals_of(
        critical_data_element=True, data_quality_score=80, authoritative=False, certification={"status": "certified"}
    )
    assert [(s.value, s.origin, s.confidence) for s in signals.found] == [
        (1.0, "native", 1.0),
        (0.8, "native", 1.0),
        (1.0, "native", 1.0),
        (0.0, "native", 1.0),
    ]
    assert score(signals).governance_score == pytest.approx(0.40 + 0.24 + 0.20)


def test_a_custom_field_never_overrides_a_native_value_and_the_difference_is_noted():
    signals = signals_of(
        fields={"CDE": "yes", "Certified": "yes", "DQ score": "99"},
        critical_data_element=False,
        certification={"status": "none"},
        data_quality_score=0,
    )
    assert score(signals).governance_score == 0
    assert "critical_data_element: native says no, custom field 'CDE' says yes; native counts" in signals.notes


def test_of_two_fields_that_disagree_the_lower_wins_and_it_is_reported():
    signals = signals_of(fields={"CDE": "Yes", "Critical Data Element": "No"})
    assert signals.get("critical_data_element").value == 0
    assert signals.get("critical_data_element").origin == "custom field 'Critical Data Element'"
    assert signals.notes == (
        "critical_data_element: custom field 'Critical Data Element' says no, custom field 'CDE' says yes; "
        "the lower counts",
    )


def test_a_field_and_a_tag_that_disagree_are_a_contradiction_too():
    signals = signals_of(fields={"Certified": "yes"}, tags=[["Not certified"]])
    assert signals.get("certification").value == 0
    assert signals.get("certification").origin == "tag 'Not certified'"


def test_an_unreadable_value_is_noted_and_leaves_the_readable_one_alone():
    signals = signals_of(fields={"DQ score": "105", "Data quality index": "70"})
    assert signals.get("data_quality").value == pytest.approx(0.7)
    assert signals.notes == ("data_quality: custom field 'DQ score' = '105' cannot be read (off its scale)",)


def test_rules_without_a_result_yield_to_a_result():
    signals = signals_of(fields={"DQ rules": "order_id is unique", "DQ score": "95"})
    assert signals.get("data_quality").value == pytest.approx(0.95)
    alone = signals_of(fields={"DQ rules": "order_id is unique"})
    assert score(alone).components[1].contribution == pytest.approx(0.30 * 0.5 * 0.8)
    assert alone.get("data_quality").display == "quality rules without a result"


@pytest.mark.parametrize(
    ("tags", "terms", "signal", "value", "origin"),
    [
        ([["CDE"]], (), "critical_data_element", 1, "tag 'CDE'"),
        ([["Governance", "CDE"]], (), "critical_data_element", 1, "tag 'CDE'"),
        ([["Critical_Data_Element"]], (), "critical_data_element", 1, "tag 'Critical_Data_Element'"),
        ([["Authoritative Source"]], (), "authoritative", 1, "tag 'Authoritative Source'"),
        ([], ("Certified",), "certification", 1, "term 'Certified'"),
        ([], ("golden record",), "authoritative", 1, "term 'golden record'"),
        ([["Non-CDE"]], (), "critical_data_element", 0, "tag 'Non-CDE'"),
        ([["uncertified"]], (), "certification", 0, "tag 'uncertified'"),
        ([["CDE:Yes"]], (), "critical_data_element", 1, "tag 'CDE:Yes'"),
        ([["cde = false"]], (), "critical_data_element", 0, "tag 'cde = false'"),
        ([["CDE", "Yes"]], (), "critical_data_element", 1, "tag 'CDE > Yes'"),
        ([["Certification", "Gold"]], (), "certification", 1, "tag 'Certification > Gold'"),
        ([["Deprecated"]], (), "certification", 0, "tag 'Deprecated'"),
    ],
)
def test_labels_whose_whole_name_is_a_signal_word_are_stand_ins(tags, terms, signal, value, origin):
    found = signals_of(tags=tags, terms=terms).get(signal)
    assert (found.value, found.origin, found.confidence) == (value, origin, 0.8)


@pytest.mark.parametrize(
    ("tags", "terms"),
    [
        ([["CDE", "Finance"]], ()),  # a child is not the word itself
        ([["CDE Owner"]], ()),
        ([["Certified by finance"]], ()),
        ([["Proposed", "CDE"]], ()),
        ([["CDE?"]], ()),
        ([["Gold"], ["__default_gold"]], ()),
        ([], ("PII", "Data Quality", "Completeness", "Certified Mail", "Critical")),
        ([[]], ()),
    ],
)
def test_other_labels_lift_nothing(tags, terms):
    assert all(signal.value is None for signal in signals_of(tags=tags, terms=terms).found)


def test_a_signal_that_is_not_valid_on_the_type_is_absent_and_noted():
    signals = signals_of("term", critical_data_element=True, certification={"status": "violated"})
    assert [signal.origin for signal in signals.found] == ["absent"] * 4
    assert "critical_data_element: native says yes; it does not count on a term" in signals.notes
    assert score(signals).governance_score == 0
    assert score(signals).warnings == ("violated",)


@pytest.mark.parametrize("status", ["cautioned", "violated", "inactive"])
def test_a_tarnished_certification_is_worth_nothing_and_warns(status):
    result = score(signals_of(certification={"status": status}))
    assert (result.governance_score, result.warnings) == (0, (status,))
    assert score(signals_of(certification={"status": "none"})).warnings == ()


def test_among_worthless_certifications_the_graver_one_warns():
    signals = signals_of(fields={"Certification": "none", "Certification status": "violated"})
    assert score(signals).warnings == ("violated",)


def test_a_certification_stops_counting_the_moment_it_ends_without_a_refresh():
    signals = signals_of(certification={"status": "certified", "expires_at": "2026-03-31T08:00:00Z"})
    stored = json.loads(json.dumps(signals.to_json()))
    before = score(Signals.from_json(stored), datetime(2026, 3, 31, 7, 59, 59, tzinfo=UTC))
    after = score(Signals.from_json(stored), datetime(2026, 3, 31, 8, tzinfo=UTC))
    assert (before.governance_score, before.warnings) == (0.2, ())
    assert (after.governance_score, after.warnings) == (0, ("expired",))


def test_an_end_without_a_zone_is_taken_as_utc_and_other_zones_are_converted():
    bare = signals_of(certification={"status": "certified", "expires_at": "2026-03-31T08:00:00"})
    assert bare.certification_expires_at == NOW
    east = signals_of(certification={"status": "certified", "expires_at": "2026-03-31T10:00:00+02:00"})
    assert east.certification_expires_at == NOW


@pytest.mark.parametrize(
    ("text", "expires_at"),
    [
        ("2026-03-31", datetime(2026, 3, 31, tzinfo=UTC)),
        ("2026-03-31T17:00:00Z", datetime(2026, 3, 31, tzinfo=UTC)),
        ("31.03.2026", datetime(2026, 3, 31, tzinfo=UTC)),
        ("03/31/2026", datetime(2026, 3, 31, tzinfo=UTC)),
        ("03/04/2026", datetime(2026, 3, 4, tzinfo=UTC)),  # of two ways to read it the earlier
        ("2026-02-30", None),
        ("next spring", None),
        ("", None),
    ],
)
def test_the_end_of_a_stand_in_certification_is_read_from_its_field(text, expires_at):
    signals = signals_of(fields={"Certified": "yes", "Certification expiry date": text})
    assert signals.certification_expires_at == expires_at
    noted = any("Certification expiry date" in note for note in signals.notes)
    assert noted == (expires_at is None and text != "")


def test_signals_survive_storage():
    signals = signals_of(
        fields={"CDE": "maybe", "DQ": "90", "GDPR": "yes", "Certified": "yes", "Certified until": "2027-01-01"},
        tags=[["Golden Record"]],
    )
    assert Signals.from_json(json.loads(json.dumps(signals.to_json()))) == signals
    assert signals.certification_status is CertificationStatus.CERTIFIED


def test_components_explain_the_governance_score():
    result = score(signals_of(fields={"Golden Source?": "Yes", "CDE": "Y"}, data_quality_score=50))
    assert [(c.signal, c.value, c.origin, c.confidence, c.weight, c.contribution) for c in result.components] == [
        ("critical_data_element", 1, "custom field 'CDE'", 0.8, 0.4, 0.32),
        ("data_quality", 0.5, "native", 1, 0.3, 0.15),
        ("certification", 0, "absent", 0, 0.2, 0),
        ("authoritative", 1, "custom field 'Golden Source?'", 0.8, 0.1, 0.08),
    ]
    assert result.governance_score == pytest.approx(0.55)


def test_a_narrative_never_claims_what_may_have_run_out():
    lasting = signals_of(certification={"status": "certified"}, data_quality_score=90, tags=[["CDE"]])
    assert governance_words(lasting) == ("certified", "critical data element", "high data quality")
    ending = signals_of(certification={"status": "certified", "expires_at": "2099-01-01"}, authoritative=True)
    assert governance_words(ending) == ("authoritative source",)
    assert governance_words(signals_of(data_quality_score=89.9, critical_data_element=False)) == ()
    assert governance_words(signals_of("term", certification={"status": "certified"})) == ()


@pytest.mark.parametrize(
    ("kwargs", "names"),
    [
        ({"fields": {"GDPR relevant": "Y"}}, ["GDPR"]),
        ({"fields": {"GDPR": "no"}}, []),
        ({"fields": {"GDPR": "no personal data"}}, []),
        ({"fields": {"GDPR": "N/A"}}, []),
        ({"fields": {"Not GDPR relevant": "yes"}}, []),
        ({"fields": {"GDPR Owner": "finance-stewards"}}, []),
        ({"fields": {"Regulations": "GDPR, SOX; BCBS239"}}, ["BCBS 239", "GDPR", "SOX"]),
        ({"fields": {"Regulatory requirement": "Sarbanes-Oxley"}}, ["SOX"]),
        ({"fields": {"Policy": "Records handling 4.2"}}, ["Records handling 4.2"]),
        ({"fields": {"Policy compliant": "yes"}}, ["Policy compliant"]),
        ({"fields": {"Compliance": "no"}}, []),
        ({"fields": {"Insurance policy": "P-1"}}, []),
        ({"fields": {"Retention policy": "90 days"}}, []),
        ({"terms": ("SOC2 Auditable",)}, ["SOC 2"]),
        ({"tags": [["Compliance", "HIPAA"]]}, ["HIPAA"]),
        ({"tags": [["Non-PCI"]]}, []),
    ],
)
def test_policies_and_regulations_are_recorded_and_never_scored(kwargs, names):
    signals = signals_of(**kwargs)
    assert [reference.name for reference in signals.policy_references] == names
    assert score(signals).governance_score == 0
