"""How fresh and how ready the index is: what `/v1/status`, `/readyz` and `vouch status` speak of."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from services.catalog.model import ObjectType
from services.index.run_store import RunKind


class RunReport(BaseModel):
    """One refresh; `counts` are those of `vouch refresh --json` (seen, changed, written, ...)."""

    model_config = ConfigDict(frozen=True)

    run_id: str
    status: str
    started_at: datetime
    finished_at: datetime | None = None
    outcome: str | None = Field(default=None, description="complete, partial or failed; null while listing")
    counts: dict[str, int | float] = Field(default_factory=dict)


class RecentRun(RunReport):
    """A run with the sources that it refreshed; a reevaluation asks none."""

    kind: RunKind = RunKind.REFRESH
    sources: tuple[str, ...]


class SourceStatus(BaseModel):
    """One source and its last run."""

    model_config = ConfigDict(frozen=True)

    name: str
    kind: str
    overlay: bool
    assets: int
    last_run: RunReport | None = None
    data_age_seconds: float | None = Field(default=None, description="since its last successful refresh")


class ScoreMover(BaseModel):
    """One of the largest changes of a run."""

    model_config = ConfigDict(frozen=True)

    id: str
    name: str
    object_type: ObjectType
    score_before: float
    score_after: float
    cause: Literal["data", "rules"] = Field(description="the catalog says something else, or the rules do")


class ScoreDrift(BaseModel):
    """How one kind of score lies over the published assets, and who moved most."""

    model_config = ConfigDict(frozen=True)

    histogram: tuple[int, ...] = Field(description="assets in each tenth of the scale, the lowest first")
    movers: tuple[ScoreMover, ...] = Field(description="at most 20 that the caller may see, the largest change first")


class DriftReport(BaseModel):
    """The scores after the last run that changed any. An expired certification counts until it is scored again."""

    model_config = ConfigDict(frozen=True)

    run_id: str
    finished_at: datetime | None = None
    curation_score: ScoreDrift
    governance_score: ScoreDrift


class StatusReport(BaseModel):
    """The whole report; a caller without the permission `operate` is not shown model, sources, runs and drift."""

    model_config = ConfigDict(frozen=True)

    index_version: int = Field(description="the active one; 0 before the first refresh")
    engine: str
    model: str
    data_age_seconds: float | None = Field(description="since the last successful refresh; null before the first")
    access_age_seconds: float | None = Field(description="age of the access lists that decide; null before the first")
    sources: tuple[SourceStatus, ...] = ()
    runs: tuple[RecentRun, ...] = Field(default=(), description="the last 10, newest first")
    drift: DriftReport | None = Field(default=None, description="null before the first refresh")


class Check(BaseModel):
    """One thing that must work before questions are answered. `detail` is public: no address, no secret."""

    model_config = ConfigDict(frozen=True)

    name: str
    ok: bool
    detail: str = ""


class Readiness(BaseModel):
    """Ready when every check is."""

    model_config = ConfigDict(frozen=True)

    ready: bool
    checks: tuple[Check, ...]
