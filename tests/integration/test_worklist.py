"""The work list over a real index: what a steward sees, what stays hidden, and that every promise is kept."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from click.testing import CliRunner
from psycopg import sql

from services.access.principal import LOCAL_ADMINISTRATOR, Principal
from services.access.rule import Level
from services.api.app import create_app
from services.api.config import ApiConfig
from services.catalog.merge import merge_payloads
from services.cli import main
from services.demo.catalog import OVERLAY, SHOP_DATABASE
from services.demo.database import SCHEMAS, create_demo_database
from services.embedded import EmbeddedServer
from services.index.pgvector.database import PgDatabase
from services.index.pgvector.migrations import migrate
from services.retrieval.pgvector.search import SESSION, PgSearchStore
from services.retrieval.pgvector.worklist import PgWorklistStore
from services.retrieval.visibility import Visibility
from services.retrieval.worklist import WorklistService
from services.retrieval.worklist_view import NO_PROMISE, WorklistPage, WorklistRequest
from services.settings import load_settings
from services.trust.gate import GateThresholds
from services.wiring import open_query_services
from tests.embedders import HashEmbedder
from tests.integration.refresh_kit import NOW, World, new_world, table

SALES = {"governance_roles": [{"role": "steward", "name": "sales-stewards"}]}
PAYROLL = {"governance_roles": [{"role": "owner", "name": "payroll-office"}]}
SECRET = {"access": {"classification": "Restricted"}}
FOR_PAYROLL = {"access": {"classification": "Public", "groups": ["payroll"]}}
SOME = {"descriptions": {"business": "One row per order."}}

OPEN = [
    table("t:orders", **SALES, **SOME),
    table("t:parcels", **SALES),
    table("t:carriers"),
    {"id": "f:clicks", "object_type": "file", "name": "clicks.csv"},
]
HIDDEN = [
    table("t:a-salaries", **PAYROLL, **SECRET),
    table("t:orders-of-staff", **SALES, **SOME, **FOR_PAYROLL),
    table("t:zz-bonus", **PAYROLL, **FOR_PAYROLL),
    {"id": "d:redundancies", "object_type": "data_story", "name": "redundancies", **SECRET},
]
STEWARD = Principal("sales-ops-lead", clearance=Level.INTERNAL)


@pytest.fixture
def world(database_uri: str, tmp_path: Path) -> World:
    made = new_world(database_uri, tmp_path)
    made.thresholds = GateThresholds(60)
    return made


@contextmanager
def stewarding(world: World) -> Iterator[WorklistService]:
    database = PgDatabase(world.uri, session=SESSION)
    store = PgSearchStore(database, exact_scan_rows=10_000)
    try:
        yield WorklistService(store, PgWorklistStore(database), Visibility(store), world.rules, lambda: NOW)
    finally:
        database.close()


def seen_by(world: World, principal: Principal, **asked: Any) -> list[WorklistPage]:
    """All pages that the principal is shown, free of how old the data is."""
    with stewarding(world) as service:
        pages = list(service.pages(WorklistRequest(**asked), principal))
    return [page.model_copy(update={"data_age_seconds": None}) for page in pages]


def ids(pages: list[WorklistPage]) -> list[str]:
    return [item.id for page in pages for item in page.entries]


def test_what_is_hidden_changes_nothing_that_a_steward_is_shown(world: World) -> None:
    questions: list[dict[str, Any]] = [
        {"limit": 1}, {"limit": 2}, {}, {"source": ["shop"]}, {"type": ["table"]}, {"type": ["data_story"]},
        {"owner": ["sales-stewards"]}, {"owner": ["payroll-office"]}, {"owner": ["nobody-there"]},
    ]  # fmt: skip
    world.put("shop", OPEN)
    world.refresh()
    before = [seen_by(world, STEWARD, **asked) for asked in questions]
    world.put("shop", [*OPEN, *HIDDEN])
    world.refresh()
    after = [seen_by(world, STEWARD, **asked) for asked in questions]

    assert after == before  # rows, totals, summaries and cursors
    assert ids(after[2]) == ["t:orders", "t:parcels", "f:clicks", "t:carriers"]
    assert after[7] == after[8]
    everything = seen_by(world, LOCAL_ADMINISTRATOR)
    assert sorted(ids(everything)) == sorted(asset["id"] for asset in [*OPEN, *HIDDEN])
    summary = everything[0].summary
    assert summary is not None
    assert "payroll-office" in {work.name for work in summary.by_contact}


def test_cursors_tell_of_nothing_but_the_last_entry_shown(world: World) -> None:
    world.put("shop", [*OPEN, *HIDDEN])
    world.refresh()
    for page in seen_by(world, STEWARD, limit=1)[:-1]:
        assert page.next_cursor is not None
        told = json.loads(base64.urlsafe_b64decode(page.next_cursor + "=="))
        assert told == [pytest.approx(page.entries[-1].points_missing), page.entries[-1].id]


def test_a_made_up_cursor_opens_nothing(world: World) -> None:
    world.put("shop", [*OPEN, *HIDDEN])
    world.refresh()
    start = base64.urlsafe_b64encode(b'[-1.0, ""]').decode().rstrip("=")
    assert ids(seen_by(world, STEWARD, cursor=start)) == ids(seen_by(world, STEWARD))


def test_the_filters_and_what_is_added_up(world: World) -> None:
    world.put("shop", OPEN)
    world.put("lake", [{"id": "f:raw", "object_type": "file", "name": "raw.csv", **SALES}])
    world.refresh()
    assert ids(seen_by(world, STEWARD, source=["LAKE"])) == ["f:raw"]
    assert ids(seen_by(world, STEWARD, type=["file"])) == ["f:raw", "f:clicks"]
    assert ids(seen_by(world, STEWARD, source=["lake", "shop"], owner=["Sales-Stewards"])) == [
        "t:orders", "f:raw", "t:parcels",
    ]  # fmt: skip
    [page] = seen_by(world, STEWARD)
    assert page.summary is not None
    assert (page.summary.assets, page.summary.contacts) == (5, 1)
    assert [(work.name, work.assets) for work in page.summary.by_contact] == [("sales-stewards", 3), (None, 2)]
    assert page.summary.points_missing == pytest.approx(sum(item.points_missing for item in page.entries))


def test_what_reaches_its_threshold_is_not_on_the_list(world: World) -> None:
    world.put("shop", OPEN)
    world.thresholds = GateThresholds(60, by_object_type={"table": 30}, by_source={})
    world.refresh()
    items = {item.id: item for page in seen_by(world, STEWARD) for item in page.entries}
    assert set(items) == {"t:parcels", "t:carriers", "f:clicks"}
    assert (items["t:carriers"].threshold, items["f:clicks"].threshold) == (30, 60)
    assert all(item.curation_score < item.threshold <= item.curation_score_after for item in items.values())


@pytest.fixture
def environment(database_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A home, an empty index and a small model of its own for the command line."""
    migrate(database_uri)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VOUCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("VOUCH_DATABASE_URL", database_uri)
    monkeypatch.setenv("VOUCH_GATE_THRESHOLD", "60")
    for name in ("batch_embedder", "query_embedder"):
        monkeypatch.setattr(f"services.wiring.{name}", lambda _settings: HashEmbedder())
    return monkeypatch


