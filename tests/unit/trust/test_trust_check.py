"""The report on what rules match, and the facts of the public showcase catalog."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from services.catalog.model import Asset
from services.catalog.sources.base import Page
from services.catalog.sources.datahub import DataHubFileSource
from services.trust.check import Fate, check_rules
from services.trust.governance import governance_score
from services.trust.rules import load_rules
from services.trust.signals import read_signals

RULES = load_rules()


def table(**fields):
    return Asset(id="a", object_type=fields.pop("object_type", "table"), name="orders", **fields)


def test_every_name_is_reported_with_what_became_of_it():
    report = check_rules(
        [
            table(custom_fields=[{"name": "CDE", "value": "Yes"}, {"name": "Cost center", "value": "7"}]),
            table(custom_fields=[{"name": "CDE", "value": "maybe"}, {"name": "KDE", "value": "no"}], tags=[["CDE"]]),
            table(custom_fields=[{"name": "CDE", "value": "TBD"}], terms=[{"name": "PII"}]),
            table(custom_fields=[{"name": "CDE", "value": "no"}], critical_data_element=True),
            table(custom_fields=[{"name": "CDE", "value": "yes"}], object_type="code"),
            table(custom_fields=[{"name": "GDPR", "value": "yes"}, {"name": "Policy", "value": "no"}]),
        ],
        RULES,
    )
    fates = {(field.kind, field.name, field.signal): field.fates for field in report.fields}
    critical = "critical_data_element"
    assert report.assets == 6
    assert fates == {
        ("custom field", "CDE", critical): dict.fromkeys(
            [Fate.COUNTS, Fate.UNREADABLE, Fate.BLANK, Fate.NATIVE_WINS, Fate.OTHER_TYPE], 1
        ),
        ("custom field", "KDE", critical): {Fate.COUNTS: 1},
        ("tag", "CDE", critical): {Fate.LOWER_WINS: 1},
        ("custom field", "GDPR", "policy_compliance"): {Fate.RECORDED: 1},
        ("custom field", "Policy", "policy_compliance"): {Fate.NOT_SUBJECT: 1},
        ("custom field", "Cost center", "no signal"): {Fate.IGNORED: 1},
        ("term", "PII", "no signal"): {Fate.IGNORED: 1},
    }
    assert report.fields[0].unreadable_values == ("maybe",)


@pytest.fixture(scope="module")
def showcase(shared_folder):
    source = DataHubFileSource("showcase", shared_folder / "data" / "datahub-showcase")
    pages = [page for page in source.listing() if isinstance(page, Page)]
    return [Asset(**record.payload()) for page in pages for record in page.records]


def component(asset, signal):
    result = governance_score(read_signals(asset, RULES), RULES, now=datetime(2026, 1, 1, tzinfo=UTC))
    return next(part for part in result.components if part.signal == signal)


def with_field(assets, name):
    found = [asset for asset in assets if any(field.name == name for field in asset.custom_fields)]
    assert found
    return found


def test_a_string_of_a_boolean_makes_a_stand_in_critical_data_element(showcase):
    for asset in with_field(showcase, "business_critical"):
        part = component(asset, "critical_data_element")
        assert (part.value, part.confidence) == (1, 0.8)
        assert part.origin == "custom field 'business_critical'"
        assert part.contribution == pytest.approx(0.32)


def test_only_business_critical_assets_are_critical_data_elements(showcase):
    critical = {a.id for a in showcase if component(a, "critical_data_element").value > 0}
    assert critical == {asset.id for asset in with_field(showcase, "business_critical")}
    assert with_field(showcase, "contains_pii")


def test_the_quality_property_is_a_stand_in(showcase):
    for asset in with_field(showcase, "Data Quality Score"):
        part = component(asset, "data_quality")
        assert part.origin == "custom field 'Data Quality Score'"
        assert part.confidence == 0.8
        assert 0 < part.value <= 1


def test_the_authoritative_tag_and_the_certified_term_count(showcase):
    authoritative = [asset for asset in showcase if ("Authoritative Source",) in asset.tags]
    certified = [asset for asset in showcase if any(term.name == "Certified" for term in asset.terms)]
    assert len(authoritative) == len(certified) == 1
    assert component(authoritative[0], "authoritative").origin == "tag 'Authoritative Source'"
    assert component(authoritative[0], "authoritative").contribution == pytest.approx(0.08)
    assert component(certified[0], "certification").origin == "term 'Certified'"
    assert component(certified[0], "certification").contribution == pytest.approx(0.16)


def test_the_term_on_nearly_every_dataset_lifts_nothing(showcase):
    report = check_rules(showcase, RULES)
    pii = next(field for field in report.fields if (field.kind, field.name) == ("term", "PII"))
    assert pii.signal == "no signal"
    assert pii.fates[Fate.IGNORED] > 60


def test_the_report_names_every_custom_field(showcase):
    report = check_rules(showcase, RULES)
    named = {field.name for field in report.fields if field.kind == "custom field"}
    assert named == {field.name for asset in showcase for field in asset.custom_fields}
    assert sum(field.fates.get(Fate.UNREADABLE, 0) for field in report.fields) == 0
