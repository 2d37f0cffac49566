"""The command line on a real database with the real model: what it prints, and how it exits."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from services.cli import main
from services.index.pgvector.migrations import migrate

ASSETS: list[dict[str, Any]] = [
    {
        "id": "t:orders",
        "object_type": "table",
        "name": "cust_ord_hdr",
        "title": "Customer orders",
        "location": ["shop", "sales"],
        "descriptions": {"business": "One row per order that a customer placed in the shop."},
        "columns": [{"name": "order_no"}, {"name": "customer_no"}],
        "certification": {"status": "certified"},
        "access": {"classification": "Public"},
    },
    {
        "id": "t:parcels",
        "object_type": "table",
        "name": "parcels",
        "descriptions": {"business": "Parcels that left a warehouse, with their carrier."},
        "access": {"classification": "Internal"},
    },
    {
        "id": "t:salaries",
        "object_type": "table",
        "name": "salaries",
        "descriptions": {"business": "Monthly pay of every employee."},
        "access": {"classification": "Restricted", "groups": ["hr-payroll"]},
    },
]
COUNTS = {
    "seen",
    "changed",
    "written",
    "embedded",
    "cached",
    "unchanged",
    "quarantined",
    "deleted",
    "blocked",
    "seconds",
}


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
def assets_file(tmp_path: Path) -> Path:
    file = tmp_path / "bench" / "assets.jsonl"
    file.parent.mkdir()
    file.write_text("".join(json.dumps(asset) + "\n" for asset in ASSETS), encoding="utf-8")
    return file


def test_a_file_is_one_command_away_from_being_searchable(vouch: Any, assets_file: Path, tmp_path: Path) -> None:
    first = json.loads(vouch("refresh", "--jsonl", str(assets_file), "--json").stdout)
    assert set(first["total"]) >= COUNTS
    assert first["sources"]["bench-assets"]["seen"] == 3
    assert first["total"]["embedded"] == 3
    second = json.loads(vouch("refresh", "--json").stdout)
    assert (second["total"]["written"], second["total"]["embedded"], second["total"]["unchanged"]) == (0, 0, 3)

    answer = json.loads(vouch("search", "orders of customers", "--explain", "--json").stdout)
    assert answer["results"][0]["id"] == "t:orders"
    explain = answer["results"][0]["explain"]
    relevance = (explain["vector_similarity"] + explain["keyword_score"]) / 2
    assert answer["results"][0]["final_score"] == pytest.approx(0.75 * relevance + 0.25 * 0.20)

    shown = json.loads(vouch("show", "t:orders", "--json").stdout)
    assert shown["id"] == "t:orders"
    assert "cust ord hdr" in shown["narrative"]
    assert shown["governance_score"] == pytest.approx(0.20)
    assert {"chunks", "governance", "curation_score", "curation", "eligible"} <= set(shown)

    queries = tmp_path / "queries.jsonl"
    queries.write_text('{"qid": "q1", "question": "orders of customers", "gold": ["t:orders"]}\n', encoding="utf-8")
    measured = json.loads(vouch("evaluate", "--queries", str(queries), "--k", "1,5", "--json").stdout)
    assert measured["queries"] == 1
    assert measured["recall@1"] == measured["complete_recall@5"] == measured["mrr"] == 1.0
    assert measured["per_query"] == [{"qid": "q1", "gold_ranks": {"t:orders": 1}}]


def test_another_user_sees_less_and_cannot_tell(vouch: Any, assets_file: Path) -> None:
    vouch("refresh", "--jsonl", str(assets_file))
    as_guest = ("--as-user", "guest", "--clearance", "Public")
    found = json.loads(vouch("search", "pay of employees", "--mode", "discovery", *as_guest, "--json").stdout)
    assert [result["id"] for result in found["results"]] == ["t:orders"]
    hidden = vouch("show", "t:salaries", *as_guest, exit_code=1).stderr
    missing = vouch("show", "t:nothing", *as_guest, exit_code=1).stderr
    assert hidden.replace("t:salaries", "ID") == missing.replace("t:nothing", "ID")
    payroll = ("--as-user", "pat", "--groups", "hr-payroll", "--clearance", "Restricted")
    assert json.loads(vouch("show", "t:salaries", *payroll, "--json").stdout)["name"] == "salaries"


def test_a_dry_run_changes_nothing(vouch: Any, assets_file: Path) -> None:
    report = json.loads(vouch("refresh", "--jsonl", str(assets_file), "--dry-run", "--json").stdout)
    assert report["dry_run"] is True
    assert report["total"]["would_publish"] == report["total"]["would_embed"] == 3
    assert "no index yet" in vouch("search", "orders", exit_code=1).stderr


def test_bad_lines_are_kept_with_their_numbers(vouch: Any, assets_file: Path) -> None:
    with assets_file.open("a", encoding="utf-8") as file:
        file.write('{"id": "t:x", "object_type": "spreadsheet", "name": "x"}\n{"id": "t:y", "obj')
    report = json.loads(vouch("refresh", "--jsonl", str(assets_file), "--json").stdout)
    assert (report["total"]["seen"], report["total"]["quarantined"]) == (5, 2)
    entries = json.loads(vouch("quarantine", "list", "--json").stdout)
    errors = {entry["record_ref"]: entry["error"] for entry in entries}
    assert "object_type" in errors["line 4"]
    assert "not JSON" in errors["line 5"]


def test_a_name_stands_for_one_file(vouch: Any, assets_file: Path, tmp_path: Path) -> None:
    vouch("refresh", "--jsonl", str(assets_file))
    other = tmp_path / "other.jsonl"
    other.write_text(assets_file.read_text(encoding="utf-8"), encoding="utf-8")
    refused = vouch("refresh", "--jsonl", str(other), "--name", "bench-assets", exit_code=1).stderr
    assert "bench-assets" in refused
    assert "--name" in refused


def test_a_file_that_is_not_there_does_not_become_a_source(vouch: Any, tmp_path: Path) -> None:
    assert "no file" in vouch("refresh", "--jsonl", str(tmp_path / "misspelt.jsonl"), exit_code=1).stderr
    assert json.loads(vouch("sources", "list", "--json").stdout) == []


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        (["refresh"], 1, "no source is configured"),
        (["refresh", "--source", "nope"], 1, "'nope' is not configured"),
        (["refresh", "--jsonl", "missing.jsonl"], 1, "missing.jsonl"),
        (["refresh", "--source", "a", "--jsonl", "b"], 2, "exclude each other"),
        (["refresh", "--name", "a"], 2, "--jsonl"),
        (["search", "x", "--limit", "0"], 2, "1<=x<=50"),
        (["search", "x", "--groups", "a"], 2, "--as-user"),
        (["search", "x", "--clearance", "Public"], 2, "--clearance needs --as-user"),
        (["search", ""], 1, "query: is empty"),
        (["evaluate", "--queries", "missing.jsonl"], 1, "missing.jsonl"),
        (["keys", "revoke", "0000"], 1, "no key"),
        (["frobnicate"], 2, "No such command"),
    ],
)
def test_wrong_use_is_named(vouch: Any, arguments: list[str], exit_code: int, said: str) -> None:
    assert said in vouch(*arguments, exit_code=exit_code).stderr


def test_an_empty_file_leaves_the_index_alone(vouch: Any, assets_file: Path) -> None:
    vouch("refresh", "--jsonl", str(assets_file))
    assets_file.write_text("", encoding="utf-8")
    assert "is empty" in vouch("refresh", exit_code=1).stderr
    assert json.loads(vouch("search", "orders of customers", "--json").stdout)["results"][0]["id"] == "t:orders"


def test_a_port_that_is_taken_is_named(vouch: Any) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        refused = vouch("serve", "--port", str(port), exit_code=1).stderr
    assert f"127.0.0.1:{port}" in refused
    assert "--port" in refused


def test_a_source_that_cannot_be_opened_says_why_and_holds_up_nobody(
    vouch: Any, assets_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = tmp_path / "sources.yaml"
    sources.write_text(
        f"sources:\n  - {{name: warehouse, kind: postgres, connection: nowhere}}\n"
        f"  - {{name: bench, kind: jsonl, path: {assets_file}}}\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("VOUCH_SOURCES_FILE", str(sources))
    tested = vouch("sources", "test", exit_code=1)
    assert "bench: 3 lines" in tested.stdout
    assert "AIRFLOW_CONN_NOWHERE" in tested.stderr
    report = json.loads(vouch("refresh", "--json", exit_code=1).stdout)
    assert report["status"] == "incomplete"
    assert "AIRFLOW_CONN_NOWHERE" in report["error"]
    assert report["sources"]["bench"]["embedded"] == 3


def test_a_registered_file_can_be_forgotten(vouch: Any, assets_file: Path) -> None:
    vouch("refresh", "--jsonl", str(assets_file))
    assets_file.unlink()
    vouch("refresh", exit_code=1)
    vouch("sources", "forget", "bench-assets")
    assert "no source is configured" in vouch("refresh", exit_code=1).stderr
    assert "no registered source" in vouch("sources", "forget", "bench-assets", exit_code=1).stderr
    assert json.loads(vouch("search", "orders of customers", "--json").stdout)["results"][0]["id"] == "t:orders"


def test_a_threshold_names_a_source_that_there_is(
    vouch: Any, assets_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOUCH_GATE_THRESHOLD_BY_SOURCE", '{"bench-asset": 60}')
    refused = vouch("refresh", "--jsonl", str(assets_file), exit_code=1).stderr
    assert "'bench-asset'" in refused
    assert "bench-assets" in refused


def test_settings_are_checked(vouch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "all of this is valid" in vouch("config", "check").stdout
    monkeypatch.setenv("VOUCH_GATE_TRESHOLD", "60")
    assert "VOUCH_GATE_TRESHOLD" in vouch("config", "check", exit_code=1).stderr
    monkeypatch.delenv("VOUCH_GATE_TRESHOLD")
    monkeypatch.setenv("VOUCH_GATE_THRESHOLD", "160")
    assert "VOUCH_GATE_THRESHOLD" in vouch("config", "check", exit_code=1).stderr
    monkeypatch.delenv("VOUCH_GATE_THRESHOLD")
    monkeypatch.setenv("VOUCH_MODEL", "no-such-model")
    assert "no-such-model" in vouch("refresh", exit_code=1).stderr


def test_keys_are_created_listed_and_revoked(vouch: Any) -> None:
    options = ("--groups", "a,b", "--clearance", "Confidential", "--permission", "search", "--permission", "explain")
    token = vouch("keys", "create", "--user", "analyst", *options).stdout.strip()
    listed = vouch("keys", "list").stdout
    assert "analyst" in listed
    assert token not in listed
    vouch("keys", "revoke", token.split("_")[1])
    assert "revoked" in vouch("keys", "list").stdout


def test_the_schema_of_the_interchange_form_is_json_schema(vouch: Any) -> None:
    schema = json.loads(vouch("schema").stdout)
    assert {"id", "object_type", "name"} <= set(schema["required"])