def vouch(*arguments: str, exit_code: int = 0) -> str:
    result = CliRunner().invoke(main, list(arguments), catch_exceptions=False)
    assert result.exit_code == exit_code, result.output
    return result.stdout if exit_code == 0 else result.stderr


def listed(file: Path, assets: list[dict[str, Any]]) -> str:
    file.write_text("".join(json.dumps(asset) + "\n" for asset in assets), encoding="utf-8")
    return str(file)


@pytest.mark.usefixtures("environment")
def test_the_command_in_its_three_forms(tmp_path: Path) -> None:
    assert "no index yet" in vouch("worklist")
    vouch("refresh", "--jsonl", listed(tmp_path / "shop.jsonl", [*OPEN, *HIDDEN]), "--name", "shop")

    told = vouch("worklist", "--as-user", "sales-ops-lead")
    assert "sales-stewards" in told
    assert "4 assets are below their threshold" in told
    assert "payroll" not in told

    document = json.loads(vouch("worklist", "--json", "--limit", "3"))
    assert set(document) == {"index_version", "data_age_seconds", "entries", "summary"}
    assert (len(document["entries"]), document["summary"]["assets"]) == (3, 8)

    rows = list(csv.DictReader(io.StringIO(vouch("worklist", "--csv"))))
    assert len(rows) == 8
    assert [row["id"] for row in rows][:3] == [entry["id"] for entry in document["entries"]]
    of_one = csv.DictReader(io.StringIO(vouch("worklist", "--csv", "--owner", "payroll-office", "--limit", "1")))
    assert [row["ask"] for row in of_one] == ["payroll-office"]
    vouch("worklist", "--csv", "--json", exit_code=2)
    vouch("worklist", "--type", "spreadsheet", exit_code=2)


