"""Steward feedback: what each asset below its threshold lacks, and the fewest steps that bring it there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from services.catalog.parts import GovernanceRole
from services.trust.curation import POINTS_DECIMALS, CurationScore
from services.trust.names import words_of

ROLES_TO_ASK = ("steward", "owner", "custodian")  # who keeps the metadata first


@dataclass(frozen=True)
class Step:
    """One thing a steward can do, and the points of 100 it brings."""

    item: str
    points: float
    text: str


@dataclass(frozen=True)
class Contact:
    """Whom to ask about an asset: all names on record in the best role there is; none when nobody is on record."""

    role: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class ScoredAsset:
    """What the worklist needs to know of an asset."""

    asset_id: str
    name: str
    object_type: str
    source: str
    curation: CurationScore
    threshold: float
    roles: tuple[GovernanceRole, ...] = ()


@dataclass(frozen=True)
class WorklistEntry:
    """An asset below its threshold. `gaps`: everything that is missing, heaviest first; `fewest_steps`: enough of it.

    A score that is the catalog's own (`native`) cannot be promised anything: `fewest_steps` is empty then.
    """

    asset: ScoredAsset
    gaps: tuple[Step, ...]
    fewest_steps: tuple[Step, ...]
    curation_score_after: float
    contact: Contact

    @property
    def points_missing(self) -> float:
        return round(self.asset.threshold - self.asset.curation.curation_score, POINTS_DECIMALS)


def gaps(curation: CurationScore) -> tuple[Step, ...]:
    """All that is missing, most points first, then in the order of the items."""
    missing = [item for item in curation.items if item.missing_points > 0]
    missing.sort(key=lambda item: -item.missing_points)
    return tuple(Step(item.item, item.missing_points, item.detail) for item in missing)


def cheapest_steps(curation: CurationScore, threshold: float) -> tuple[Step, ...]:
    """The fewest steps that reach the threshold; of equally few, those with the most points.

    Taking the heaviest gaps first yields both: no other choice of as many steps brings more. Empty when the score is
    there already, or is the catalog's own and does not follow from the items.
    """
    if curation.native:
        return ()
    chosen: list[Step] = []
    for step in gaps(curation):
        if curation_score_after(curation, chosen) >= threshold:
            break
        chosen.append(step)
    return tuple(chosen)


def curation_score_after(curation: CurationScore, steps: Iterable[Step]) -> float:
    """The curation score once the steps are taken: filled in, so without the rounding of their single points."""
    if curation.native or not curation.items:
        return curation.curation_score
    taken = {step.item for step in steps}
    whole = sum(item.weight for item in curation.items)
    achieved = sum(item.weight * (1.0 if item.item in taken else item.achieved) for item in curation.items)
    return round(100 * achieved / whole, POINTS_DECIMALS) if whole else curation.curation_score


def contact(roles: Sequence[GovernanceRole]) -> Contact:
    """The stewards on record, else the owners, else the custodians."""
    for wanted in ROLES_TO_ASK:
        names = tuple(dict.fromkeys(role.name for role in roles if wanted in words_of(role.role) and role.name.strip()))
        if names:
            return Contact(wanted, names)
    return Contact("", ())


def worklist_entry(asset: ScoredAsset) -> WorklistEntry:
    """What a steward is told of an asset that is below its threshold."""
    steps = cheapest_steps(asset.curation, asset.threshold)
    return WorklistEntry(
        asset, gaps(asset.curation), steps, curation_score_after(asset.curation, steps), contact(asset.roles)
    )
