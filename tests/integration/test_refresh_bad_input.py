"""Whatever a catalog holds: nothing is lost, nothing stops the others, and every fault is named."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from services.access.principal import LOCAL_ADMINISTRATOR
from services.catalog.model import CatalogRecord
from services.catalog.sources.base import Ending, Outcome, Page, Rejection
from services.embedded import EmbeddedServer
from services.errors import ModelError, SchemaError, StoreUnavailable
from services.index.model_folder import find_model
from services.index.pgvector.database import PgDatabase
from services.index.pgvector.stores import PgIndexStores
from services.index.run_store import SourceEntry
from services.retrieval.model import Mode, SearchRequest
from tests.integration.refresh_kit import ListedSource, World, fresh_world, new_world, table

GOOD = table("good", title="Good one", descriptions={"business": "nothing wrong here"})


@pytest.fixture
def world(postgres_server: EmbeddedServer, tmp_path: Path) -> World:
    return fresh_world(postgres_server, tmp_path)


def quarantine(world: World) -> dict[str, dict[str, Any]]:
    return {row["record_ref"]: row for row in world.rows("SELECT * FROM quarantine")}


def attributes(world: World, asset_id: str) -> dict[str, Any]:
    with world.searching() as searching:
        return dict(searching.assets.get(asset_id, LOCAL_ADMINISTRATOR).attributes)


def test_lines_that_are_no_assets_are_kept_with_their_reason_and_the_rest_is_published(world: World) -> None:
    bad = [
        '{"id": "cut", "object_type": "tab',
        '{"id": "t", "object_type": "view", "name": "x"}',
        '{"id": "t", "object_type": "table", "name": "x", "columns": "many"}',
        json.dumps({"id": "t\x00", "object_type": "table", "name": "x"}),
        '{"id": "t\\udc00", "object_type": "table", "name": "x"}',
        "\x00\x00 not JSON \x00",
        "[" * 50_000,
        json.dumps({**GOOD, "title": "the same id again"}),
        json.dumps(table("d" * 2049)),
        '{"id": "n", "object_type": "table", "name": "n", "x": ' + "[" * 400 + "]" * 400 + "}",
    ]
    world.put("shop", [GOOD, *bad, table("last")])
    report = world.refresh()
    assert (report["status"], report["total"]["seen"], report["total"]["quarantined"]) == ("succeeded", 12, 10)
    kept = quarantine(world)
    assert set(kept) == {*(f"line {number}" for number in (2, 3, 4, 5, 6, 7, 8, 10)), "good", "n"}
    assert "not JSON" in kept["line 2"]["error"]
    assert "object_type" in kept["line 3"]["error"]
    assert "columns" in kept["line 4"]["error"]
    assert "NUL or a lone surrogate" in kept["line 5"]["error"]
    assert "duplicate id" in kept["good"]["error"]
    assert "nested too deeply" in kept["n"]["error"]
    assert kept["line 7"]["payload"].startswith("\ufffd\ufffd not JSON")
    assert all(row["stage"] == "extract" and row["source"] == "shop" for row in kept.values())
    assert attributes(world, "good")["title"] == "Good one"
    assert attributes(world, "last")["name"] == "last"
    # Repaired, they leave the quarantine.
    world.put("shop", [GOOD, table("last")])
    world.refresh()
    assert quarantine(world) == {}


def test_nul_and_surrogates_in_values_are_replaced_wherever_they_stand(world: World) -> None:
    line = (
        r'{"id": "a", "object_type": "table", "name": "n\u0000", "title": "\ud800t", "extra": {"k\u0000": ["\udfff"]},'
        r' "columns": [{"name": "c\u0000", "top_values": ["v\u0000"]}], "sample_rows": [{"c\u0000": "\u0000"}],'
        r' "custom_fields": [{"name": "f", "value": "\u0000"}], "tags": [["Finance\u0000"]],'
        r' "access": {"groups": ["g\u0000"]}}'
    )
    world.put("shop", [line])
    assert world.refresh()["total"]["quarantined"] == 0
    shown = attributes(world, "a")
    assert (shown["name"], shown["title"], shown["extra"]) == ("n\ufffd", "\ufffdt", {"k\ufffd": ["\ufffd"]})
    assert shown["columns"][0] == {"name": "c\ufffd", "top_values": ["v\ufffd"]}
    assert world.refresh()["total"]["written"] == 0


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"descriptions": {"business": "lorem ipsum dolor " * 58_000}}, id="1 MB of prose"),
        pytest.param({"descriptions": {"source": "x" * 1_000_000}}, id="1 MB in one word"),
        pytest.param(
            {"columns": [{"name": f"col_{n}", "description": f"thing {n}"} for n in range(3000)]}, id="columns"
        ),
        pytest.param({"name": "n" * 10_000, "title": "t " * 5_000}, id="long names"),
        pytest.param({"name": "數據 " * 3_000, "synonyms": ["é" * 10_000]}, id="long names in many bytes"),
        pytest.param({"name": "...", "title": "\u200b"}, id="nothing to say"),
        pytest.param({"tags": [["t" * 10_000] * 50], "data_products": ["p" * 10_000]}, id="long tags"),
        pytest.param({"extra": {"n": [10**400, 1e308, -0.0, 5e-324], "deep": [[[[[[[[1]]]]]]]]}}, id="odd numbers"),
        pytest.param({"lineage": {"upstream": [f"nowhere.{n}" for n in range(5000)]}}, id="many neighbours"),
        pytest.param(
            {"certification": {"status": "certified", "expires_at": "9999-12-31T23:59:59-12:00"}}, id="end of time"
        ),
        pytest.param({"access": {"groups": [f"group-{n}" for n in range(2000)]}}, id="many groups"),
    ],
)
def test_an_extreme_asset_is_published_and_left_alone_by_the_next_run(world: World, fields: dict[str, Any]) -> None:
    world.put("shop", [table("a", **fields), GOOD])
    report = world.refresh()
    assert (report["status"], report["total"]["quarantined"]) == ("succeeded", 0)
    assert world.rows("SELECT max(octet_length(text)) <= 1000 AS fits FROM chunk_1") == [{"fits": True}]
    with world.searching() as searching:
        assert searching.assets.get("a", LOCAL_ADMINISTRATOR).eligible
        request = SearchRequest(query="nothing wrong here", mode=Mode.DISCOVERY)
        assert searching.search.search(request, LOCAL_ADMINISTRATOR, "r").results[0].id == "good"
    again = world.refresh()
    assert (again["total"]["changed"], again["total"]["written"], again["total"]["embedded"]) == (0, 0, 0)


def test_a_catalog_of_unknown_keys_is_noticed_within_bounds(world: World) -> None:
    records = (CatalogRecord.model_validate(table(f"a{page}-{number}")) for page in range(4) for number in range(2))
    pages = [
        Page((record,), notices=tuple(f"unknown key 'k{index}-{n}' kept in extra" for n in range(1000)))
        for index, record in enumerate(records)
    ]
    world.open_as(ListedSource("shop", [*pages, Ending(Outcome.COMPLETE)]))
    assert world.refresh()["total"]["changed"] == 8


def test_what_a_source_cannot_spell_is_kept_in_quarantine(world: World) -> None:
    rejected = Rejection("ref \x00 " + "é" * 5000, "bad \ud800 byte", "payload \x00" + "x" * 20_000)
    record = CatalogRecord.model_validate(GOOD)
    world.open_as(ListedSource("shop", [Page((record,), (rejected,)), Ending(Outcome.COMPLETE)]))
    assert world.refresh()["total"]["quarantined"] == 1
    ((reference, kept),) = quarantine(world).items()
    assert reference.startswith("ref \ufffd é")
    assert (kept["error"], len(kept["payload"])) == ("bad \ufffd byte", 10_000)


def test_a_database_that_is_down_is_named_at_once_with_what_to_do(tmp_path: Path) -> None:
    started = time.monotonic()
    database = PgDatabase(f"postgresql://nobody@/nothing?host={tmp_path}&port=5432")
    with pytest.raises(StoreUnavailable, match="vouch db start"):
        PgIndexStores(database).runs.recent(1)
    assert time.monotonic() - started < 3
    # It is asked again each time: a server that comes up later is found.
    with pytest.raises(StoreUnavailable):
        PgIndexStores(database).runs.recent(1)
    database.close()


def test_a_database_that_goes_down_fails_what_is_under_way_and_serves_again_when_it_is_back(
    postgres_server: EmbeddedServer, world: World
) -> None:
    world.put("shop", [GOOD])
    world.refresh()
    name = world.uri.split("/")[3].split("?")[0]
    database = PgDatabase(world.uri)
    stores = PgIndexStores(database)
    assert len(stores.runs.recent(1)) == 1
    with psycopg.connect(postgres_server.uri("postgres"), autocommit=True) as server:
        server.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(sql.Identifier(name)))
        server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        with pytest.raises(StoreUnavailable):
            stores.runs.recent(1)
        server.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(sql.Identifier(name)))
    deadline = time.monotonic() + 20
    while True:
        try:
            assert len(stores.runs.recent(1)) == 1
            break
        except StoreUnavailable:
            assert time.monotonic() < deadline
    database.close()


def test_a_connection_that_was_cut_in_the_pool_is_replaced_without_a_word(world: World) -> None:
    database = PgDatabase(world.uri)
    stores = PgIndexStores(database)
    stores.runs.recent(1)
    world.rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    assert stores.runs.recent(1) == ()
    database.close()


def test_a_database_without_the_schema_says_how_to_make_it(database_uri: str) -> None:
    database = PgDatabase(database_uri)
    with pytest.raises(SchemaError, match="vouch db migrate"):
        PgIndexStores(database).sources.put_sources([SourceEntry("a", "jsonl", False, None)])
    # Once it is migrated, the same pool stores vectors.
    world = new_world(database_uri, Path("/nowhere"))
    vectors = world.embedder.embed_documents(["text"])
    stores = PgIndexStores(database)
    stores.runs.begin("r", "process:h:1:1", ["a"], full=False, dry_run=False, is_dead=lambda _held: False)
    assert stores.embeddings.add_vectors("r", ["ab" * 32], vectors) == 1
    database.close()


def test_a_missing_model_is_named_with_the_setting(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="set VOUCH_MODEL"):
        find_model("no-such-model")
    with pytest.raises(ModelError, match="no weights"):
        _ = find_model(str(tmp_path)).identity