@pytest.mark.usefixtures("environment")
def test_over_http_a_steward_follows_the_links_and_meets_nothing_hidden(tmp_path: Path) -> None:
    vouch("refresh", "--jsonl", listed(tmp_path / "shop.jsonl", [*OPEN, *HIDDEN]), "--name", "shop")
    key = vouch("keys", "create", "--user", "sales-ops-lead", "--permission", "steward").strip()
    headers = {"Authorization": f"Bearer {key}"}
    with open_query_services(load_settings()) as services:
        client = create_app(services, ApiConfig()).test_client()
        for form in ("json", "csv"):
            address, answers = f"/v1/worklist?limit=1&format={form}", []
            while address:
                answers.append(client.get(address, headers=headers))
                address = answers[-1].headers.get("Link", "").partition(">")[0].removeprefix("<")
            assert [answer.status_code for answer in answers] == [200] * 4
            told = "".join(answer.text for answer in answers) + "".join(str(answer.headers) for answer in answers)
            assert all(asset["id"] in told for asset in OPEN)
            assert not [word for word in ("salaries", "bonus", "staff", "redundancies", "payroll") if word in told]
        assert client.get("/v1/worklist?cursor=AAAA", headers=headers).status_code == 422
        assert "sales-ops-lead" not in client.get("/metrics").text


