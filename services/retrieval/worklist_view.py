"""The stewards' work list as a caller may see it: what `GET /v1/worklist` and `vouch worklist` speak of."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from services.catalog.model import ObjectType
from services.retrieval.model import GovernancePart

ENTRIES_MAX = 1000
CONTACTS_SHOWN = 200
NOBODY = "nobody on record"
NO_PROMISE = "the score is the catalog's own: no step can be promised to raise it"


class WorklistRequest(BaseModel):
    """Which part of the work list; within one filter any of its values will do, names compare without case."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: tuple[str, ...] = ()
    type: tuple[ObjectType, ...] = Field(default=(), description="object types")
    owner: tuple[str, ...] = Field(default=(), description="names in any governance role: owner, steward, custodian, …")
    limit: int = Field(default=100, ge=1, le=ENTRIES_MAX)
    summary: bool = Field(default=True, description="add everything up on the first page")
    cursor: str | None = Field(default=None, description="`next_cursor` of the page before; none: from the start")


class StepView(BaseModel):
    """One thing a steward can do. `points` of 100 that it brings; null where the score is the catalog's own."""

    model_config = ConfigDict(frozen=True)

    item: str
    points: float | None
    step: str


class ContactView(BaseModel):
    """Whom to ask: everybody on record in the best role there is; no role and no names when nobody is."""

    model_config = ConfigDict(frozen=True)

    role: str | None
    names: tuple[str, ...]


class WorklistItem(BaseModel):
    """One asset below its threshold, with what it lacks."""

    model_config = ConfigDict(frozen=True)

    id: str
    object_type: ObjectType
    name: str
    title: str | None
    source: str
    url: str | None
    curation_score: float
    curation_native: bool = Field(
        description="the score is the catalog's own: nothing can be promised, so no step has points"
    )
    threshold: float
    points_missing: float
    gaps: tuple[StepView, ...] = Field(description="everything that is missing, most points first")
    fewest_steps: tuple[StepView, ...] = Field(description="enough of it to reach the threshold")
    curation_score_after: float = Field(description="the curation score once the fewest steps are taken")
    contact: ContactView
    governance_score: float
    governance: tuple[GovernancePart, ...]


class ContactWork(BaseModel):
    """The work that one person or team could do; an asset with several of them to ask counts for each."""

    model_config = ConfigDict(frozen=True)

    name: str | None = Field(description="null: nobody is on record")
    assets: int
    points_missing: float


class WorklistSummary(BaseModel):
    """All pages together, under the same access and filters."""

    model_config = ConfigDict(frozen=True)

    assets: int
    points_missing: float
    contacts: int = Field(description="how many different ones there are to ask")
    by_contact: tuple[ContactWork, ...] = Field(
        description=f"those with most assets first, then by name; at most {CONTACTS_SHOWN}"
    )


class WorklistPage(BaseModel):
    """A page of the work list: nearest to the threshold first, then by id."""

    model_config = ConfigDict(frozen=True)

    index_version: int
    data_age_seconds: float | None = Field(description="since the last successful refresh; null before the first")
    entries: tuple[WorklistItem, ...]
    next_cursor: str | None = Field(description="null on the last page")
    summary: WorklistSummary | None = Field(description="on the first page, if asked for; else null")


def asked(item: WorklistItem) -> str:
    """Whom to ask, in one cell."""
    return "; ".join(item.contact.names) or NOBODY


def fewest_told(item: WorklistItem) -> str:
    """The steps that reach the threshold, in one cell, or why there are none."""
    return NO_PROMISE if item.curation_native else told(item.fewest_steps)


def told(steps: Sequence[StepView]) -> str:
    """Steps with the points they bring, in one cell."""
    return "; ".join(step.step if step.points is None else f"{step.step} (+{step.points:.4g})" for step in steps)
