"""Fixtures that every kind of test may use."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from services.embedded import EmbeddedServer

REPOSITORY = Path(__file__).resolve().parents[1]
SHARED = REPOSITORY.parent / "shared"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--run-benchmarks", action="store_true", help="run tests/benchmarks too; they take minutes")


@pytest.fixture(scope="session")
def shared_folder() -> Path:
    """Public catalogs and benchmarks kept beside the checkout; tests that read them skip without."""
    if not SHARED.is_dir():
        pytest.skip(f"public catalogs are not here: no folder {SHARED.name!r} beside the checkout")
    return SHARED


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[EmbeddedServer]:
    """A PostgreSQL server with pgvector for this test session alone."""
    with tempfile.TemporaryDirectory(prefix="vouch-test-") as folder:
        server = EmbeddedServer(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture
def database_uri(postgres_server: EmbeddedServer) -> Iterator[str]:
    """The URI of a fresh, empty database, dropped after the test."""
    name = f"test_{uuid4().hex}"
    postgres_server.ensure_database(name)
    yield postgres_server.uri(name)
    with psycopg.connect(postgres_server.uri("postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
