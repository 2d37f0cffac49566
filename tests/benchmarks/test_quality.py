"""Ranking quality on public questions, with peers on the same texts in the same run; see `quality/README.md`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from services.embedded import EmbeddedServer
from services.index.model_folder import PACKAGED_MODEL, find_model
from services.index.pgvector.migrations import migrate
from tests.benchmarks.quality.own import measured_table
from tests.benchmarks.quality.peers import KeptVectors
from tests.benchmarks.quality.sets import CHUNK_SET, TABLE_SETS, QualitySet, chunk_set, table_set
from tests.benchmarks.quality.tables import QualityTable, fallen, lines, not_above, read_tables, write_table

KEPT = Path(__file__).resolve().parents[2] / "build" / "benchmarks"
ACCEPTED = Path(__file__).with_name("accepted_quality.json")


@pytest.fixture(scope="module")
def kept_server() -> Iterator[EmbeddedServer]:
    """A server whose databases outlive the run, each with its cache of vectors."""
    server = EmbeddedServer(KEPT / "home")
    ran_before = server.running()
    server.start()
    yield server
    if not ran_before:
        server.stop()


@pytest.fixture
def embed() -> KeptVectors:
    return KeptVectors(find_model(PACKAGED_MODEL), KEPT / "peers")


@pytest.mark.parametrize("name", TABLE_SETS)
def test_tables_are_found_before_peers_find_them(
    name: str,
    shared_folder: Path,
    kept_server: EmbeddedServer,
    embed: KeptVectors,
    accept_quality: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _publish_into(kept_server, name, monkeypatch)
    chosen = table_set(name, shared_folder / "bench")
    table = measured_table(chosen, embed)
    _settle(table, chosen, accept_quality)
    assert not_above(table) == []


def test_passages_are_found(
    shared_folder: Path,
    kept_server: EmbeddedServer,
    embed: KeptVectors,
    accept_quality: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _publish_into(kept_server, CHUNK_SET, monkeypatch)
    chosen = chunk_set(CHUNK_SET, shared_folder / "bench", KEPT)
    _settle(measured_table(chosen, embed), chosen, accept_quality)


def _publish_into(server: EmbeddedServer, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    database = f"quality_{name}"
    server.ensure_database(database)
    migrate(server.uri(database))
    monkeypatch.setenv("VOUCH_HOME", str(server.home))
    monkeypatch.setenv("VOUCH_DATABASE_URL", server.uri(database))
    monkeypatch.setenv("VOUCH_STATEMENT_TIMEOUT_MS", "60000")  # quality does not depend on who else uses the machine


def _settle(table: QualityTable, chosen: QualitySet, accept_quality: bool) -> None:
    """Print and write the table; then either accept it or hold it against the accepted one."""
    print("", *lines(table, chosen.what), sep="\n")
    write_table(KEPT / "quality.json", table)
    if accept_quality:
        write_table(ACCEPTED, table)
    accepted = read_tables(ACCEPTED).get(table.name)
    assert accepted is not None, f"no table of {table.name} is accepted yet; look at this one, then: make bench-accept"
    assert fallen(table, accepted) == []
