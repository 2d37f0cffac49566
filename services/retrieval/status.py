"""How fresh and how ready the index is: what `/v1/status`, `/readyz` and `vouch status` speak of."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field


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
    """A run with the sources that it refreshed."""

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


class StatusReport(BaseModel):
    """The whole report; a caller without the permission `operate` is shown neither `model`, `sources` nor `runs`."""

    model_config = ConfigDict(frozen=True)

    index_version: int = Field(description="the active one; 0 before the first refresh")
    engine: str
    model: str
    data_age_seconds: float | None = Field(description="since the last successful refresh; null before the first")
    access_age_seconds: float | None = Field(description="age of the access lists that decide; null before the first")
    sources: tuple[SourceStatus, ...] = ()
    runs: tuple[RecentRun, ...] = Field(default=(), description="the last 10, newest first")


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
