"""The demo's overlay is sound by itself: it reads without a fault, refers to what exists, and says what it is for."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from services.access.principal import Principal
from services.access.rule import AccessRule, Level, access_rule, may_see
from services.catalog.model import Asset, CatalogRecord, ObjectType
from services.catalog.parts import CertificationStatus, TermLink
from services.catalog.sources.base import Ending, Outcome, Page
from services.catalog.sources.jsonl import JsonLinesSource
from services.demo.catalog import DEMO_QUESTION, OVERLAY, QUESTIONS, write_demo_sources
from services.errors import SettingsError
from services.evaluation.golden import read_queries
from services.settings import load_sources
from services.trust.rules import load_rules
from services.trust.signals import read_signals

DEMO_README = OVERLAY.with_name("README.md")
SHOP_README = Path(__file__).parents[2] / "sql" / "demo" / "README.md"
SHOP_IDS = frozenset(re.findall(r"`(postgres:(?:table|schema):shop\.\S+)`", SHOP_README.read_text()))
PERSONA = re.compile(
    r"^\| `(?P<user>[\w-]+)` *\| (?:`(?P<group>[\w-]+)`)? *\| `(?P<clearance>\w+)` *\| (?P<sees>\d+) *\|"
)
RULES = load_rules()


def listing() -> tuple[list[Page], Ending]:
    *pages, ending = JsonLinesSource("governance", OVERLAY, overlay=True).listing()
    assert isinstance(ending, Ending)
    return [page for page in pages if isinstance(page, Page)], ending


RECORDS = {record.id: record for page in listing()[0] for record in page.records}
OWN = {record.id: Asset.model_validate(record.payload()) for record in RECORDS.values() if record.object_type}


def rule_of(record: CatalogRecord) -> AccessRule:
    access = record.access
    is_product = record.object_type is ObjectType.DATA_PRODUCT
    word = access.classification or (record.attributes.sensitivity if is_product else None)
    return access_rule(word, access.groups, access.users, access.denied_groups, access.denied_users)


ACCESS = {asset_id: rule_of(RECORDS.get(asset_id, CatalogRecord(id=asset_id))) for asset_id in SHOP_IDS | set(RECORDS)}


def term_links(record: CatalogRecord) -> Iterator[TermLink]:
    yield from record.terms
    for column in record.columns:
        yield from column.terms


def referred_ids(record: CatalogRecord) -> Iterator[str]:
    of = record.attributes
    yield from (*record.lineage.upstream, *record.lineage.downstream, *of.child_stories, *record.data_products)
    yield from (relationship.target for relationship in record.relationships)
    yield from (reference for reference in (of.parent, of.parent_report, of.parent_story) if reference)
    yield from (term.id or "a term without id" for term in term_links(record))


def test_reads_without_a_rejection_or_a_repair() -> None:
    pages, ending = listing()
    assert ending == Ending(Outcome.COMPLETE)
    assert [page.rejected for page in pages] == [()]
    assert [page.notices for page in pages] == [()]
    lines = OVERLAY.read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(RECORDS) == sum(len(page.records) for page in pages)


def test_lines_without_a_type_speak_of_the_shop_alone() -> None:
    assert {asset_id for asset_id in RECORDS if asset_id not in OWN} <= SHOP_IDS
    assert SHOP_IDS.isdisjoint(OWN)


def test_brings_assets_of_the_eight_types_that_a_database_has_not() -> None:
    counts = Counter(asset.object_type for asset in OWN.values())
    assert set(counts) == set(ObjectType) - {ObjectType.TABLE, ObjectType.SCHEMA}
    assert min(counts.values()) >= 6


def test_every_reference_leads_to_an_asset() -> None:
    dangling = {(record.id, ref) for record in RECORDS.values() for ref in referred_ids(record) if ref not in ACCESS}
    assert dangling == set()


def test_linked_terms_say_what_the_glossary_says() -> None:
    for record in RECORDS.values():
        for linked in term_links(record):
            told = OWN[linked.id or ""]
            place = (told.attributes.domain, told.attributes.category, told.attributes.subcategory)
            assert (linked.name, linked.domain, linked.category, linked.subcategory) == (told.name, *place), record.id
            assert linked.definition in (None, told.attributes.definition), record.id


def test_every_tag_is_an_asset_with_the_parents_of_its_path() -> None:
    def path(tag: Asset) -> tuple[str, ...]:
        parent = tag.attributes.parent
        return (*(path(OWN[parent]) if parent else ()), tag.name)

    known = {path(asset) for asset in OWN.values() if asset.object_type is ObjectType.TAG}
    used = {tag for record in RECORDS.values() for tag in record.tags}
    used |= {tag for record in RECORDS.values() for column in record.columns for tag in column.tags}
    assert used <= known
    assert max(map(len, used)) == 3


def test_shows_every_certification_and_both_kinds_of_end() -> None:
    certifications = [record.certification for record in RECORDS.values() if record.certification]
    assert {certification.status for certification in certifications} == set(CertificationStatus)
    ends = {certification.expires_at for certification in certifications}
    assert ends == {None, datetime(2024, 6, 30, tzinfo=UTC), datetime(2099, 12, 31, tzinfo=UTC)}


@pytest.mark.parametrize(
    ("asset_id", "signal", "value", "origin"),
    [
        ("postgres:table:shop.crm.customers", "critical_data_element", 1.0, "native"),
        ("postgres:table:shop.crm.customer_contacts", "critical_data_element", 1.0, "Critical Data Element?"),
        ("postgres:table:shop.crm.customer_segments", "critical_data_element", 0.0, "CDE"),
        ("postgres:table:shop.sales.order_items", "critical_data_element", 0.0, "CDE"),
        ("postgres:table:shop.logistics.stock_levels", "critical_data_element", 1.0, "Key Data Element"),
        ("postgres:table:shop.logistics.warehouses", "critical_data_element", None, "absent"),
        ("lake:file:ledger/revenue_postings.csv", "critical_data_element", 1.0, "tag 'CDE'"),
        ("insights:report:support-load", "critical_data_element", 0.0, "Non-CDE"),
        ("postgres:table:shop.finance.customer_revenue_monthly", "data_quality", 0.97, "native"),
        ("postgres:table:shop.crm.customer_segments", "data_quality", 0.8, "Data Quality Score"),
        ("postgres:table:shop.crm.support_tickets", "data_quality", 0.5, "Data Quality Rules"),
        ("postgres:table:shop.logistics.tracking_events", "data_quality", None, "absent"),
        ("lake:file:exports/order_history.parquet", "data_quality", 0.95, "DQ Score"),
        ("lake:file:ledger/revenue_postings.csv", "data_quality", 0.9, "DQ Score"),
        ("postgres:table:shop.sales.products", "authoritative", 1.0, "Golden Source?"),
        ("postgres:table:shop.logistics.stock_levels", "authoritative", 1.0, "tag 'Authoritative Source'"),
        ("postgres:table:shop.finance.exchange_rates", "authoritative", 0.0, "Authoritative?"),
        ("gateway:api:old-price-service", "certification", 0.0, "tag 'Deprecated'"),
        ("insights:report:open-receivables", "certification", 1.0, "Certification Status"),
    ],
)
def test_governance_facts_are_read_as_they_are_meant(
    asset_id: str, signal: str, value: float | None, origin: str
) -> None:
    payload: dict[str, Any] = {"object_type": "table", "name": "any", **RECORDS[asset_id].payload()}
    found = read_signals(Asset.model_validate(payload), RULES).get(signal)
    assert found.value == value
    assert origin in found.origin


def test_leaves_stewards_something_to_do() -> None:
    def is_bare(asset: Asset) -> bool:
        return not (asset.descriptions.business or asset.attributes.definition or asset.governance_roles)

    assert len([asset for asset in OWN.values() if is_bare(asset)]) >= 4
    assert len(SHOP_IDS - set(RECORDS)) >= 3


def test_the_readme_counts_what_each_user_sees() -> None:
    personas = [match for line in DEMO_README.read_text().splitlines() if (match := PERSONA.match(line))]
    assert len(personas) == 10
    for row in personas:
        groups = (row["group"],) if row["group"] else ()
        principal = Principal(row["user"], groups, Level[row["clearance"].upper()])
        visible = sum(may_see(rule, principal) for rule in ACCESS.values())
        assert (row["user"], visible) == (row["user"], int(row["sees"]))
    assert f"Of the {len(ACCESS)} assets" in DEMO_README.read_text()


def test_golden_answers_are_assets_and_the_demo_asks_one_of_the_questions() -> None:
    queries = read_queries(QUESTIONS)
    assert len({query.qid for query in queries}) == len(queries) >= 30
    assert {gold for query in queries for gold in query.gold} <= set(ACCESS)
    assert DEMO_QUESTION in {query.question for query in queries}


def test_lines_are_written_in_one_order_of_keys() -> None:
    order = list(CatalogRecord.model_fields)
    for line in OVERLAY.read_text(encoding="utf-8").splitlines():
        keys = list(json.loads(line))
        assert keys == sorted(keys, key=order.index), keys


def test_writes_the_two_sources_once(tmp_path: Path) -> None:
    path = write_demo_sources(tmp_path / "home", "postgresql:///shop?host=/run")
    shop, governance = load_sources(path)
    assert (shop.name, shop.kind, shop.overlay) == ("shop", "postgres", False)
    assert shop.dsn is not None
    assert shop.dsn.get_secret_value() == "postgresql:///shop?host=/run"
    assert (governance.name, governance.path, governance.overlay) == ("governance", OVERLAY, True)
    assert path.stat().st_mode & 0o077 == 0
    before = path.stat().st_ino
    assert write_demo_sources(tmp_path / "home", "postgresql:///shop?host=/run") == path
    assert path.stat().st_ino == before


def test_replaces_its_own_file_when_the_shop_moved(tmp_path: Path) -> None:
    write_demo_sources(tmp_path, "postgresql:///shop?host=/old")
    path = write_demo_sources(tmp_path, "postgresql:///shop?host=/new")
    assert "/new" in path.read_text()
    assert "/old" not in path.read_text()


@pytest.mark.parametrize("change", ["sources: []\n", None])
def test_never_writes_over_other_sources(tmp_path: Path, change: str | None) -> None:
    """Neither over a file of somebody's own, nor over its own once somebody has added to it."""
    path = tmp_path / "sources.yaml"
    write_demo_sources(tmp_path, "postgresql:///shop")
    theirs = change or path.read_text() + "- {name: mine, kind: jsonl, path: mine.jsonl}\n"
    path.write_text(theirs)
    with pytest.raises(SettingsError, match="VOUCH_HOME"):
        write_demo_sources(tmp_path, "postgresql:///other")
    assert path.read_text() == theirs


def test_says_when_the_folder_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file stands where the folder should be")
    with pytest.raises(SettingsError, match="VOUCH_HOME"):
        write_demo_sources(tmp_path / "home", "postgresql:///shop")
