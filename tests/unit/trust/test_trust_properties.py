"""What must hold for any metadata: trust never comes from noise, and filling in never costs."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from importlib import resources

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from services.catalog.model import Asset, ObjectType
from services.trust.curation import curation_score
from services.trust.governance import governance_score
from services.trust.rules import TrustRules, load_rules
from services.trust.signals import Signals, read_signals
from services.trust.stewardship import cheapest_steps, curation_score_after

RULES = load_rules()
NOW = datetime(2026, 1, 1, tzinfo=UTC)

TEXTS = st.one_of(st.text(max_size=60), st.sampled_from(["", "-", "TBD", "n/a", "<p></p>", "Orders as taken"]))
NAMES = st.one_of(
    st.text(min_size=1, max_size=40),
    st.sampled_from(["CDE", "Non-CDE", "Business Critical", "DQ score", "Data Quality Rules", "DQ (1-5)", "GDPR"]),
    st.sampled_from(["Certified", "Certification", "Certification expires", "Golden Source?", "Completeness"]),
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**400), 10**400),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=200),
    st.sampled_from(["Yes", "no", "95%", "4/5", "0,95", "1", "certified", "violated", "Not a CDE", "2026-02-30", "½"]),
    st.text(alphabet="-a ", min_size=100, max_size=300),
)
FIELDS = st.lists(st.fixed_dictionaries({"name": NAMES, "value": VALUES}), max_size=6)
TAGS = st.lists(st.lists(NAMES, min_size=1, max_size=3), max_size=3)
CERTIFICATIONS = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {
            "status": st.sampled_from(["certified", "cautioned", "violated", "inactive", "none"]),
            "expires_at": st.one_of(st.none(), st.datetimes(timezones=st.sampled_from([None, UTC]))),
        }
    ),
)
NATIVES = st.fixed_dictionaries(
    {
        "data_quality_score": st.one_of(st.none(), st.floats(0, 100)),
        "critical_data_element": st.one_of(st.none(), st.booleans()),
        "authoritative": st.one_of(st.none(), st.booleans()),
        "certification": CERTIFICATIONS,
    }
)
TERMS = st.lists(st.fixed_dictionaries({"name": NAMES}), max_size=2)
TYPES = st.sampled_from(list(ObjectType))


@st.composite
def assets(draw):
    return Asset(
        id="a",
        object_type=draw(TYPES),
        name="orders",
        custom_fields=draw(FIELDS),
        tags=draw(TAGS),
        terms=draw(TERMS),
        **draw(NATIVES),
    )


def governed(asset: Asset, rules: TrustRules = RULES) -> float:
    return governance_score(read_signals(asset, rules), rules, now=NOW).governance_score


@given(assets())
@settings(deadline=None)
def test_no_metadata_breaks_the_governance_score(asset):
    signals = read_signals(asset, RULES)
    result = governance_score(signals, RULES, now=NOW)
    assert 0 <= result.governance_score <= 1
    for part in result.components:
        assert 0 <= part.value <= 1 and 0 <= part.confidence <= 1
        assert abs(part.contribution - part.weight * part.value * part.confidence) < 1e-9
    assert abs(sum(part.contribution for part in result.components) - result.governance_score) < 1e-9
    assert Signals.from_json(json.loads(json.dumps(signals.to_json()))) == signals


@given(assets(), st.randoms())
@settings(deadline=None)
def test_the_order_in_which_a_source_lists_things_changes_nothing(asset, chance: random.Random):
    lists = {name: list(getattr(asset, name)) for name in ("custom_fields", "tags", "terms")}
    for items in lists.values():
        chance.shuffle(items)
    shuffled = asset.model_copy(update={name: tuple(items) for name, items in lists.items()})
    assert read_signals(shuffled, RULES) == read_signals(asset, RULES)


@given(assets(), NAMES, st.text(alphabet="?!¿~abxyz ", max_size=30))
@settings(deadline=None)
def test_adding_a_stand_in_beside_others_never_raises_what_they_say(asset, name, text):
    """Whatever one more field says, the lowest of the readable ones counts; an unreadable one changes nothing."""
    alone = {s.signal: s for s in read_signals(asset, RULES).found}
    more = asset.model_copy(update={"custom_fields": (*asset.custom_fields, *asset_field(name, text))})
    for signal in read_signals(more, RULES).found:
        before = alone[signal.signal]
        stated_rules_only = before.display == "quality rules without a result"
        if before.value is not None and not stated_rules_only:
            assert signal.value * signal.confidence <= before.value * before.confidence


def asset_field(name, value):
    return Asset(id="f", object_type="table", name="f", custom_fields=[{"name": name, "value": value}]).custom_fields


@given(NAMES, st.text(alphabet="?!¿~äöß+*#§$€ ", max_size=40))
@settings(deadline=None)
def test_signs_without_meaning_are_worth_nothing(name, text):
    asset = Asset(id="a", object_type="table", name="a", custom_fields=[{"name": name, "value": text}])
    assert governed(asset) == 0 or "rule" in name.lower()


ROLES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["owner", "Data Steward", "custodian"]), "name": TEXTS}), max_size=2
)
METADATA = {
    "title": st.one_of(st.none(), TEXTS),
    "descriptions": st.fixed_dictionaries({}, optional={"source": TEXTS, "business": TEXTS, "technical": TEXTS}),
    "governance_roles": ROLES,
    "terms": TERMS,
    "tags": TAGS,
    "data_products": st.lists(TEXTS, max_size=2),
    "profile_status": st.one_of(st.none(), TEXTS),
    "data_quality_score": st.one_of(st.none(), st.floats(0, 100)),
    "certification": CERTIFICATIONS,
    "lineage": st.fixed_dictionaries({}, optional={"upstream": st.lists(TEXTS, max_size=1)}),
    "access": st.fixed_dictionaries({}, optional={"classification": TEXTS}),
    "attributes": st.fixed_dictionaries(
        {}, optional={"definition": TEXTS, "description": TEXTS, "domain": TEXTS, "status": TEXTS, "sensitivity": TEXTS}
    ),
    "custom_fields": FIELDS,
}
EMPTY = (None, "", [], {})


@given(TYPES, st.fixed_dictionaries({}, optional=METADATA), st.fixed_dictionaries(METADATA), st.data())
@settings(deadline=None)
def test_filling_in_what_is_empty_never_lowers_a_curation_score(object_type, sparse, rich, data):
    columns = data.draw(st.lists(st.fixed_dictionaries({"name": st.just("c"), "description": TEXTS}), max_size=3))
    base = {"id": "a", "object_type": object_type, "name": "orders", "columns": columns}
    fuller = dict(sparse)
    for name, value in rich.items():
        if isinstance(value, dict) and name != "certification":
            fuller[name] = {**value, **{key: text for key, text in (sparse.get(name) or {}).items() if text}}
        elif fuller.get(name) in EMPTY:
            fuller[name] = value
    described = [column | {"description": column["description"] or "What it holds"} for column in columns]
    before = curation_score(Asset(**base, **sparse), RULES).curation_score
    after = curation_score(Asset(**{**base, "columns": described}, **fuller), RULES).curation_score
    assert 0 <= before <= after <= 100


@given(TYPES, st.fixed_dictionaries({}, optional=METADATA), st.floats(0, 100))
@settings(deadline=None)
def test_the_cheapest_steps_always_reach_any_threshold(object_type, fields, threshold):
    curation = curation_score(Asset(id="a", object_type=object_type, name="orders", **fields), RULES)
    steps = cheapest_steps(curation, threshold)
    assert curation_score_after(curation, steps) >= threshold
    assert bool(steps) == (curation.curation_score < threshold)
    if steps:
        assert curation_score_after(curation, steps[:-1]) < threshold


@given(assets(), st.randoms())
@settings(deadline=None, max_examples=25)
def test_the_order_of_the_rules_changes_nothing(asset, chance: random.Random):
    shuffled = TrustRules.model_validate(_shuffled(_shipped(), chance))
    assert shuffled.digest == RULES.digest
    assert read_signals(asset, shuffled) == read_signals(asset, RULES)
    assert curation_score(asset, shuffled) == curation_score(asset, RULES)


def _shipped():
    return yaml.safe_load(resources.files("services.trust").joinpath("rules.yaml").read_text(encoding="utf-8"))


def _shuffled(value, chance: random.Random):
    if isinstance(value, dict):
        keys = list(value)
        chance.shuffle(keys)
        return {key: _shuffled(value[key], chance) for key in keys}
    if isinstance(value, list):
        return chance.sample(value, len(value))
    return value
