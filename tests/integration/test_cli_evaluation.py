"""`vouch evaluate` on a real database with the real model: what is printed, kept, refused and accepted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

import pytest
from click.testing import CliRunner, Result

from services.cli import main
from services.index.pgvector.migrations import migrate

ASSETS = [
    {"id": "t:orders", "object_type": "table", "name": "orders", "descriptions": {"business": "Orders of customers."}},
    {"id": "t:parcels", "object_type": "table", "name": "parcels", "descriptions": {"business": "What was sent."}},
]
GOLDEN = {"qid": "g1", "question": "orders of customers", "gold": ["t:orders"]}
WRONG = {"qid": "g2", "question": "what was sent in parcels?", "gold": ["t:orders", "t:letters"]}


class Vouch(Protocol):
    def __call__(self, *arguments: str, exit_code: int = 0) -> Result: ...


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all tests: the model is exported into it once."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def vouch(database_uri: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Vouch:
    """Commands over an index of two tables."""
    migrate(database_uri)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VOUCH_HOME", str(home))
    monkeypatch.setenv("VOUCH_DATABASE_URL", database_uri)

    def run(*arguments: str, exit_code: int = 0) -> Result:
        result = CliRunner().invoke(main, list(arguments), catch_exceptions=False)
        assert result.exit_code == exit_code, result.output
        return result

    catalog(tmp_path, *ASSETS)
    run("refresh", "--jsonl", str(tmp_path / "assets.jsonl"), "--name", "shop")
    return run


def catalog(folder: Path, *assets: dict[str, Any]) -> None:
    (folder / "assets.jsonl").write_text("".join(json.dumps(asset) + "\n" for asset in assets), encoding="utf-8")


def golden(folder: Path, *queries: dict[str, Any]) -> str:
    file = folder / "golden.jsonl"
    file.write_text("".join(json.dumps(query) + "\n" for query in queries), encoding="utf-8")
    return str(file)


def test_a_person_sees_the_worst_queries_and_gold_that_is_not_there(vouch: Vouch, tmp_path: Path) -> None:
    shown = vouch("evaluate", "--queries", golden(tmp_path, GOLDEN, WRONG))
    assert "1 of 2 queries do not have all their gold on top" in shown.stdout
    (row,) = [line for line in shown.stdout.splitlines() if line.startswith("g")]
    assert row.startswith("g2")
    assert "t:orders 2, t:letters -" in row
    assert row.rstrip().endswith("t:parcels")
    assert "1 gold ids cannot be found:\n  't:letters' is not in the index (gold of g2)" in shown.stderr


def test_without_a_reason_nothing_is_kept(vouch: Vouch, tmp_path: Path) -> None:
    measured = json.loads(vouch("evaluate", "--queries", golden(tmp_path, GOLDEN), "--json").stdout)
    assert list(measured) == [
        "queries", "recall@1", "recall@5", "recall@10", "complete_recall@1", "complete_recall@5", "complete_recall@10",
        "mrr", "ndcg@10", "per_query",
    ]  # fmt: skip
    assert json.loads(vouch("evaluate", "--trend", "--json").stdout) == []
    assert "no run is kept yet" in vouch("evaluate", "--trend").stdout


def test_a_drop_is_refused_until_it_is_accepted_and_the_trend_tells(
    vouch: Vouch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOUCH_GOLDEN_QUERIES_FILE", golden(tmp_path, GOLDEN))
    first = json.loads(vouch("evaluate", "--record", "--json").stdout)
    assert (first["recorded"]["status"], first["ndcg@10"]) == ("first", 1.0)

    catalog(tmp_path, *ASSETS, {**ASSETS[0], "id": "t:rival", "name": GOLDEN["question"]})
    vouch("refresh")
    refused = vouch("evaluate", "--record", exit_code=3)
    assert "kept as fell" in refused.stdout
    assert "'t:orders' from rank 1 to 2, overtaken by 't:rival'" in refused.stderr
    assert "vouch evaluate --accept" in refused.stderr
    assert json.loads(vouch("evaluate", "--record", "--json", exit_code=3).stdout)["recorded"]["fallen"] == ["g1"]

    accepted = json.loads(vouch("evaluate", "--accept", "--json").stdout)["recorded"]
    assert (accepted["status"], accepted["ndcg_before"]) == ("accepted", 1.0)
    vouch("evaluate", "--record")

    trend = json.loads(vouch("evaluate", "--trend", "--json").stdout)
    assert [run["status"] for run in trend] == ["passed", "accepted", "fell", "fell", "first"]
    assert [run["per_query"][0]["gold_ranks"] for run in trend] == [{"t:orders": 2}] * 4 + [{"t:orders": 1}]
    assert trend[0]["run_id"] != trend[-1]["run_id"]
    assert trend[0]["question_set"] == trend[-1]["question_set"]
    table = vouch("evaluate", "--trend").stdout
    assert "-0.3691 on 1" in table
    assert "g1" in table


@pytest.mark.parametrize(
    ("options", "exit_code", "said"),
    [
        ((), 1, "VOUCH_GOLDEN_QUERIES_FILE"),
        (("--trend", "--record"), 2, "--trend asks nothing"),
        (("--record", "--source", "shop", "--queries", "golden.jsonl"), 2, "asks the whole index"),
        (("--accept", "--k", "50", "--queries", "golden.jsonl"), 2, "30 ranks deep"),
        (("--k", "0", "--queries", "golden.jsonl"), 2, "whole numbers from 1 to 50"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    options: tuple[str, ...], exit_code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOUCH_HOME", str(tmp_path))
    result = CliRunner().invoke(main, ["evaluate", *options], catch_exceptions=False)
    assert (result.exit_code, said in result.stderr) == (exit_code, True), result.output


def test_a_wrong_line_is_named_when_the_settings_are_checked(
    vouch: Vouch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOUCH_GOLDEN_QUERIES_FILE", golden(tmp_path, GOLDEN, {**WRONG, "gold": []}))
    assert "golden.jsonl, line 2: gold" in vouch("config", "check", exit_code=1).stderr
