"""The curation score: how complete an asset's metadata is, item by item."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from services.catalog.model import Asset, ObjectType
from services.catalog.parts import CertificationStatus
from services.trust.lexicon import lexicon_of
from services.trust.names import words_of
from services.trust.rules import CurationItemName, TrustRules
from services.trust.values import ValueWords, is_blank, says_something

POINTS_DECIMALS = 6  # fine enough for a share of thousands of columns, coarse enough to hide float noise
_COLUMNS_NAMED = 5


@dataclass(frozen=True)
class CurationItem:
    """One item of the score: `achieved` 0..1 of it is there; `points` is that share's part of the 100.

    `missing_points` is what filling it in would add; `detail` is the step that does, empty when nothing is missing.
    """

    item: str
    weight: float
    achieved: float
    points: float
    missing_points: float
    detail: str = ""


@dataclass(frozen=True)
class CurationScore:
    """0..100, most complete last. `native`: the catalog's own number, which the items did not make."""

    curation_score: float
    items: tuple[CurationItem, ...]
    native: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `from_json` gives the same score back."""
        return {
            "curation_score": self.curation_score,
            "items": [vars(item) for item in self.items],
            "native": self.native,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> CurationScore:
        return cls(stored["curation_score"], tuple(CurationItem(**item) for item in stored["items"]), stored["native"])


def curation_score(asset: Asset, rules: TrustRules, *, prefer_native: bool = False) -> CurationScore:
    """100 x achieved weight / applicable weight over the items that apply to the object type.

    A placeholder ("TBD", "N/A") fills nothing in. A type to which no item applies lacks nothing: 100. With
    `prefer_native`, the catalog's own curation score wins where there is one.
    """
    vocabulary = lexicon_of(rules).values
    applicable = [
        (name, rules.curation[name].weight)
        for name in CurationItemName
        if name in rules.curation and asset.object_type in rules.curation[name].object_types
    ]
    whole = sum(weight for _, weight in applicable)
    achieved_weight = 0.0
    items = []
    for name, weight in applicable:
        achieved = _MEASURES[name](asset, vocabulary)
        achieved_weight += weight * achieved
        share = 100 * weight / whole if whole else 0.0
        points = round(share * achieved, POINTS_DECIMALS)
        missing = round(share * (1 - achieved), POINTS_DECIMALS)
        detail = _step(asset, name, rules, vocabulary) if achieved < 1 else ""
        items.append(CurationItem(name.value, weight, achieved, points, missing, detail))
    own_score = round(100 * achieved_weight / whole, POINTS_DECIMALS) if whole else 100.0
    if prefer_native and asset.curation_score is not None:
        return CurationScore(asset.curation_score, tuple(items), native=True)
    return CurationScore(own_score, tuple(items))


Measure = Callable[[Asset, ValueWords], float]


def _any_said(vocabulary: ValueWords, *texts: str | None) -> float:
    return float(any(says_something(text, vocabulary) for text in texts))


def _business_description(asset: Asset, vocabulary: ValueWords) -> float:
    if asset.object_type is ObjectType.TERM:
        return _any_said(vocabulary, asset.attributes.definition, asset.descriptions.business)
    if asset.object_type is ObjectType.TAG:
        return _any_said(vocabulary, asset.attributes.description, asset.descriptions.business)
    return _any_said(vocabulary, asset.descriptions.business)


def _technical_description(asset: Asset, vocabulary: ValueWords) -> float:
    return _any_said(vocabulary, asset.descriptions.source, asset.descriptions.technical)


def _title(asset: Asset, vocabulary: ValueWords) -> float:
    title = (asset.title or "").strip()
    return float(says_something(title, vocabulary) and title.casefold() != asset.name.strip().casefold())


def _owner_or_steward(asset: Asset, vocabulary: ValueWords) -> float:
    return float(
        any(
            {"owner", "steward"}.intersection(words_of(role.role)) and says_something(role.name, vocabulary)
            for role in asset.governance_roles
        )
    )


def _glossary_association(asset: Asset, _: ValueWords) -> float:
    return float(any(term.name.strip() for term in asset.terms))


def _tags(asset: Asset, _: ValueWords) -> float:
    return float(any(path and path[-1].strip() for path in asset.tags))


def _classification(asset: Asset, vocabulary: ValueWords) -> float:
    return _any_said(vocabulary, asset.access.classification, asset.attributes.sensitivity)


def _described_columns(asset: Asset, vocabulary: ValueWords) -> float:
    """The share of columns with a description; without columns nothing is described."""
    described = sum(says_something(column.description, vocabulary) for column in asset.columns)
    return described / len(asset.columns) if asset.columns else 0.0


def _quality_or_profile(asset: Asset, vocabulary: ValueWords) -> float:
    profiled = asset.profile_status is not None and not is_blank(asset.profile_status, vocabulary)
    return float(profiled or asset.data_quality_score is not None)


def _certification(asset: Asset, _: ValueWords) -> float:
    return float(asset.certification is not None and asset.certification.status is not CertificationStatus.NONE)


def _connection(asset: Asset, _: ValueWords) -> float:
    return float(bool(asset.relationships or asset.lineage.upstream or asset.lineage.downstream or asset.data_products))


def _domain_or_category(asset: Asset, vocabulary: ValueWords) -> float:
    return _any_said(vocabulary, asset.attributes.domain, asset.attributes.category)


def _status(asset: Asset, vocabulary: ValueWords) -> float:
    return _any_said(vocabulary, asset.attributes.governance_status, asset.attributes.status)


_MEASURES: dict[CurationItemName, Measure] = {
    CurationItemName.BUSINESS_DESCRIPTION: _business_description,
    CurationItemName.TECHNICAL_DESCRIPTION: _technical_description,
    CurationItemName.TITLE: _title,
    CurationItemName.OWNER_OR_STEWARD: _owner_or_steward,
    CurationItemName.GLOSSARY_ASSOCIATION: _glossary_association,
    CurationItemName.TAGS: _tags,
    CurationItemName.CLASSIFICATION: _classification,
    CurationItemName.DESCRIBED_COLUMNS: _described_columns,
    CurationItemName.QUALITY_OR_PROFILE: _quality_or_profile,
    CurationItemName.CERTIFICATION: _certification,
    CurationItemName.CONNECTION: _connection,
    CurationItemName.DOMAIN_OR_CATEGORY: _domain_or_category,
    CurationItemName.STATUS: _status,
}


def _step(asset: Asset, name: CurationItemName, rules: TrustRules, vocabulary: ValueWords) -> str:
    """The rules' step for an item; for columns with which are meant ("3 of 12 columns: a, b, c")."""
    step = rules.curation[name].step
    if name is not CurationItemName.DESCRIBED_COLUMNS:
        return step
    names = [column.name for column in asset.columns if not says_something(column.description, vocabulary)]
    if not names:
        return f"{step} (no columns are listed)"
    shown = ", ".join(names[:_COLUMNS_NAMED]) + (", …" if len(names) > _COLUMNS_NAMED else "")
    return f"{step} ({len(names)} of {len(asset.columns)} columns: {shown})"
