"""Schema migrations: each once, in order, whoever starts them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from services.errors import SchemaError, StoreUnavailable
from services.index.pgvector import migrations
from services.index.pgvector.migrations import migrate
from tests.integration.refresh_kit import new_world, table, written_since

BEFORE_NARROW_READS = """
DROP TABLE posting;
CREATE TABLE posting (
    term text COLLATE "C" NOT NULL, asset_key bigint NOT NULL, weight real NOT NULL, PRIMARY KEY (term, asset_key)
);
CREATE INDEX posting_asset ON posting (asset_key);
INSERT INTO posting SELECT term, asset_key, weight FROM kept;
ALTER TABLE asset DROP COLUMN location, DROP COLUMN url;
"""


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


def test_what_was_published_before_reads_as_if_published_now(database_uri: str, tmp_path: Path) -> None:
    world = new_world(database_uri, tmp_path)
    lines = [
        table("t.orders", "orders", location=["shop", "public"], url="https://catalog/orders"),
        table("t.stock", "stock", descriptions={"business": "what lies in the warehouse"}, location=["shop"]),
        table("t.plain", "plain"),
    ]
    world.put("shop", lines)
    world.refresh()
    published = world.content()
    with psycopg.connect(database_uri, options="-c search_path=vouch,public") as connection:
        connection.execute("CREATE TEMPORARY TABLE kept AS SELECT * FROM posting")
        connection.execute(BEFORE_NARROW_READS)
        connection.execute(migrations._scripts()["0004_narrow_reads.sql"])
    assert world.content() == published
    before = world.counters()
    assert world.refresh()["total"]["written"] == 0
    assert written_since(before, world.counters()) == {}
