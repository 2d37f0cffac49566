"""PostgreSQL with pgvector keeps the contracts of an index engine."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from services.embedded import EmbeddedServer
from services.index.pgvector.database import PgDatabase
from services.index.pgvector.migrations import migrate
from services.index.pgvector.stores import PgIndexStores
from services.retrieval.pgvector.assets import PgAssetStore
from services.retrieval.pgvector.search import SESSION, PgSearchStore
from services.retrieval.pgvector.worklist import PgPayloadStore, PgWorklistStore
from tests.contract.engine import ALWAYS_EXACT, Engine
from tests.contract.search_contract import SearchContract
from tests.contract.store_contract import StoreContract
from tests.contract.worklist_contract import WorklistContract

TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'vouch' AND tablename <> 'migration'"


@pytest.fixture(scope="module")
def migrated(postgres_server: EmbeddedServer) -> str:
    """One database for the whole suite: emptying it is several times faster than making another."""
    postgres_server.ensure_database("contract")
    uri = postgres_server.uri("contract")
    migrate(uri)
    return uri


def empty(uri: str) -> None:
    """The database as it is after its migration."""
    with psycopg.connect(uri, options="-c search_path=vouch,public") as connection:
        tables = [name for (name,) in connection.execute(TABLES)]
        versions = [name for name in tables if name.startswith(("embedding_", "chunk_"))]
        connection.execute(f"DROP TABLE IF EXISTS {', '.join((*versions, 'none_to_drop'))}")
        connection.execute(f"TRUNCATE {', '.join(set(tables) - set(versions))}")
        connection.execute("INSERT INTO refresh_lease DEFAULT VALUES")
        connection.execute("INSERT INTO corpus_stat DEFAULT VALUES")


@pytest.fixture
def pgvector(migrated: str) -> Iterator[Engine]:
    empty(migrated)
    writing = PgDatabase(migrated)
    reading = PgDatabase(migrated, session=SESSION)
    yield Engine(
        stores=PgIndexStores(writing),
        search_store=PgSearchStore(reading, exact_scan_rows=ALWAYS_EXACT),
        graph_search_store=PgSearchStore(reading, exact_scan_rows=0),
        asset_store=PgAssetStore(reading),
        worklist_store=PgWorklistStore(reading),
        payload_store=PgPayloadStore(reading),
    )
    writing.close()
    reading.close()


class TestPgvectorStore(StoreContract):
    @pytest.fixture
    def engine(self, pgvector: Engine) -> Engine:
        return pgvector


class TestPgvectorSearch(SearchContract):
    @pytest.fixture
    def engine(self, pgvector: Engine) -> Engine:
        return pgvector


class TestPgvectorWorklist(WorklistContract):
    @pytest.fixture
    def engine(self, pgvector: Engine) -> Engine:
        return pgvector
