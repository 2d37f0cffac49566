"""A refresh over a database of its own, with a deterministic model: what the refresh and search tests stand on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from services.access.rule import Level
from services.catalog.sources.base import Ending, Page, Source
from services.catalog.sources.jsonl import JsonLinesSource
from services.embedded import EmbeddedServer
from services.index.compose import Composer, ComposeSettings
from services.index.pgvector.database import PgDatabase
from services.index.pgvector.migrations import migrate
from services.index.pgvector.stores import PgIndexStores
from services.index.reevaluation import Reevaluation, reevaluate
from services.index.refresh import ConfiguredSource, RefreshLimits, RefreshSteps
from services.index.run_all import run_all
from services.index.run_store import SourceEntry
from services.index.stages import Progress
from services.retrieval.abbreviations import load_abbreviations
from services.retrieval.assets import AssetService
from services.retrieval.pgvector.assets import PgAssetStore
from services.retrieval.pgvector.search import SESSION, PgSearchStore
from services.retrieval.pgvector.words import PgWordStore
from services.retrieval.search import SearchService, SearchSettings
from services.retrieval.visibility import Visibility
from services.retrieval.words import QueryReader
from services.trust.gate import GateThresholds
from services.trust.rules import TrustRules, load_rules
from tests.contract.pgvector_tables import empty
from tests.embedders import HashEmbedder

BOOKKEEPING = frozenset({"refresh_run", "refresh_run_source", "refresh_run_count", "refresh_lease"})
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DEAD_HOLDER = "process:nowhere:1:0.00"  # of another host, silent for longer than a lease of no time
LIMITS = RefreshLimits(
    quarantine_limit_percent=1,
    quarantine_limit_count=20,
    lease_seconds=900,
    embed_batch_texts=4,
    exact_scan_rows=10_000,
)

COMMON_WORDS = frozenset({"least", "give"})  # what the tests' model takes for words of the language

Line = Mapping[str, Any]


class Killed(BaseException):
    """What stands for a process that dies: nothing that only catches errors may hold it up."""


@dataclass
class ListedSource:
    """A source that lists what it is told to, and raises what stands in its list."""

    name: str
    parts: Sequence[Page | Ending | BaseException]
    overlay: bool = False

    def listing(self) -> Iterator[Page | Ending]:
        for part in self.parts:
            if isinstance(part, BaseException):
                raise part
            yield part

    def probe(self) -> str:
        return f"{len(self.parts)} parts"


@dataclass
class World:
    """One database, its sources and its settings; `embedder` counts what it is asked."""

    uri: str
    folder: Path
    embedder: HashEmbedder = field(default_factory=HashEmbedder)
    sources: dict[str, ConfiguredSource] = field(default_factory=dict)
    limits: RefreshLimits = LIMITS
    thresholds: GateThresholds = field(default_factory=GateThresholds)
    default_classification: Level = Level.PUBLIC
    prefer_native_curation: bool = False
    now: datetime = NOW
    progress: Progress = lambda _stage, _source, _done, _total: None
    rules: TrustRules = field(default_factory=lambda: load_rules(None))

    def put(self, name: str, lines: Iterable[Line | str], *, overlay: bool = False) -> Path:
        """(Re)write a source's file; a str is written as it is."""
        path = self.folder / f"{name}.jsonl"
        texts = (line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines)
        path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        self.open_as(JsonLinesSource(name, path, overlay), path=str(path))
        return path

    def open_as(self, source: Source, path: str | None = None) -> None:
        entry = SourceEntry(source.name, "jsonl", source.overlay, path)
        self.sources[source.name] = ConfiguredSource(entry, lambda: source)

    def composer(self) -> Composer:
        settings = ComposeSettings(self.default_classification, self.prefer_native_curation, self.thresholds)
        return Composer(self.rules, self.embedder, settings)

    @contextmanager
    def steps(self) -> Iterator[RefreshSteps]:
        """The steps on connections of their own, closed afterwards."""
        with self.stores() as stores:
            yield RefreshSteps(stores, self.sources, self.composer(), self.embedder, self.limits, self.progress)

    @contextmanager
    def reevaluation(self) -> Iterator[Reevaluation]:
        with self.stores() as stores:
            yield Reevaluation(stores, self.composer(), self.embedder, self.limits, self.progress)

    @contextmanager
    def stores(self) -> Iterator[PgIndexStores]:
        database = PgDatabase(self.uri)
        try:
            yield PgIndexStores(database)
        finally:
            database.close()

    def reevaluate(self, holder: str = "process:here:1:1") -> dict[str, Any]:
        with self.reevaluation() as steps:
            return reevaluate(steps, holder)

    def refresh(
        self, *names: str, full: bool = False, dry_run: bool = False, holder: str = "process:here:1:1"
    ) -> dict[str, Any]:
        with self.steps() as steps:
            return run_all(steps, names, full=full, dry_run=dry_run, holder=holder)

    @contextmanager
    def searching(self, *, min_relevance: float = 0.2, pin: bool = True) -> Iterator[Searching]:
        database = PgDatabase(self.uri, session=SESSION)
        store = PgSearchStore(database, exact_scan_rows=10_000)
        visibility = Visibility(store)
        reader = QueryReader(PgWordStore(database), load_abbreviations(), COMMON_WORDS.__contains__)
        settings = SearchSettings(min_relevance=min_relevance, pin_exact_names=pin)
        try:
            yield Searching(
                store,
                SearchService(store, reader, visibility, self.embedder, self.rules, settings, lambda: self.now),
                AssetService(store, PgAssetStore(database), visibility, self.rules, lambda: self.now),
            )
        finally:
            database.close()

    def rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        with psycopg.connect(self.uri, options="-c search_path=vouch,public", row_factory=dict_row) as connection:
            return connection.execute(query, values).fetchall()

    def tables(self) -> list[str]:
        query = "SELECT tablename FROM pg_tables WHERE schemaname = 'vouch' ORDER BY tablename"
        return [row["tablename"] for row in self.rows(query)]

    def content(self, *, but: Iterable[str] = BOOKKEEPING) -> dict[str, list[str]]:
        """Every row of every table but these, as text, sorted."""
        found: dict[str, list[str]] = {}
        with psycopg.connect(self.uri, options="-c search_path=vouch,public") as connection:
            for table in sorted(set(self.tables()) - set(but)):
                query = sql.SQL("SELECT t::text FROM {} AS t").format(sql.Identifier(table))
                found[table] = sorted(row[0] for row in connection.execute(query))
        return found

    def index(self) -> dict[str, list[dict[str, Any]]]:
        """What readers see, free of when and in which order it was written."""
        found: dict[str, list[dict[str, Any]]] = {}
        for table in self.tables():
            if table in INDEX_TABLES or table.startswith(("embedding_", "chunk_")):
                rows = self.rows(f"SELECT * FROM {table} AS t ORDER BY t")
                found[table] = [{key: str(value) for key, value in row.items() if key not in TIMES} for row in rows]
        found["term_stat"] = [row for row in found["term_stat"] if row["assets"] != "0"]
        return found

    def counters(self) -> dict[str, tuple[int, int, int]]:
        """Rows inserted, updated and deleted since ever, by table; nobody else may be connected."""
        query = (
            "SELECT count(*) AS others FROM pg_stat_activity"
            " WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        deadline = time.monotonic() + 10
        while self.rows(query)[0]["others"] and time.monotonic() < deadline:
            time.sleep(0.01)  # a server process counts what it wrote when it ends
        rows = self.rows(
            "SELECT relname, n_tup_ins, n_tup_upd, n_tup_del FROM pg_stat_user_tables WHERE schemaname = 'vouch'"
        )
        return {row["relname"]: (row["n_tup_ins"], row["n_tup_upd"], row["n_tup_del"]) for row in rows}


INDEX_TABLES = frozenset(
    {"record", "draft", "edge", "asset", "asset_document", "asset_score", "posting", "term_stat", "corpus_stat",
     "index_version", "vector_cache"}
)  # fmt: skip
TIMES = frozenset({"created_at", "promoted_at"})


@dataclass(frozen=True)
class Searching:
    store: PgSearchStore
    search: SearchService
    assets: AssetService


def fresh_world(server: EmbeddedServer, folder: Path) -> World:
    """A world over the one database that such worlds share, emptied."""
    server.ensure_database("worlds")
    world = new_world(server.uri("worlds"), folder)
    empty(world.uri)
    return world


def new_world(uri: str, folder: Path) -> World:
    migrate(uri)
    return World(uri, folder)


def written_since(before: Mapping[str, tuple[int, ...]], after: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Rows written between two looks at the counters, by table, bookkeeping left out."""
    changed = {
        table: sum(after[table]) - sum(before.get(table, (0, 0, 0))) for table in after if table not in BOOKKEEPING
    }
    return {table: rows for table, rows in changed.items() if rows}


def table(asset_id: str, name: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"id": asset_id, "object_type": "table", "name": name or asset_id.rsplit(".", 1)[-1], **fields}
