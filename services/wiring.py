"""The one place that names concrete classes: settings in, services out. Its part for sources is `wiring_sources`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from services.access import keys
from services.access.principal import Principal
from services.access.rule import Level, parse_level
from services.api.services import QueryServices
from services.catalog.model import Asset, ObjectType
from services.embedded import EmbeddedServer
from services.errors import SettingsError, SourceError, SourceUnknown
from services.index.compose import Composer, ComposeSettings
from services.index.embedder import Embedder, SentenceTransformerEmbedder
from services.index.embedder_backends import BackendStore
from services.index.embedder_export import prepare_batches
from services.index.embedder_query import QueryEmbedder, export_in_a_process
from services.index.model_folder import find_model
from services.index.pgvector.database import PgDatabase
from services.index.pgvector.keys import PgKeyStore
from services.index.pgvector.migrations import migrate
from services.index.pgvector.runs import PgSourceStore
from services.index.pgvector.stores import PgIndexStores
from services.index.reevaluation import Reevaluation
from services.index.refresh import RefreshLimits, RefreshSteps
from services.index.stages import Progress, no_progress
from services.retrieval.abbreviations import load_abbreviations
from services.retrieval.assets import AssetService
from services.retrieval.pgvector.assets import PgAssetStore
from services.retrieval.pgvector.search import SESSION, PgSearchStore
from services.retrieval.pgvector.words import PgWordStore
from services.retrieval.pgvector.worklist import PgPayloadStore, PgWorklistStore
from services.retrieval.search import SearchService, SearchSettings
from services.retrieval.status_service import ReadinessService, StatusService
from services.retrieval.visibility import Visibility
from services.retrieval.words import QueryReader
from services.retrieval.worklist import WorklistService
from services.settings import Settings, SourceSettings, load_sources
from services.trust.check import TrustCheck, check_rules
from services.trust.gate import GateThresholds
from services.trust.rules import TrustRules, load_rules
from services.wiring_sources import configured, source_settings

INDEX_DATABASE = "vouch"
UNFIT = re.compile(r"[^A-Za-z0-9_.-]+")  # characters that no source name has


def now() -> datetime:
    """The clock of everything that is wired here."""
    return datetime.now(UTC)


def embedded_server(settings: Settings) -> EmbeddedServer:
    """The server below VOUCH_HOME, whether it runs or not."""
    return EmbeddedServer(settings.home)


def database_uri(settings: Settings) -> str:
    """Where the index lives. Without a configured database the embedded server is started and kept up to date."""
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    server = embedded_server(settings)
    server.start()
    server.ensure_database(INDEX_DATABASE)
    uri = server.uri(INDEX_DATABASE)
    migrate(uri)
    return uri


def migrate_database(settings: Settings) -> list[str]:
    """Apply the migrations that are missing and name them. None is left where starting the embedded server did it."""
    return migrate(database_uri(settings))


def batch_embedder(settings: Settings) -> SentenceTransformerEmbedder:
    folder = find_model(settings.model)
    store = BackendStore(_backends_folder(settings), folder)
    return SentenceTransformerEmbedder(
        folder,
        batch_rows=settings.embed_batch_rows,
        threads=settings.embed_threads,
        prepare=lambda model: prepare_batches(model, folder, store, settings.embed_precision),
    )


def query_embedder(settings: Settings) -> QueryEmbedder:
    folder = find_model(settings.model)
    backends = _backends_folder(settings)
    return QueryEmbedder(
        folder,
        BackendStore(backends, folder),
        SentenceTransformerEmbedder(folder, batch_rows=1, threads=1),
        lambda: export_in_a_process(folder, backends),
    )


def _backends_folder(settings: Settings) -> Path:
    return settings.home / "models"


def trust_rules(settings: Settings) -> TrustRules:
    """The shipped rules and what the settings' file adds. Raises RulesError naming line and key."""
    return load_rules(settings.trust_rules)


def thresholds(settings: Settings) -> GateThresholds:
    """The gate's thresholds. Raises SettingsError for an object type that there is not."""
    unknown = sorted(set(settings.gate_threshold_by_type) - set(ObjectType))
    if unknown:
        known = ", ".join(ObjectType)
        raise SettingsError(f"VOUCH_GATE_THRESHOLD_BY_TYPE: no object type is named {unknown[0]!r}; known are: {known}")
    return GateThresholds(settings.gate_threshold, settings.gate_threshold_by_type, settings.gate_threshold_by_source)


@contextmanager
def index_database(settings: Settings) -> Iterator[PgDatabase]:
    """The index database, its connections closed afterwards. Starts the embedded server where none is configured."""
    database = PgDatabase(database_uri(settings), pool_size=settings.pool_size)
    try:
        yield database
    finally:
        database.close()


@contextmanager
def index_stores(settings: Settings) -> Iterator[PgIndexStores]:
    with index_database(settings) as database:
        yield PgIndexStores(database)


@contextmanager
def key_store(settings: Settings) -> Iterator[PgKeyStore]:
    """Where the keys of the query API are kept."""
    with index_database(settings) as database:
        yield PgKeyStore(database)


def jsonl_source(settings: Settings, path: Path, name: str | None) -> SourceSettings:
    """A file of JSON Lines as an owning source, named by its folder and file by default. The refresh remembers it.

    Raises SettingsError when the name is taken by another file, or by an entry of the sources file.
    """
    path = path.absolute()
    name = name or UNFIT.sub("-", f"{path.parent.name}-{path.stem}").strip("-.") or path.stem
    try:
        source = SourceSettings(name=name, kind="jsonl", path=path)
    except ValidationError:
        raise SettingsError(f"{name!r} is no name for a source; give --name with letters, digits, - _ .") from None
    with index_database(settings) as database:
        known = {item.name: item for item in source_settings(settings, database)}.get(name)
        if known is not None and (known.kind, known.path) != ("jsonl", path):
            raise SettingsError(f"source {name!r} is {known.kind} {known.path or ''}; give --name another one")
    return known or source


