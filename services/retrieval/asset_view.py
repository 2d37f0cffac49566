"""One asset as a caller may see it: what `GET /v1/assets/{id}` and `vouch show` speak of."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from services.retrieval.model import GovernancePart


class ChunkView(BaseModel):
    """One structural piece of the narrative, numbered from 0."""

    model_config = ConfigDict(frozen=True)

    number: int
    section: str
    text: str


class CurationPart(BaseModel):
    """One item of the curation score: points = 100 x achieved x weight / applicable weight."""

    model_config = ConfigDict(frozen=True)

    item: str
    weight: float
    achieved: float = Field(description="share of the item that is there, 0..1")
    points: float


class AssetView(BaseModel):
    """Everything about one asset. Whoever builds it has already left out what the caller may not see:

    sample rows and top values under the sensitivity rule, references to hidden assets, other callers' names, and source
    code from all but operators.
    """

    model_config = ConfigDict(frozen=True)

    index_version: int
    data_age_seconds: float | None = Field(description="since the last successful refresh; null before the first")
    attributes: dict[str, Any] = Field(description="the asset's payload: plain JSON values, absent fields left out")
    narrative: str
    chunks: tuple[ChunkView, ...]
    governance_score: float
    governance: tuple[GovernancePart, ...]
    curation_score: float
    curation: tuple[CurationPart, ...]
    eligible: bool
    eligibility_reasons: tuple[str, ...] = ()
