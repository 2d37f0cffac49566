"""How fresh and how ready the index is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.access.principal import Principal
from services.catalog.model import ObjectType
from services.errors import VouchError
from services.index.embedder import Embedder
from services.index.run_store import Run
from services.index.store import IndexStores
from services.index.trust_store import Drift
from services.retrieval.status import (
    Check,
    DriftReport,
    Readiness,
    RecentRun,
    RunReport,
    ScoreDrift,
    ScoreMover,
    SourceStatus,
    StatusReport,
)
from services.retrieval.store import SearchStore
from services.retrieval.visibility import Visibility

RUNS_SHOWN = 10


class StatusService:
    """Freshness per source, the last runs, how scores drift. The whole report, but for assets that the caller may not
    see: the API decides who is shown which part."""

    def __init__(self, search: SearchStore, stores: IndexStores, visibility: Visibility, engine: str) -> None:
        self._search = search
        self._stores = stores
        self._visibility = visibility
        self._engine = engine

    def status(self, principal: Principal) -> StatusReport:
        corpus = self._search.corpus()
        drift = self._stores.history.drift(self._visibility.acl_ids(principal))
        return StatusReport(
            index_version=corpus.version or 0,
            engine=self._engine,
            model=corpus.model.model_id if corpus.model else "",
            data_age_seconds=corpus.data_age_seconds,
            # Access lists arrive with the assets: they are as old as the last refresh.
            access_age_seconds=corpus.data_age_seconds,
            sources=tuple(_source(row) for row in self._stores.sources.sources()),
            runs=tuple(_run(run) for run in self._stores.runs.recent(RUNS_SHOWN)),
            drift=None if drift is None else _drift(drift),
        )


class ReadinessService:
    """Whether questions can be answered now."""

    def __init__(self, search: SearchStore, embedder: Embedder) -> None:
        self._search = search
        self._embedder = embedder

    def check(self) -> Readiness:
        checks = [self._index(), self._model()]
        return Readiness(ready=all(check.ok for check in checks), checks=tuple(checks))

    def _index(self) -> Check:
        try:
            version = self._search.corpus().version
        except VouchError as error:
            return Check(name="index", ok=False, detail=type(error).__name__)
        if version is None:
            return Check(name="index", ok=False, detail="no index version is active yet: the first refresh is due")
        return Check(name="index", ok=True, detail=f"version {version}")

    def _model(self) -> Check:
        try:
            corpus = self._search.corpus()
            fits = corpus.model is None or corpus.model == self._embedder.identity
        except VouchError as error:
            return Check(name="model", ok=False, detail=type(error).__name__)
        return Check(name="model", ok=fits, detail="" if fits else "the index was built with another model")


def _source(row: Mapping[str, Any]) -> SourceStatus:
    last = None
    if row["run_id"] is not None:
        last = RunReport(
            run_id=row["run_id"],
            status=row["status"],
            started_at=row["started_at"],
            finished_at=row["finished_at"],
            outcome=row["outcome"],
            counts=row["counts"] or {},
        )
    return SourceStatus(
        name=row["name"],
        kind=row["kind"],
        overlay=row["overlay"],
        assets=row["records"],
        last_run=last,
        data_age_seconds=row["data_age_seconds"],
    )


def _run(run: Run) -> RecentRun:
    totals: dict[str, float] = {}
    for counts in run.counts.values():
        for name, value in counts.items():
            totals[name] = totals.get(name, 0) + value
    return RecentRun(
        run_id=run.run_id,
        kind=run.kind,
        status=run.status,
        started_at=run.started_at,
        finished_at=run.finished_at,
        counts={name: int(value) if value == int(value) else value for name, value in totals.items()},
        sources=run.sources,
    )


def _drift(drift: Drift) -> DriftReport:
    return DriftReport(
        run_id=drift.run_id,
        finished_at=drift.finished_at,
        curation_score=_score_drift(drift, "curation"),
        governance_score=_score_drift(drift, "governance"),
    )


def _score_drift(drift: Drift, score_kind: str) -> ScoreDrift:
    movers = (
        ScoreMover(
            id=mover.id,
            name=mover.name,
            object_type=ObjectType(mover.object_type),
            score_before=mover.score_before,
            score_after=mover.score_after,
            cause=mover.cause,
        )
        for mover in drift.movers
        if mover.score_kind == score_kind
    )
    return ScoreDrift(histogram=drift.histograms[score_kind], movers=tuple(movers))