def _composer(settings: Settings, model: Embedder, gate: GateThresholds) -> Composer:
    return Composer(
        trust_rules(settings),
        model,
        ComposeSettings(
            default_classification=parse_level(settings.default_classification, Level.INTERNAL),
            prefer_native_curation=settings.prefer_native_curation,
            thresholds=gate,
        ),
    )


def _limits(settings: Settings) -> RefreshLimits:
    return RefreshLimits(
        quarantine_limit_percent=settings.quarantine_limit_percent,
        quarantine_limit_count=settings.quarantine_limit_count,
        lease_seconds=settings.lease_seconds,
        embed_batch_texts=settings.embed_batch_texts,
        exact_scan_rows=settings.exact_scan_rows,
    )


@contextmanager
def open_refresh(
    settings: Settings, progress: Progress = no_progress, also: SourceSettings | None = None
) -> Iterator[RefreshSteps]:
    """The steps of a refresh over all configured sources, and over `also`, which `begin` will register."""
    model = batch_embedder(settings)
    composer = _composer(settings, model, thresholds(settings))
    with index_database(settings) as database:
        path = settings.sources_path
        in_file = {source.name for source in load_sources(path)} if path is not None else set()
        sources = {
            source.name: configured(source, source.name not in in_file)
            for source in (*source_settings(settings, database), *(() if also is None else (also,)))
        }
        _require_known(settings.gate_threshold_by_source, sources)
        yield RefreshSteps(PgIndexStores(database), sources, composer, model, _limits(settings), progress)


def _require_known(threshold_by_source: Iterable[str], sources: Iterable[str]) -> None:
    known = set(sources)
    unknown = sorted(set(threshold_by_source) - known)
    if unknown:
        named = ", ".join(sorted(known)) or "none"
        raise SettingsError(f"VOUCH_GATE_THRESHOLD_BY_SOURCE: no source is named {unknown[0]!r}; known are: {named}")


@contextmanager
def open_reevaluation(
    settings: Settings, progress: Progress = no_progress, *, threshold: float | None = None
) -> Iterator[Reevaluation]:
    """The steps of a reevaluation; `threshold` stands in for the default one of the settings."""
    model = batch_embedder(settings)
    gate = thresholds(settings)
    composer = _composer(settings, model, gate if threshold is None else replace(gate, default=threshold))
    with index_stores(settings) as stores:
        yield Reevaluation(stores, composer, model, _limits(settings), progress)


def check_trust_rules(settings: Settings, path: Path, source: str) -> TrustCheck:
    """What a rules file would make of the assets that a source lists or adds to, as they are published.

    Raises RulesError naming line and key, SourceUnknown, and SourceError when nothing of the source is published yet.
    """
    rules = load_rules(path)
    with index_database(settings) as database:
        known = {item.name for item in source_settings(settings, database)}
        known |= {row["name"] for row in PgSourceStore(database).sources()}
        if source not in known:
            raise SourceUnknown(f"source {source!r} is unknown; known are: {', '.join(sorted(known)) or 'none'}")
        with PgPayloadStore(database).payloads(source) as payloads:
            report = check_rules(map(Asset.model_validate, payloads), rules)
    if not report.assets:
        raise SourceError(f"no asset of source {source!r} is published yet; run: vouch refresh --source {source}")
    return report


@dataclass(frozen=True)
class KeyService:
    """Authentication of the query API."""

    store: PgKeyStore
    now: Callable[[], datetime]

    def authenticate(self, token: str) -> Principal | None:
        return keys.authenticate(token, self.store, self.now())


def query_services(settings: Settings) -> QueryServices:
    """What the query API answers from, for as long as the process lives."""
    return _query_services(settings, _query_database(settings))


@contextmanager
def open_query_services(settings: Settings) -> Iterator[QueryServices]:
    """The same services for one command; the database is closed afterwards."""
    database = _query_database(settings)
    try:
        yield _query_services(settings, database)
    finally:
        database.close()


def _query_database(settings: Settings) -> PgDatabase:
    session = {**SESSION, "statement_timeout": str(settings.statement_timeout_ms)}
    return PgDatabase(database_uri(settings), pool_size=settings.pool_size, session=session)


def _query_reader(database: PgDatabase, model: Embedder) -> QueryReader:
    """What understands queries. A word that is one token of the model is a word of its language."""
    return QueryReader(
        PgWordStore(database), load_abbreviations(), lambda word: model.count_tokens(word) == model.count_tokens("a")
    )


def _query_services(settings: Settings, database: PgDatabase) -> QueryServices:
    model = query_embedder(settings)
    rules = trust_rules(settings)
    search_store = PgSearchStore(database, exact_scan_rows=settings.exact_scan_rows)
    visibility = Visibility(search_store)
    reader = _query_reader(database, model)
    answers = SearchSettings(min_relevance=settings.min_relevance, pin_exact_names=settings.pin_exact_names)
    return QueryServices(
        search=SearchService(search_store, reader, visibility, model, rules, answers, now),
        assets=AssetService(search_store, PgAssetStore(database), visibility, rules, now),
        worklist=WorklistService(search_store, PgWorklistStore(database), visibility, rules, now),
        status=StatusService(search_store, PgIndexStores(database), visibility, settings.engine),
        readiness=ReadinessService(search_store, model),
        keys=KeyService(PgKeyStore(database), now),
    )
