"""The command line on arguments, files and catalogs that mean no good."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from services.cli import main
from services.index.pgvector.migrations import migrate


@pytest.fixture
def vouch(database_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a command in an environment of its own: `vouch("status", exit_code=0) -> Result`."""
    migrate(database_uri)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VOUCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("VOUCH_DATABASE_URL", database_uri)

    def run(*arguments: str, exit_code: int = 0) -> Result:
        result = CliRunner().invoke(main, list(arguments), catch_exceptions=False)
        assert result.exit_code == exit_code, result.output
        return result

    return run


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    """One asset whose name and title would rather be commands to the terminal and markup."""
    asset = {"id": "t:orders", "object_type": "table", "name": "\x1b[31morders", "title": "[/b] \x1b]0;owned\x07Orders"}
    file = tmp_path / "catalog.jsonl"
    file.write_text(json.dumps(asset) + "\n", encoding="utf-8")
    return file


def registered(vouch: Any) -> list[str]:
    return [source["name"] for source in json.loads(vouch("sources", "list", "--json").stdout)]


def test_a_dry_run_registers_no_source(vouch: Any, catalog: Path) -> None:
    report = json.loads(vouch("refresh", "--jsonl", str(catalog), "--name", "shop", "--dry-run", "--json").stdout)
    assert report["sources"]["shop"]["would_publish"] == 1
    assert registered(vouch) == []


def test_a_refresh_registers_its_file_once(vouch: Any, catalog: Path) -> None:
    for _ in range(2):
        vouch("refresh", "--jsonl", str(catalog), "--name", "shop")
    assert registered(vouch) == ["shop"]


def test_no_name_of_a_catalog_commands_the_terminal(vouch: Any, catalog: Path) -> None:
    vouch("refresh", "--jsonl", str(catalog))
    for shown in (vouch("show", "t:orders").stdout, vouch("search", "orders", "--explain").stdout):
        assert "orders" in shown
        assert not {"\x1b", "\x07"} & set(shown)
    assert "[/b]" in vouch("search", "orders").stdout


def test_a_question_that_is_not_utf8_is_a_question_all_the_same(vouch: Any, catalog: Path) -> None:
    vouch("refresh", "--jsonl", str(catalog))
    assert "nothing" in vouch("search", "\udcff\udcfe").stdout.lower()
