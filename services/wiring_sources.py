"""The part of the wiring that names the concrete sources: an entry of the sources file in, a source out."""

from __future__ import annotations

from services.catalog.sources.base import Source
from services.catalog.sources.connections import postgres_dsn
from services.catalog.sources.datahub import DataHubFileSource
from services.catalog.sources.jsonl import JsonLinesSource
from services.catalog.sources.postgres import PostgresSource
from services.errors import SettingsError
from services.index.pgvector.database import PgDatabase
from services.index.pgvector.runs import PgSourceStore
from services.index.refresh import ConfiguredSource
from services.index.run_store import SourceEntry
from services.settings import Settings, SourceSettings, connection_from_environment, load_sources


def source_settings(settings: Settings, database: PgDatabase) -> tuple[SourceSettings, ...]:
    """The sources file's entries, then those that the command line registered."""
    path = settings.sources_path
    listed = load_sources(path) if path is not None else ()
    names = {source.name for source in listed}
    registered = [row for row in PgSourceStore(database).sources() if row["registered"] and row["name"] not in names]
    return (*listed, *(SourceSettings(name=row["name"], kind=row["kind"], path=row["path"]) for row in registered))


def configured(source: SourceSettings, registered: bool) -> ConfiguredSource:
    """The entry as a refresh takes it; `registered` when it stands in the database and not in the sources file."""
    path = None if source.path is None else str(source.path)
    entry = SourceEntry(source.name, source.kind, source.overlay, path, registered)
    return ConfiguredSource(entry, lambda: open_source(source))


def open_source(source: SourceSettings) -> Source:
    """The source that an entry of the sources file describes."""
    if source.kind == "postgres":
        return PostgresSource(
            name=source.name,
            dsn=_dsn(source),
            schemas=source.schemas,
            overlay=source.overlay,
            top_values=source.top_values,
            classification=source.classification,
        )
    if source.path is None:  # the settings refuse this; the type does not know
        raise SettingsError(f"source {source.name!r} needs a path")
    if source.kind == "datahub":
        return DataHubFileSource(name=source.name, path=source.path, overlay=source.overlay)
    return JsonLinesSource(name=source.name, path=source.path, overlay=source.overlay)


def _dsn(source: SourceSettings) -> str:
    if source.dsn is not None:
        return source.dsn.get_secret_value()
    connection = source.connection or ""
    return postgres_dsn(connection_from_environment(connection), connection)