def test_a_csv_of_many_pages_has_one_header(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environment.setattr("services.cli.stewards.ENTRIES_MAX", 2)
    vouch("refresh", "--jsonl", listed(tmp_path / "shop.jsonl", [*OPEN, *HIDDEN]), "--name", "shop")
    rows = list(csv.DictReader(io.StringIO(vouch("worklist", "--csv"))))
    assert sorted(row["id"] for row in rows) == sorted(asset["id"] for asset in [*OPEN, *HIDDEN])
    assert len(json.loads(vouch("worklist", "--json", "--limit", "5"))["entries"]) == 5


def test_a_score_of_the_catalogs_own_is_no_promise(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environment.setenv("VOUCH_PREFER_NATIVE_CURATION", "true")
    assets = [table("t:orders", curation_score=40, **SALES), table("t:parcels", **SALES)]
    vouch("refresh", "--jsonl", listed(tmp_path / "shop.jsonl", assets), "--name", "shop")
    entries = {entry["id"]: entry for entry in json.loads(vouch("worklist", "--json"))["entries"]}
    native, ours = entries["t:orders"], entries["t:parcels"]
    assert (native["curation_score"], native["curation_native"], native["fewest_steps"]) == (40, True, [])
    assert {gap["points"] for gap in native["gaps"]} == {None}
    assert (ours["curation_native"], bool(ours["fewest_steps"])) == (False, True)
    assert NO_PROMISE in vouch("worklist", "--csv")


@pytest.fixture
def demo_overlay(environment: pytest.MonkeyPatch, postgres_server: EmbeddedServer, tmp_path: Path) -> Iterator[Path]:
    """A copy of the demo's overlay, in force over the crawled shop."""
    postgres_server.ensure_database(SHOP_DATABASE)
    dsn = postgres_server.uri(SHOP_DATABASE)
    create_demo_database(dsn)
    overlay = tmp_path / "overlay.jsonl"
    overlay.write_bytes(OVERLAY.read_bytes())
    sources = [
        {"name": "shop", "kind": "postgres", "dsn": dsn, "schemas": list(SCHEMAS)},
        {"name": "governance", "kind": "jsonl", "path": str(overlay), "overlay": True},
    ]
    (tmp_path / "sources.yaml").write_text(yaml.safe_dump({"sources": sources}), encoding="utf-8")
    environment.setenv("VOUCH_SOURCES_FILE", str(tmp_path / "sources.yaml"))
    yield overlay
    with psycopg.connect(postgres_server.uri("postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(SHOP_DATABASE)))


STEPS: dict[str, dict[str, Any]] = {
    "business_description": {"descriptions": {"business": "What people use it for."}},
    "technical_description": {"descriptions": {"technical": "How it is made."}},
    "title": {"title": "Another word for it"},
    "owner_or_steward": {"governance_roles": [{"role": "steward", "name": "shop-stewards"}]},
    "glossary_association": {"terms": [{"name": "Order value"}]},
    "tags": {"tags": [["Revenue"]]},
    "classification": {"access": {"classification": "Internal"}},
    "quality_or_profile": {"profile_status": "profiled"},
    "certification": {"certification": {"status": "cautioned"}},
    "connection": {"data_products": ["Order insight"]},
    "domain_or_category": {"attributes": {"domain": "Sales"}},
    "status": {"attributes": {"status": "Active"}},
}
DESCRIBED = {"term": "definition", "tag": "description"}


def taken(step: str, shown: dict[str, Any]) -> dict[str, Any]:
    """What a steward writes who takes the step for the asset; `shown` is the asset as it is now."""
    if step == "business_description" and shown["object_type"] in DESCRIBED:
        return {"attributes": {DESCRIBED[shown["object_type"]]: "What people mean by it."}}
    if step == "described_columns":
        names = [column["name"] for column in shown.get("columns", [])] or ["order_no"]
        return {"columns": [{"name": name, "description": "What stands in it."} for name in names]}
    return STEPS[step]


def test_stewards_who_take_the_fewest_steps_get_what_they_were_promised(demo_overlay: Path) -> None:
    vouch("refresh")
    entries = json.loads(vouch("worklist", "--json", "--limit", "1000"))["entries"]
    assert len(entries) >= 5
    assert len({entry["object_type"] for entry in entries}) >= 5
    lines = {line["id"]: line for line in map(json.loads, demo_overlay.read_text(encoding="utf-8").splitlines())}
    for entry in entries:
        shown = json.loads(vouch("show", entry["id"], "--json"))
        done = [taken(step["item"], shown) for step in entry["fewest_steps"]]
        lines[entry["id"]] = merge_payloads([lines.get(entry["id"], {"id": entry["id"]}), *done])
    listed(demo_overlay, list(lines.values()))
    vouch("refresh")

    for entry in entries:
        after = json.loads(vouch("show", entry["id"], "--json"))
        gained = sum(step["points"] for step in entry["fewest_steps"])
        assert after["curation_score"] == pytest.approx(entry["curation_score_after"], abs=1e-6), entry["id"]
        assert after["curation_score"] - entry["curation_score"] == pytest.approx(
            gained,
            abs=1e-6 * (1 + len(entry["fewest_steps"])),  # each step's points are told to six decimals
        )
        assert after["curation_score"] >= entry["threshold"] == 60
        assert after["eligible"] is True
    assert json.loads(vouch("worklist", "--json"))["entries"] == []


def test_one_step_less_than_the_fewest_is_not_enough(demo_overlay: Path) -> None:
    vouch("refresh")
    entries = json.loads(vouch("worklist", "--json", "--limit", "1000"))["entries"]
    for entry in entries:
        most = sorted((gap["points"] for gap in entry["gaps"]), reverse=True)[: len(entry["fewest_steps"]) - 1]
        assert entry["curation_score"] + sum(most) < entry["threshold"]
    assert demo_overlay.is_file()
