"""The ranking of a public catalog of 876 tables does not fall, and stays above its peers."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.index.model_folder import PACKAGED_MODEL, find_model
from services.index.pgvector.migrations import migrate
from tests.benchmarks.quality.own import measured_table
from tests.benchmarks.quality.peers import KeptVectors
from tests.benchmarks.quality.sets import table_set
from tests.benchmarks.quality.tables import fallen, not_above, read_tables

ACCEPTED = Path(__file__).resolve().parents[1] / "benchmarks" / "accepted_quality.json"


def test_ranking_does_not_fall_and_stays_above_its_peers(
    shared_folder: Path, database_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(database_uri)
    monkeypatch.setenv("VOUCH_HOME", str(tmp_path))
    monkeypatch.setenv("VOUCH_DATABASE_URL", database_uri)
    monkeypatch.setenv("VOUCH_STATEMENT_TIMEOUT_MS", "60000")  # quality does not depend on who else uses the machine
    chosen = table_set("spider", shared_folder / "bench")
    table = measured_table(chosen, KeptVectors(find_model(PACKAGED_MODEL), tmp_path / "peers"))
    assert fallen(table, read_tables(ACCEPTED)[table.name]) == []
    assert not_above(table) == []
