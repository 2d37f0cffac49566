"""PostgreSQL with pgvector keeps the contracts of an index engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from services.index.pgvector.database import PgDatabase
from services.index.pgvector.migrations import migrate
from services.index.pgvector.stores import PgIndexStores
from services.retrieval.pgvector.assets import PgAssetStore
from services.retrieval.pgvector.search import SESSION, PgSearchStore
from tests.contract.engine import ALWAYS_EXACT, Engine
from tests.contract.search_contract import SearchContract
from tests.contract.store_contract import StoreContract


@pytest.fixture
def pgvector(database_uri: str) -> Iterator[Engine]:
    migrate(database_uri)
    writing = PgDatabase(database_uri)
    reading = PgDatabase(database_uri, session=SESSION)
    yield Engine(
        stores=PgIndexStores(writing),
        search_store=PgSearchStore(reading, exact_scan_rows=ALWAYS_EXACT),
        graph_search_store=PgSearchStore(reading, exact_scan_rows=0),
        asset_store=PgAssetStore(reading),
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
