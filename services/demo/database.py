"""The demo shop's database: built from sql/demo, and rebuilt only when those files say something else."""

from __future__ import annotations

import hashlib
from importlib.resources import files

import psycopg
from psycopg import sql

from services.errors import SettingsError, StoreUnavailable

SCHEMAS = ("crm", "sales", "logistics", "finance", "staging")
SCRIPTS = ("schema.sql", "data.sql", "views.sql")
MARK = "Vouch demo shop "
BUILD_LOCK = 0x564F554348  # serialises builders; any number that only this uses


def create_demo_database(shop_uri: str) -> None:
    """Fill the database behind `shop_uri` with the demo shop, in one transaction; nothing happens when it is there.

    What was built is remembered as the database's comment, with the SHA-256 of the scripts. Raises SettingsError when
    the database holds schemas of those names that this function did not make (they are left alone), StoreUnavailable
    when it does not answer.
    """
    scripts = [_script(name) for name in SCRIPTS]
    mark = MARK + hashlib.sha256("\n".join(scripts).encode()).hexdigest()
    try:
        with psycopg.connect(shop_uri) as connection:
            built = _build(connection, scripts, mark)
        if built:
            # The server would do it by itself a minute later and give back pages: sizes would change for no reason.
            with psycopg.connect(shop_uri, autocommit=True) as connection:
                connection.execute("VACUUM ANALYZE")
    except psycopg.OperationalError as error:
        raise StoreUnavailable(f"the demo database does not answer: {error}") from error


def _script(name: str) -> str:
    return (files("services") / "_sql" / "demo" / name).read_text(encoding="utf-8")


def _build(connection: psycopg.Connection, scripts: list[str], mark: str) -> bool:
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (BUILD_LOCK,))
    comment = _value(
        connection,
        "SELECT coalesce((SELECT shobj_description(oid, 'pg_database') FROM pg_database"
        " WHERE datname = current_database()), '')",
    )
    if comment == mark:
        return False
    taken = _value(
        connection,
        "SELECT coalesce(string_agg(nspname, ', ' ORDER BY nspname), '') FROM pg_namespace WHERE nspname = ANY(%s)",
        list(SCHEMAS),
    )
    if taken and not comment.startswith(MARK):
        raise SettingsError(
            f"database {connection.info.dbname!r} has schemas of its own named {taken}; give the demo an empty database"
        )
    schemas = sql.SQL(", ").join(map(sql.Identifier, SCHEMAS))
    connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(schemas))
    # Times without a zone and the order of text must not follow whoever builds.
    connection.execute("SET LOCAL TimeZone = 'UTC'")
    for script in scripts:
        connection.execute(script.encode())
    connection.execute("ANALYZE")
    database = sql.Identifier(connection.info.dbname)
    connection.execute(sql.SQL("COMMENT ON DATABASE {} IS {}").format(database, sql.Literal(mark)))
    return True


def _value(connection: psycopg.Connection, query: str, *values: object) -> str:
    row = connection.execute(query.encode(), values).fetchone()
    return "" if row is None else str(row[0])
