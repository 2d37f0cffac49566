"""Schema migrations: plain SQL files, applied once each, in order, under a lock."""

from __future__ import annotations

import hashlib
from importlib.resources import files

import psycopg

from services.errors import SchemaError
from services.index.pgvector.database import translated_errors

LOCK_KEY = 0x564F554348  # "VOUCH"


def migrate(uri: str) -> list[str]:
    """Apply what is missing; the names of the applied files. Safe to run from several processes at once.

    Raises SchemaError when an applied file was changed afterwards or the database is from a newer release.
    """
    with translated_errors(), psycopg.connect(uri, autocommit=False) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK_KEY])
        connection.execute("CREATE SCHEMA IF NOT EXISTS vouch")
        connection.execute("SET LOCAL search_path = vouch, public")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS migration"
            " (name text PRIMARY KEY, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
        )
        applied: dict[str, str] = dict(connection.execute("SELECT name, checksum FROM migration").fetchall())
        scripts = _scripts()
        _refuse_foreign(applied, scripts)
        missing = [name for name in scripts if name not in applied]
        for name in missing:
            connection.execute(scripts[name])
            connection.execute("INSERT INTO migration (name, checksum) VALUES (%s, %s)", [name, _sum(scripts[name])])
        return missing


def _scripts() -> dict[str, bytes]:
    folder = files("services") / "_sql" / "pgvector" / "migrations"
    named = {item.name: item.read_bytes() for item in folder.iterdir() if item.name.endswith(".sql")}
    return dict(sorted(named.items()))


def _refuse_foreign(applied: dict[str, str], scripts: dict[str, bytes]) -> None:
    for name, checksum in applied.items():
        if name not in scripts:
            raise SchemaError(f"the database has migration {name!r}, which this release does not know; upgrade Vouch")
        if checksum != _sum(scripts[name]):
            raise SchemaError(f"migration {name!r} was changed after it had been applied; restore the file")


def _sum(script: bytes) -> str:
    return hashlib.sha256(script).hexdigest()
