"""`vouch trust check`: what a rules file would make of a source, before anyone turns it on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from services.cli import main
from services.index.pgvector.migrations import migrate
from services.trust.check import NO_SIGNAL
from tests.embedders import HashEmbedder

ORDERS = {
    "id": "t:orders",
    "object_type": "table",
    "name": "orders",
    "custom_fields": [{"name": "CDE", "value": "[maybe]"}, {"name": "Stand", "value": "gepflegt"}],
    "tags": [["Gold"]],
}
PARCELS = {
    "id": "t:parcels",
    "object_type": "table",
    "name": "parcels",
    "custom_fields": [{"name": "CDE", "value": "yes"}],
}
RULES = """
signals:
  authoritative:
    labels:
      gold: { says: true }
"""


@pytest.fixture(autouse=True)
def _environment(database_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    migrate(database_uri)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VOUCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("VOUCH_DATABASE_URL", database_uri)
    for name in ("batch_embedder", "query_embedder"):
        monkeypatch.setattr(f"services.wiring.{name}", lambda _settings: HashEmbedder())


def vouch(*arguments: str, exit_code: int = 0) -> str:
    result = CliRunner().invoke(main, list(arguments), catch_exceptions=False)
    assert result.exit_code == exit_code, result.output
    return result.stdout if exit_code == 0 else result.stderr


def configure(folder: Path, *sources: dict[str, Any]) -> None:
    (folder / "home").mkdir()
    (folder / "home" / "sources.yaml").write_text(yaml.safe_dump({"sources": list(sources)}), encoding="utf-8")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A source of two tables, an overlay on one of them, both refreshed; the path of a rules file."""
    overlay = {"id": "t:parcels", "custom_fields": [{"name": "Golden Source?", "value": "Y"}]}
    for name, lines in (("shop", [ORDERS, PARCELS]), ("notes", [overlay])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    configure(
        tmp_path,
        {"name": "shop", "kind": "jsonl", "path": str(tmp_path / "shop.jsonl")},
        {"name": "notes", "kind": "jsonl", "path": str(tmp_path / "notes.jsonl"), "overlay": True},
        {"name": "later", "kind": "jsonl", "path": str(tmp_path / "later.jsonl")},
    )
    vouch("refresh", "--source", "shop")
    vouch("refresh", "--source", "notes")
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES, encoding="utf-8")
    return rules


def checked(rules: Path, source: str) -> dict[tuple[str, str], dict[str, Any]]:
    report = json.loads(vouch("trust", "check", str(rules), "--source", source, "--json"))
    return {(field["kind"], field["name"]): field for field in report["fields"]}


def test_each_name_is_told_with_its_fates_and_what_could_not_be_read(shop: Path) -> None:
    fields = checked(shop, "shop")
    assert set(fields) == {("custom field", name) for name in ("CDE", "Stand", "Golden Source?")} | {("tag", "Gold")}
    cde = fields["custom field", "CDE"]
    assert (cde["signal"], cde["seen"]) == ("critical_data_element", 2)
    assert cde["fates"] == {"unreadable": 1, "counts": 1}
    assert cde["unreadable_values"] == ["[maybe]"]
    assert fields["custom field", "Stand"]["signal"] == NO_SIGNAL
    assert fields["custom field", "Golden Source?"]["fates"] == {"counts": 1}  # an overlay's field is one of the asset
    assert fields["tag", "Gold"]["fates"] == {"counts": 1}  # by the file that is checked, and by no other


def test_the_rules_are_not_turned_on(shop: Path) -> None:
    before = vouch("show", "t:orders", "--json")
    checked(shop, "shop")
    assert json.loads(vouch("show", "t:orders", "--json"))["governance"] == json.loads(before)["governance"]


def test_an_overlay_is_checked_with_the_assets_that_it_adds_to(shop: Path) -> None:
    assert set(checked(shop, "notes")) == {("custom field", "CDE"), ("custom field", "Golden Source?")}


def test_a_table_for_people_holds_whatever_a_catalog_holds(shop: Path) -> None:
    told = vouch("trust", "check", str(shop), "--source", "shop")
    assert "[maybe]" in told
    assert "2 assets of shop" in told


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "signals:\n  data_quality:\n    weigth: 0.3\n",
            "rules.yaml, line 3: signals.data_quality.weigth: unknown key",
        ),
        ("signals: [\n", "rules.yaml, line 2: not valid YAML"),
        ("confidence:\n  tag: 1.5\n", "rules.yaml, line 2: confidence.tag: "),
    ],
)
def test_a_rules_file_that_is_wrong_is_named_with_line_and_key(shop: Path, text: str, said: str) -> None:
    shop.write_text(text, encoding="utf-8")
    assert said in vouch("trust", "check", str(shop), "--source", "shop", exit_code=1)


def test_what_cannot_be_checked_fails_with_the_fix(shop: Path) -> None:
    assert "missing.yaml" in vouch("trust", "check", "missing.yaml", "--source", "shop", exit_code=1)
    assert "known are: later, notes, shop" in vouch("trust", "check", str(shop), "--source", "shpo", exit_code=1)
    assert "vouch refresh --source later" in vouch("trust", "check", str(shop), "--source", "later", exit_code=1)
    vouch("trust", "check", str(shop), exit_code=2)


def aspect_of(proposal: dict[str, Any]) -> dict[str, Any]:
    aspect = proposal.get("aspect") or {}
    found: dict[str, Any] = json.loads(aspect["value"]) if "value" in aspect else aspect.get("json", {})
    return found


def raw_properties(folder: Path) -> Iterator[str]:
    """Names of the custom and structured properties that stand in the export, read without any connector."""
    proposals = [item for file in sorted(folder.glob("0*.json")) for item in json.loads(file.read_text("utf-8"))]
    aspects = [(item, aspect_of(item)) for item in proposals]
    shown = {
        item["entityUrn"]: aspect["displayName"]
        for item, aspect in aspects
        if item["aspectName"] == "propertyDefinition"
    }
    for item, aspect in aspects:
        if item["entityType"] != "container":  # most containers are places, not assets
            yield from aspect.get("customProperties", {})
        if item["aspectName"] == "structuredProperties":
            yield from (shown[assigned["propertyUrn"]] for assigned in aspect["properties"])


def test_the_showcases_properties_are_all_accounted_for(shared_folder: Path, tmp_path: Path) -> None:
    folder = shared_folder / "data" / "datahub-showcase"
    configure(tmp_path, {"name": "showcase", "kind": "datahub", "path": str(folder)})
    vouch("refresh")
    (tmp_path / "rules.yaml").write_text("{}\n", encoding="utf-8")
    fields = checked(tmp_path / "rules.yaml", "showcase")
    named = {name for kind, name in fields if kind == "custom field"}
    raw = set(raw_properties(folder))
    assert {"business_critical", "contains_pii", "Data Quality Score"} <= raw
    assert raw <= named
    quality, critical = fields["custom field", "Data Quality Score"], fields["custom field", "business_critical"]
    assert (quality["signal"], quality["fates"]) == ("data_quality", {"counts": 67})
    assert (critical["signal"], critical["fates"]) == ("critical_data_element", {"counts": 2})
    assert fields["custom field", "contains_pii"]["signal"] == NO_SIGNAL
    assert fields["term", "PII"]["signal"] == NO_SIGNAL
    assert (fields["tag", "Authoritative Source"]["signal"], fields["term", "Certified"]["signal"]) == (
        "authoritative", "certification",
    )  # fmt: skip
    assert all(field["seen"] == sum(field["fates"].values()) for field in fields.values())
