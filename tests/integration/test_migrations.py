"""Schema migrations: each once, in order, whoever starts them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from services.errors import SchemaError, StoreUnavailable
from services.index.pgvector import migrations
from services.index.pgvector.migrations import migrate


def test_a_fresh_database_gets_everything_once_and_in_order(database_uri: str) -> None:
    applied = migrate(database_uri)
    assert applied == sorted(applied)
    assert applied[0] == "0001_index.sql"
    assert migrate(database_uri) == []


def test_of_several_processes_one_migrates_and_all_come_back(database_uri: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(migrate, [database_uri] * 4))
    assert sorted(map(len, results))[:3] == [0, 0, 0]
    assert max(results, key=len)[0] == "0001_index.sql"


def test_a_script_that_fails_leaves_the_database_as_it_was(database_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = migrate(database_uri)
    scripts = migrations._scripts()
    new = {"9998_fine.sql": b"CREATE TABLE fine (x int);", "9999_broken.sql": b"CREATE TABLE broken (x nothing);"}
    monkeypatch.setattr(migrations, "_scripts", lambda: {**scripts, **new})
    with pytest.raises(psycopg.ProgrammingError):
        migrate(database_uri)
    monkeypatch.setattr(migrations, "_scripts", lambda: {**scripts, "9998_fine.sql": new["9998_fine.sql"]})
    assert migrate(database_uri) == ["9998_fine.sql"]
    assert before[0] == "0001_index.sql"


def test_a_script_that_was_changed_after_it_was_applied_is_refused(
    database_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(database_uri)
    scripts = migrations._scripts()
    changed = {**scripts, "0001_index.sql": scripts["0001_index.sql"] + b"\n-- changed\n"}
    monkeypatch.setattr(migrations, "_scripts", lambda: changed)
    with pytest.raises(SchemaError, match=r"'0001_index\.sql' was changed after it had been applied"):
        migrate(database_uri)


def test_a_database_of_a_newer_release_is_refused(database_uri: str) -> None:
    migrate(database_uri)
    with psycopg.connect(database_uri) as connection:
        connection.execute("INSERT INTO vouch.migration (name, checksum) VALUES ('9999_future.sql', 'x')")
    with pytest.raises(SchemaError, match=r"'9999_future\.sql', which this release does not know; upgrade"):
        migrate(database_uri)


def test_a_database_that_is_down_is_told_as_such(tmp_path: object) -> None:
    with pytest.raises(StoreUnavailable, match="not reachable"):
        migrate(f"postgresql://nobody@/nothing?host={tmp_path}&port=5432")
