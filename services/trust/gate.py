"""The eligibility gate: which assets are well enough described to be searched for analysis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from services.catalog.model import ObjectType
from services.errors import SettingsError

THRESHOLD_LIMIT = 100.0
_TYPES = ", ".join(ObjectType)


@dataclass(frozen=True)
class GateThresholds:
    """Least curation scores, 0..100: for all, by object type, by source. SettingsError for an impossible one."""

    default: float = 0.0
    by_object_type: Mapping[str, float] = field(default_factory=dict)
    by_source: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if unknown := set(self.by_object_type) - set(ObjectType):
            raise SettingsError(f"gate_threshold_by_type.{min(unknown)}: no such object type; there are: {_TYPES}")
        named = {
            "gate_threshold": self.default,
            **{f"gate_threshold_by_type.{name}": value for name, value in self.by_object_type.items()},
            **{f"gate_threshold_by_source.{name}": value for name, value in self.by_source.items()},
        }
        for key, value in named.items():
            if not 0 <= value <= THRESHOLD_LIMIT:
                raise SettingsError(f"{key}: a threshold lies between 0 and 100, not at {value}")


@dataclass(frozen=True)
class Verdict:
    """Whether an asset passes the gate, and why."""

    eligible: bool
    threshold: float
    reasons: tuple[str, ...]


def threshold_for(object_type: str, source: str, settings: GateThresholds) -> float:
    """The threshold of an asset: its source's, else its object type's, else the default.

    The source wins over the type: who connects a catalog knows how well it is kept.
    """
    by_type = settings.by_object_type.get(object_type, settings.default)
    return settings.by_source.get(source, by_type)


def gate(curation_score: float, threshold: float) -> Verdict:
    """Eligible when the curation score reaches the threshold; a threshold of 0 lets all in."""
    eligible = curation_score >= threshold
    relation = "reaches" if eligible else "is below"
    reason = f"curation score {curation_score:.4g} {relation} the threshold {threshold:.4g}"
    return Verdict(eligible, threshold, (reason,))


@dataclass(frozen=True)
class GatedAsset:
    """What the gate knows of an asset: `eligible` is its verdict so far."""

    object_type: str
    source: str
    curation_score: float
    eligible: bool


@dataclass(frozen=True)
class GateChange:
    """How many assets of a source and type would leave and enter the pool of eligible ones."""

    source: str
    object_type: str
    leaving: int
    entering: int


def gate_changes(assets: Iterable[GatedAsset], settings: GateThresholds) -> tuple[GateChange, ...]:
    """What the thresholds would change, by source and type; those without a change are left out. Reads once."""
    leaving: Counter[tuple[str, str]] = Counter()
    entering: Counter[tuple[str, str]] = Counter()
    for asset in assets:
        threshold = threshold_for(asset.object_type, asset.source, settings)
        eligible = gate(asset.curation_score, threshold).eligible
        if eligible != asset.eligible:
            (entering if eligible else leaving)[asset.source, asset.object_type] += 1
    return tuple(GateChange(*key, leaving[key], entering[key]) for key in sorted(leaving | entering))
