"""A catalog multiplied in the database is a whole index, and its copies are no near-duplicates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict

from services.embedded import EmbeddedServer
from services.index.pgvector.migrations import migrate
from services.index.pgvector.tables import version_query
from services.sql_files import load_queries
from tests.benchmarks.filling import VERSION, fill
from tests.benchmarks.multiplying import TABLES, multiplied_database
from tests.benchmarks.subjects import prepare_plain
from tests.benchmarks.synthetic import SyntheticCatalog

ASSETS, COPIES = 60, 2
SEARCH_PATH = "-c search_path=vouch,plain,public"


def silent(_: str) -> None:
    """Tells nobody."""


@pytest.fixture
def multiplied(postgres_server: EmbeddedServer, database_uri: str) -> Iterator[tuple[Connection[Any], dict[str, int]]]:
    """A connection to the multiplied catalog, and how many rows each table of the original has."""
    migrate(database_uri)
    fill(database_uri, SyntheticCatalog(ASSETS, brief=True), silent)
    prepare_plain(database_uri)
    with psycopg.connect(database_uri, options=SEARCH_PATH) as connection:
        before = rows(connection)
    original = str(conninfo_to_dict(database_uri)["dbname"])
    for _ in range(2):  # the second time it is there already
        multiplied_database(postgres_server, original, f"{original}_multiplied", COPIES, silent)
    with psycopg.connect(postgres_server.uri(f"{original}_multiplied"), options=SEARCH_PATH) as connection:
        yield connection, before


def rows(connection: Connection[Any]) -> dict[str, int]:
    counts = {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone() for table in TABLES}
    return {table: count[0] for table, count in counts.items() if count}


def test_every_table_grows_alike_and_the_index_is_whole(multiplied: tuple[Connection[Any], dict[str, int]]) -> None:
    connection, before = multiplied
    assert before["asset"] == ASSETS
    assert rows(connection) == {table: (1 + COPIES) * count for table, count in before.items()}
    verify = version_query(load_queries("pgvector/queries/versions.sql")["verify_version"], VERSION)
    assert set(connection.execute(verify).fetchone() or ()) == {0}
    (wrong,) = connection.execute(
        "SELECT count(*) FROM term_stat f"
        " WHERE assets <> (SELECT count(*) FROM posting p WHERE p.term = f.term)"
    ).fetchone() or (None,)  # fmt: skip
    assert wrong == 0


def test_copies_have_names_shapes_and_vectors_of_their_own(multiplied: tuple[Connection[Any], dict[str, int]]) -> None:
    connection, _ = multiplied
    (shared,) = connection.execute(
        "SELECT count(*) FROM asset a JOIN asset b ON a.asset_key < b.asset_key"
        " WHERE a.id = b.id OR a.shape = b.shape OR a.whole_names && b.whole_names"
    ).fetchone() or (None,)
    assert shared == 0
    cosines = connection.execute(
        f"SELECT 1 - (a.embedding <=> b.embedding), vector_norm(b.embedding)"
        f" FROM embedding_{VERSION} a JOIN embedding_{VERSION} b"
        f" ON b.asset_key = a.asset_key # (1::bigint << 40) AND b.number = a.number"
    ).fetchall()
    assert len(cosines) >= 2 * ASSETS
    assert all(0.4 < cosine < 0.99 for cosine, _ in cosines)
    assert all(norm == pytest.approx(1, abs=1e-5) for _, norm in cosines)
