"""Rules as data: what ships, what a file of one's own may change, and errors that name line and key."""

from __future__ import annotations

import pytest

from services.catalog.model import Asset
from services.errors import RulesError
from services.trust.curation import curation_score
from services.trust.proxies import read_custom_field
from services.trust.rules import load_rules
from services.trust.signals import read_signals


@pytest.fixture
def rules_from(tmp_path):
    def load(text):
        path = tmp_path / "mine.yaml"
        path.write_text(text, encoding="utf-8")
        return load_rules(path)

    return load


def read(rules, name, value, object_type="table"):
    asset = Asset(id="a", object_type=object_type, name="orders", custom_fields=({"name": name, "value": value},))
    return {s.signal: (s.value, s.confidence) for s in read_signals(asset, rules).found if s.value is not None}


def test_the_shipped_rules_hold_the_contract():
    rules = load_rules()
    assert {name.value: part.weight for name, part in rules.signals.by_name.items()} == {
        "critical_data_element": 0.4,
        "data_quality": 0.3,
        "certification": 0.2,
        "authoritative": 0.1,
    }
    assert {name.value: sorted(part.object_types) for name, part in rules.signals.by_name.items()} == {
        "critical_data_element": ["api", "file", "report", "schema", "table"],
        "data_quality": ["file", "table"],
        "certification": ["api", "code", "file", "report", "schema", "table"],
        "authoritative": ["api", "code", "data_product", "file", "report", "schema", "table"],
    }
    assert rules.sensitive_names == {"pii", "phi", "sensitive", "restricted"}


def test_a_file_adds_and_takes_away(rules_from):
    rules = rules_from(
        "signals:\n"
        "  critical_data_element:\n"
        "    patterns: {crown jewel: {}, kde: null}\n"
        "    disqualifiers+: [fake]\n"
        "  data_quality:\n"
        "    values: {a: 0.95, b: 0.8}\n"
        "    patterns: {trust index: {scale: 5, confidence: 0.5}}\n"
        "scales: {DQ stars: 5}\n"
        "sensitive_names+: [Salary]\n"
    )
    assert read(rules, "Crown Jewel", "yes") == {"critical_data_element": (1, 0.8)}
    assert read(rules, "CDE", "yes") == {"critical_data_element": (1, 0.8)}
    assert read(rules, "KDE", "yes") == {}
    assert read(rules, "Fake CDE", "yes") == {}
    assert read(rules, "DQ grade", "A") == {"data_quality": (0.95, 0.8)}
    assert read(rules, "Trust Index", "4") == {"data_quality": (0.8, 0.5)}
    assert read(rules, "DQ stars", "3") == {"data_quality": (0.6, 0.8)}
    assert read(rules, "DQ stars", "60") == {}
    assert "salary" in rules.sensitive_names and "pii" in rules.sensitive_names


def test_labels_of_one_kind_and_types_can_be_ruled(rules_from):
    rules = rules_from(
        "signals:\n"
        "  critical_data_element:\n"
        "    object_types: [code]\n"
        "    labels: {tier 1: {says: true, applies_to: [tag], confidence: 0.6}}\n"
    )

    def value(**labels):
        asset = Asset(id="a", object_type="code", name="job", **labels)
        return read_signals(asset, rules).get("critical_data_element")

    assert (value(tags=[["Tier", "Tier1"]]).value, value(tags=[["Tier.Tier1"]]).value) == (1, None)
    assert value(tags=[["Tier 1"]]).confidence == 0.6
    assert value(terms=[{"name": "Tier 1"}]).value is None
    assert read(rules, "CDE", "yes", "table") == {}


def test_an_item_can_be_taken_out_of_the_curation_score(rules_from):
    rules = rules_from("curation: {certification: null, title: {weight: 0}}\n")
    items = [item.item for item in curation_score(Asset(id="a", object_type="code", name="job"), rules).items]
    assert "certification" not in items and "title" in items


def test_the_order_of_the_rules_does_not_matter(rules_from):
    first = rules_from(
        "signals: {data_quality: {patterns: {trust index: {scale: 5}, trust index score: {scale: 10}}}}\n"
        "scales: {a: 1, b: 2}\nsensitive_names: [One, Two]\n"
    )
    second = rules_from(
        "sensitive_names: [Two, One]\nscales: {b: 2, a: 1}\n"
        "signals: {data_quality: {patterns: {trust index score: {scale: 10}, trust index: {scale: 5}}}}\n"
    )
    assert first.digest == second.digest
    for rules in (first, second):
        assert read(rules, "Trust index score", "5") == {"data_quality": (0.5, 0.8)}


def test_the_digest_follows_the_content(rules_from):
    shipped = load_rules()
    assert rules_from("").digest == shipped.digest
    assert rules_from("confidence: {tag: 0.7}\n").digest != shipped.digest


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("signals:\n  data_quality:\n    weight: 2\n", "mine.yaml, line 3: signals.data_quality.weight: "),
        ("signals:\n  data_quality:\n    weight: 0.5\n", "mine.yaml, line 1: signals: the four weights add up to 1.2"),
        ("\nconfidence:\n  tags: 0.5\n", "mine.yaml, line 3: confidence.tags: unknown key"),
        ("confidence:\n  tag: null\n", "confidence.tag: the key is missing"),
        ("confidence:\n  tag: '0.5'\n", "mine.yaml, line 2: confidence.tag: "),
        ("confidence:\n  tag: true\n", "mine.yaml, line 2: confidence.tag: "),
        (
            "vocabulary:\n  yes_spellings+: [on]\n",
            "mine.yaml, line 2: vocabulary.yes_spellings.16: a word was expected, not True; put quotes",
        ),
        ("vocabulary:\n  placeholders+: nix\n", "mine.yaml, line 2: vocabulary.placeholders+: `key+` adds a list"),
        (
            "signals:\n  critical_data_element:\n    patterns:\n      CDEs: {}\n",
            "mine.yaml, line 3: signals.critical_data_element.patterns: 'CDEs' and 'cde' are the same",
        ),
        (
            "signals:\n  certification:\n    values:\n      shiny: golden\n",
            "mine.yaml, line 4: signals.certification.values.shiny: ",
        ),
        (
            "signals:\n  authoritative:\n    object_types: [tables]\n",
            "mine.yaml, line 3: signals.authoritative.object_types.0: ",
        ),
        (
            "curation:\n  colour: {label: a, weight: 1, object_types: [], step: b}\n",
            "mine.yaml, line 2: curation.colour: ",
        ),
        ("curation:\n  tags:\n    weight: -1\n", "mine.yaml, line 3: curation.tags.weight: "),
        ("certification_values: {certified: null}\n", "certification_values: no value for: certified"),
        ("scales:\n  '??': 5\n", "mine.yaml, line 1: scales: '??' has no letter"),
        ("scales: {a: 1}\nscales: {b: 1}\n", "mine.yaml, line 2: scales: the key stands here twice"),
        ("signals: [\n", "mine.yaml, line 2: not valid YAML"),
        ("- a\n", "mine.yaml, line 1: the file must be a mapping"),
    ],
)
def test_a_wrong_file_is_refused_with_line_and_key(rules_from, text, message):
    with pytest.raises(RulesError) as refused:
        rules_from(text)
    assert message in str(refused.value)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(RulesError, match="cannot be read"):
        load_rules(tmp_path / "nowhere.yaml")


def test_one_field_may_name_two_signals():
    proxies = read_custom_field("Certified golden source", "yes", load_rules())
    assert [proxy.signal.value for proxy in proxies] == ["certification", "authoritative"]
