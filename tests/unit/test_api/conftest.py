"""The query API over in-memory services, called through Flask's test client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from services.access.keys import KeyRecord, KeyStore, authenticate, create_key
from services.access.principal import Permission, Principal
from services.access.rule import Level
from services.api.app import create_app
from services.api.config import ApiConfig
from services.api.services import QueryServices
from services.catalog.model import ObjectType
from services.errors import AssetNotFound
from services.retrieval.asset_view import AssetView, ChunkView, CurationPart
from services.retrieval.model import Explanation, GovernancePart, Matched, Result, SearchAnswer, SearchRequest
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
from services.retrieval.worklist_view import WorklistItem, WorklistPage, WorklistRequest, WorklistSummary

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
GOVERNANCE = (
    GovernancePart(signal="certification", value=1, origin="native", confidence=1, weight=0.2, contribution=0.2),
)


@dataclass
class FakeKeyStore:
    records: dict[str, KeyRecord] = field(default_factory=dict)

    def add(self, record: KeyRecord) -> None:
        self.records[record.key_id] = record

    def find(self, key_id: str) -> KeyRecord | None:
        return self.records.get(key_id)

    def list(self) -> tuple[KeyRecord, ...]:
        return tuple(self.records.values())

    def revoke(self, key_id: str, now: datetime) -> bool:
        record = self.records.get(key_id)
        if record is None or record.revoked_at is not None:
            return False
        self.records[key_id] = KeyRecord(**{**vars(record), "revoked_at": now})
        return True


@dataclass
class FakeKeys:
    """Authentication by a clock of the test's own."""

    store: KeyStore
    clock: Callable[[], datetime]

    def authenticate(self, token: str) -> Principal | None:
        return authenticate(token, self.store, self.clock())


@dataclass
class FakeSearch:
    """Remembers what it was asked; `fails_with` is raised instead of an answer."""

    asked: list[tuple[SearchRequest, Principal, str]] = field(default_factory=list)
    fails_with: Callable[[SearchRequest], Exception] | None = None

    def search(self, request: SearchRequest, principal: Principal, request_id: str) -> SearchAnswer:
        self.asked.append((request, principal, request_id))
        if self.fails_with is not None:
            raise self.fails_with(request)
        return SearchAnswer(
            request_id=request_id,
            index_version=7,
            data_age_seconds=93.6,
            mode=request.mode,
            results=(_result(explained=request.explain),),
            took_ms=1.5,
        )


def _result(*, explained: bool) -> Result:
    explanation = Explanation(
        vector_similarity=None,
        vector_rank=None,
        keyword_score=0.9,
        keyword_rank=1,
        relevance_score=0.45,
        governance_score=0.2,
        governance=GOVERNANCE,
        curation_score=80,
        eligible=True,
    )
    return Result(
        rank=1,
        id="postgres:table:shop.public.orders",
        object_type="table",
        name="orders",
        title=None,
        location=("shop", "public"),
        url=None,
        final_score=0.3875,
        matched=Matched(section="description", text="Orders of the shop."),
        explain=explanation if explained else None,
    )


@dataclass
class FakeAssets:
    views: dict[str, AssetView] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def get(self, asset_id: str, principal: Principal) -> AssetView:
        self.asked.append(asset_id)
        if asset_id not in self.views:
            raise AssetNotFound(f"asset {asset_id!r} is hidden from {principal.user}")
        return self.views[asset_id]


def asset_view(**attributes: Any) -> AssetView:
    return AssetView(
        index_version=7,
        data_age_seconds=None,
        attributes=attributes,
        narrative="Orders is a table.",
        chunks=(ChunkView(number=0, section="description", text="Orders is a table."),),
        governance_score=0.2,
        governance=GOVERNANCE,
        curation_score=80,
        curation=(CurationPart(item="owner or steward", weight=15, achieved=1, points=15),),
        eligible=True,
    )


@dataclass
class FakeWorklist:
    """Remembers what it was asked; `items` are all there are, `next_cursor` leads on."""

    asked: list[tuple[WorklistRequest, Principal]] = field(default_factory=list)
    items: tuple[WorklistItem, ...] = ()
    next_cursor: str | None = None
    fails_with: Exception | None = None

    def page(self, request: WorklistRequest, principal: Principal) -> WorklistPage:
        self.asked.append((request, principal))
        if self.fails_with is not None:
            raise self.fails_with
        summary = WorklistSummary(assets=len(self.items), points_missing=0, contacts=0, by_contact=())
        return WorklistPage(
            index_version=7,
            data_age_seconds=93.6,
            entries=self.items,
            next_cursor=self.next_cursor,
            summary=summary if request.cursor is None else None,
        )

    def pages(self, request: WorklistRequest, principal: Principal) -> Iterator[WorklistPage]:
        yield self.page(request, principal)


def _drift(*moved: str) -> ScoreDrift:
    movers = (
        ScoreMover(id=name, name=name, object_type=ObjectType.TABLE, score_before=40, score_after=70, cause="data")
        for name in moved
    )
    return ScoreDrift(histogram=(1, *[0] * 9), movers=tuple(movers))


@dataclass
class FakeStatus:
    def status(self, principal: Principal) -> StatusReport:  # noqa: ARG002  (the protocol's)
        run = RunReport(
            run_id="r1", status="failed", started_at=NOW, finished_at=NOW, outcome="failed", counts={"seen": 4}
        )
        return StatusReport(
            index_version=7,
            engine="pgvector",
            model="all-MiniLM-L6-v2",
            data_age_seconds=10,
            access_age_seconds=20,
            sources=(SourceStatus(name="payroll", kind="jsonl", overlay=False, assets=4, last_run=run),),
            runs=(RecentRun(**run.model_dump(), sources=("payroll",)),),
            drift=DriftReport(run_id="r1", curation_score=_drift("payroll.salaries"), governance_score=_drift()),
        )


@dataclass
class FakeReadiness:
    checks: tuple[Check, ...] = (Check(name="database", ok=True),)

    def check(self) -> Readiness:
        return Readiness(ready=all(check.ok for check in self.checks), checks=self.checks)


@dataclass
class Api:
    """The app's client with the fakes behind it, and keys made on demand."""

    store: FakeKeyStore = field(default_factory=FakeKeyStore)
    search: FakeSearch = field(default_factory=FakeSearch)
    assets: FakeAssets = field(default_factory=FakeAssets)
    worklist: FakeWorklist = field(default_factory=FakeWorklist)
    readiness: FakeReadiness = field(default_factory=FakeReadiness)
    now: datetime = NOW

    def __post_init__(self) -> None:
        keys = FakeKeys(self.store, clock=lambda: self.now)
        self.services = QueryServices(self.search, self.assets, self.worklist, FakeStatus(), self.readiness, keys)
        self.app = create_app(self.services, ApiConfig())
        self.client: FlaskClient = self.app.test_client()

    def token(self, *permissions: Permission, user: str = "sales-ops-lead", days: int = 30) -> str:
        token, record = create_key(
            user, ["sales"], Level.INTERNAL, permissions or (Permission.SEARCH,), now=NOW, lifetime=timedelta(days=days)
        )
        self.store.add(record)
        return token

    def headers(self, *permissions: Permission) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token(*permissions)}"}


@pytest.fixture
def api() -> Api:
    return Api()
