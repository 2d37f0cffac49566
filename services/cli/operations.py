"""Commands for whoever runs Vouch: database, settings, sources, keys, status, server."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta

import click
from pydantic import SecretStr

from services.access.keys import create_key
from services.access.principal import LOCAL_ADMINISTRATOR, Permission
from services.access.rule import Level
from services.catalog.model import Asset
from services.cli.common import LEVELS, console, print_json, print_table, settings_for_command, split_list
from services.cli.drift import print_drift
from services.cli.render import age_in_words
from services.errors import PermanentError, VouchError
from services.evaluation.golden import read_queries
from services.retrieval.status import SourceStatus
from services.settings import PREFIX, Settings
from services.wiring import (
    database_uri,
    embedded_server,
    index_database,
    index_stores,
    key_store,
    migrate_database,
    now,
    open_query_services,
    thresholds,
    trust_rules,
)
from services.wiring_sources import open_source, source_settings


@click.group()
def db() -> None:
    """The index database: start, stop, migrate, uri."""


@db.command("start")
def db_start() -> None:
    """Start the embedded PostgreSQL server and bring its schema up to date."""
    settings = _embedded_only(settings_for_command())
    click.echo(database_uri(settings))


@db.command("stop")
def db_stop() -> None:
    """Stop the embedded PostgreSQL server."""
    settings = _embedded_only(settings_for_command())
    click.echo("stopped" if embedded_server(settings).stop() else "was not running")


@db.command("migrate")
def db_migrate() -> None:
    """Apply the schema migrations that are missing."""
    settings = settings_for_command()
    # The embedded server is migrated as it starts; what is left to do is then nothing.
    applied = migrate_database(settings)
    click.echo(f"applied {', '.join(applied)}" if applied else "the schema is up to date")


@db.command("uri")
def db_uri() -> None:
    """Print the URI of the index database (with its password, if it has one).

    The embedded server is started for it, and brought up to date.
    """
    click.echo(database_uri(settings_for_command()))


def _embedded_only(settings: Settings) -> Settings:
    if settings.database_url is not None:
        raise PermanentError("VOUCH_DATABASE_URL names a server that Vouch does not own; start and stop it yourself")
    return settings


@click.group()
def sources() -> None:
    """The configured sources: list, test, forget."""


@sources.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def sources_list(as_json: bool) -> None:
    """List the sources with their place and kind."""
    settings = settings_for_command()
    with index_database(settings) as database:
        configured = source_settings(settings, database)
    rows = [(item.name, item.kind, "overlay" if item.overlay else "owner", _place(item)) for item in configured]
    if as_json:
        print_json([dict(zip(("name", "kind", "role", "place"), row, strict=True)) for row in rows])
    else:
        print_table(("name", "kind", "role", "place"), rows)


@sources.command("test")
@click.argument("name", required=False)
def sources_test(name: str | None) -> None:
    """Reach a source (or all) and say what is there; nothing is stored."""
    settings = settings_for_command()
    with index_database(settings) as database:
        configured = {item.name: item for item in source_settings(settings, database)}
    if name is not None and name not in configured:
        known = ", ".join(sorted(configured)) or "none"
        raise click.BadParameter(f"source {name!r} is not configured; known are: {known}", param_hint="NAME")
    failed = False
    for item in [configured[name]] if name else configured.values():
        try:
            click.echo(f"{item.name}: {open_source(item).probe()}")
        except VouchError as error:
            failed = True
            click.echo(f"{item.name}: {error}", err=True)
    if failed:
        sys.exit(1)


@sources.command("forget")
@click.argument("name")
def sources_forget(name: str) -> None:
    """Refresh a source that `refresh --jsonl` registered no longer; what it brought stays in the index."""
    with index_stores(settings_for_command()) as stores:
        forgotten = stores.sources.forget(name)
    if not forgotten:
        raise PermanentError(f"no registered source is named {name!r}; vouch sources list shows them all")
    click.echo("forgotten; its assets stay in the index")


def _place(source: object) -> str:
    path, connection = getattr(source, "path", None), getattr(source, "connection", None)
    return str(path) if path else f"connection {connection}" if connection else "dsn"


@click.group()
def config() -> None:
    """The settings: check."""


@config.command("check")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def config_check(as_json: bool) -> None:
    """Check settings and the files they name, and list every setting with its value; secrets stay hidden.

    Sources that the command line registered stand in the index database: the embedded server is started for them.
    """
    settings = settings_for_command()
    thresholds(settings)
    trust_rules(settings)
    if settings.golden_queries_file is not None:
        read_queries(settings.golden_queries_file)
    values = {PREFIX + name.upper(): _shown(getattr(settings, name)) for name in Settings.model_fields}
    with index_database(settings) as database:
        found = source_settings(settings, database)
    if as_json:
        print_json({"settings": values, "sources": [item.name for item in found]})
        return
    described = {PREFIX + name.upper(): field.description or "" for name, field in Settings.model_fields.items()}
    print_table(("setting", "value", "what it is"), [(name, values[name], described[name]) for name in values])
    console.print(f"sources: {len(found)}; all of this is valid")


def _shown(value: object) -> object:
    if isinstance(value, SecretStr):
        return str(value)
    return value if isinstance(value, bool | int | float | dict) or value is None else str(value)


@click.command()
def schema() -> None:
    """Print the JSON Schema of the interchange form (one asset per line)."""
    print_json(Asset.model_json_schema())


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def status(as_json: bool) -> None:
    """Show how fresh the index is, its sources and its last runs."""
    settings = settings_for_command()
    with open_query_services(settings) as services:
        report = services.status.status(LOCAL_ADMINISTRATOR)
    if as_json:
        print_json(report.model_dump(mode="json"))
        return
    console.print(f"home {settings.home}" if settings.database_url is None else "database of VOUCH_DATABASE_URL")
    console.print(f"index version {report.index_version or '-'} of {report.model or 'no model yet'} on {report.engine}")
    rows = [
        (item.name, item.kind, item.assets, item.last_run.outcome if item.last_run else "never", _age(item))
        for item in report.sources
    ]
    print_table(("source", "kind", "records", "last listing", "data age"), rows)
    runs = [
        (
            run.run_id,
            run.status,
            ", ".join(run.sources) or f"({run.kind})",
            _moment(run.started_at),
            _moment(run.finished_at),
        )
        for run in report.runs
    ]
    print_table(("run", "status", "sources", "started", "finished"), runs)
    if report.drift is not None:
        print_drift(report.drift)


def _age(source: SourceStatus) -> str:
    return "" if source.data_age_seconds is None else age_in_words(source.data_age_seconds)


def _moment(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S %Z}"


@click.group()
def quarantine() -> None:
    """Records that cannot be processed: list."""


@quarantine.command("list")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def quarantine_list(limit: int, as_json: bool) -> None:
    """List the quarantine, newest first."""
    with index_stores(settings_for_command()) as stores:
        entries = stores.records.quarantined(limit)
    if as_json:
        print_json([{key: _shown(value) for key, value in entry.items()} for entry in entries])
        return
    columns = ("source", "record_ref", "stage", "attempts", "error")
    print_table(columns, [[entry[column] for column in columns] for entry in entries])
    if not entries:
        console.print("the quarantine is empty")


@click.group()
def keys() -> None:
    """API keys: create, list, revoke."""


@keys.command("create")
@click.option("--user", required=True)
@click.option("--groups", default="", metavar="A,B")
@click.option("--clearance", type=LEVELS, default=Level.INTERNAL.label, show_default=True)
@click.option(
    "--permission",
    "permissions",
    multiple=True,
    default=[Permission.SEARCH.value],
    show_default=True,
    type=click.Choice([permission.value for permission in Permission]),
    help="May stand more than once.",
)
@click.option("--days", type=click.IntRange(1, 3650), default=365, show_default=True, help="Until it expires.")
def keys_create(user: str, groups: str, clearance: str, permissions: tuple[str, ...], days: int) -> None:
    """Create a key and print its token, this once; only a hash of it is kept."""
    token, record = create_key(
        user,
        split_list(groups),
        Level[clearance.upper()],
        [Permission(permission) for permission in permissions],
        now=now(),
        lifetime=timedelta(days=days),
    )
    with key_store(settings_for_command()) as store:
        store.add(record)
    click.echo(token)


@keys.command("list")
def keys_list() -> None:
    """List the keys, without their tokens."""
    with key_store(settings_for_command()) as store:
        records = store.list()
    rows = [
        (
            record.key_id,
            record.user,
            ", ".join(record.groups),
            record.clearance.label,
            ", ".join(sorted(record.permissions)),
            "revoked" if record.revoked_at else "in force" if record.in_force(now()) else "expired",
            f"{record.expires_at:%Y-%m-%d}",
        )
        for record in records
    ]
    print_table(("key", "user", "groups", "clearance", "permissions", "state", "expires"), rows)


@keys.command("revoke")
@click.argument("key_id")
def keys_revoke(key_id: str) -> None:
    """Revoke a key at once."""
    with key_store(settings_for_command()) as store:
        revoked = store.revoke(key_id, now())
    if not revoked:
        raise PermanentError(f"there is no key {key_id!r} in force; vouch keys list shows them")
    click.echo("revoked")
