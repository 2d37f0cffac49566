"""services.index.pgvector.keys: keys survive the way to PostgreSQL and back, and end when they are revoked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from services.access.keys import authenticate, create_key
from services.access.principal import Permission
from services.access.rule import Level
from services.errors import SchemaError, StoreUnavailable
from services.index.pgvector.database import PgDatabase
from services.index.pgvector.keys import PgKeyStore
from services.index.pgvector.migrations import migrate

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def database(database_uri: str) -> Iterator[PgDatabase]:
    migrate(database_uri)
    database = PgDatabase(database_uri)
    yield database
    database.close()


@pytest.fixture
def store(database: PgDatabase) -> PgKeyStore:
    return PgKeyStore(database)


def test_a_key_comes_back_as_it_was_kept(store: PgKeyStore) -> None:
    _, plain = create_key("sales-ops-lead", now=NOW)
    _, rich = create_key(
        'o"hara, {quoted} \\ 用户',
        ["a,b", "{c}", 'd"e', "NULL", "ünï"],
        Level.RESTRICTED,
        list(Permission),
        now=NOW + timedelta(microseconds=1),
        lifetime=timedelta(days=1),
    )
    store.add(rich)
    store.add(plain)
    assert store.find(plain.key_id) == plain
    assert store.find(rich.key_id) == rich
    assert store.list() == (plain, rich)  # oldest first


def test_a_token_opens_until_it_is_revoked_and_the_first_revocation_stands(store: PgKeyStore) -> None:
    token, record = create_key("sales-ops-lead", ["sales"], Level.INTERNAL, now=NOW)
    store.add(record)
    caller = authenticate(token, store, NOW)
    assert caller is not None
    assert (caller.user, caller.groups, caller.clearance) == ("sales-ops-lead", ("sales",), Level.INTERNAL)

    assert store.revoke(record.key_id, NOW) is True
    assert authenticate(token, store, NOW) is None
    assert store.revoke(record.key_id, NOW + timedelta(days=1)) is False
    assert store.find(record.key_id) == replace(record, revoked_at=NOW)


def test_an_unknown_key_is_neither_found_nor_revoked(store: PgKeyStore) -> None:
    assert store.find("0" * 16) is None
    assert store.revoke("0" * 16, NOW) is False
    assert store.list() == ()


def test_the_token_is_nowhere_in_the_database(store: PgKeyStore, database_uri: str) -> None:
    token, record = create_key("sales-ops-lead", now=NOW)
    store.add(record)
    with psycopg.connect(database_uri) as connection:
        rows = connection.execute("SELECT api_key::text FROM vouch.api_key").fetchall()
    secret = token.rsplit("_", 1)[1]
    assert len(rows) == 1
    assert secret not in rows[0][0]


def test_a_database_without_the_schema_says_what_to_run(database_uri: str) -> None:
    bare = PgDatabase(database_uri)
    with pytest.raises(SchemaError, match="vouch db migrate"):
        PgKeyStore(bare).find("0" * 16)
    bare.close()


def test_a_lost_connection_is_replaced(store: PgKeyStore, database_uri: str) -> None:
    assert store.list() == ()  # a pooled connection is there
    with psycopg.connect(database_uri, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    assert store.list() == ()


def test_an_unreachable_server_is_a_transient_error() -> None:
    unreachable = PgDatabase("postgresql://127.0.0.1:1/nothing")
    with pytest.raises(StoreUnavailable):
        PgKeyStore(unreachable).find("0" * 16)
    unreachable.close()
