"""The work list: its order and cursors, its sums, and a table that no spreadsheet can run."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from services.access.principal import Principal
from services.access.rule import AccessRule, Level
from services.catalog.model import Asset
from services.catalog.parts import GovernanceRole
from services.errors import InvalidRequest
from services.retrieval.store import Corpus, RolesWork, StoredWork, WorkPosition, WorkScope
from services.retrieval.visibility import Visibility
from services.retrieval.worklist import WorklistService, cursor_of, position_of, summarised
from services.retrieval.worklist_table import spreadsheet_safe, worklist_csv, worklist_table
from services.retrieval.worklist_view import NO_PROMISE, NOBODY, WorklistRequest
from services.trust.curation import curation_score
from services.trust.rules import load_rules
from services.trust.signals import read_signals

RULES = load_rules()
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
STEWARD = Principal("sales-ops-lead")
OWNER = GovernanceRole(role="owner", name="sales-data-owners")
FORMULAS = ["=1+1", " =1+1", "\t=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "＝1+1", "\r\n=1", "%0A", "|calc"]
STARTS = ("=", "+", "-", "@", "\t", "\r", "|", "%")


def work(asset_id: str, *, prefer_native: bool = False, **fields: Any) -> StoredWork:
    asset = Asset.model_validate({"id": asset_id, "object_type": "table", "name": asset_id, **fields})
    curation = curation_score(asset, RULES, prefer_native=prefer_native)
    return StoredWork(
        id=asset.id,
        source="shop",
        object_type="table",
        name=asset.name,
        title=asset.title,
        url=asset.url,
        roles=asset.governance_roles,
        signals=read_signals(asset, RULES).to_json(),
        curation=curation,
        threshold=60,
        position=WorkPosition(60 - curation.curation_score, asset.id),
    )


@dataclass
class FakeStore:
    """All work there is, in order; `scopes` are those that were asked for."""

    works: list[StoredWork]
    scopes: list[WorkScope] = field(default_factory=list)
    summed_up: int = 0

    def page(self, scope: WorkScope, after: WorkPosition | None, limit: int) -> Sequence[StoredWork]:
        self.scopes.append(scope)
        start = [item.position for item in self.works].index(after) + 1 if after else 0
        return self.works[start : start + limit]

    def by_roles(self, scope: WorkScope) -> Sequence[RolesWork]:
        self.scopes.append(scope)
        self.summed_up += 1
        return [RolesWork(item.roles, 1, item.position.points_missing) for item in self.works]


class FakeSearchStore:
    """One open access list and one for nobody who asks here."""

    def access_lists(self, after_seq: int) -> Sequence[tuple[int, int, AccessRule]]:
        lists = [(1, 11, AccessRule(Level.PUBLIC)), (2, 22, AccessRule(Level.RESTRICTED))]
        return [item for item in lists if item[0] > after_seq]

    def corpus(self) -> Corpus:
        return Corpus(3, None, 0, 0.0, 12.5)


def service(works: Sequence[StoredWork]) -> tuple[WorklistService, FakeStore]:
    store, search = FakeStore(list(works)), FakeSearchStore()
    return WorklistService(search, store, Visibility(search), RULES, lambda: NOW), store


def items(*works: StoredWork):
    return service(works)[0].page(WorklistRequest(), STEWARD).entries


def test_pages_join_without_gap_or_repeat_and_only_the_first_is_summed_up():
    listed, store = service([work(f"t:{number}") for number in range(7)])
    pages = list(listed.pages(WorklistRequest(limit=3), STEWARD))
    assert [[item.id for item in page.entries] for page in pages] == [
        ["t:0", "t:1", "t:2"], ["t:3", "t:4", "t:5"], ["t:6"],
    ]  # fmt: skip
    assert [page.summary is not None for page in pages] == [True, False, False]
    assert pages[-1].next_cursor is None
    assert (pages[0].index_version, pages[0].data_age_seconds) == (3, 12.5)
    assert {scope.acl_ids for scope in store.scopes} == {(11,)}


def test_a_last_page_that_is_just_full_leads_nowhere():
    listed, _ = service([work("t:0"), work("t:1")])
    assert listed.page(WorklistRequest(limit=2), STEWARD).next_cursor is None


def test_nothing_is_summed_up_unasked():
    listed, store = service([work("t:0")])
    assert listed.page(WorklistRequest(summary=False), STEWARD).summary is None
    assert store.summed_up == 0


def test_an_entry_carries_gaps_steps_contact_and_governance():
    [item] = items(work("t:0", governance_roles=[{"role": "owner", "name": "sales-data-owners"}],
                        certification={"status": "certified"}))  # fmt: skip
    assert (item.contact.role, item.contact.names) == ("owner", ("sales-data-owners",))
    assert item.points_missing == pytest.approx(60 - 100 * 20 / 110, abs=1e-5)
    assert item.gaps[0].item == "business_description"
    assert item.gaps[0].points == pytest.approx(100 * 20 / 110, abs=1e-5)
    assert item.fewest_steps == item.gaps[: len(item.fewest_steps)]
    assert item.curation_score_after >= item.threshold
    assert item.governance_score == pytest.approx(0.2)
    assert {part.signal: part.origin for part in item.governance}["certification"] == "native"


def test_a_score_of_the_catalogs_own_promises_nothing():
    [item] = items(work("t:0", prefer_native=True, curation_score=31))
    assert (item.curation_score, item.curation_native, item.curation_score_after) == (31, True, 31)
    assert item.fewest_steps == ()
    assert item.gaps
    assert all(gap.points is None for gap in item.gaps)
    [row] = csv.DictReader(io.StringIO(worklist_csv(worklist_table([item]))))
    assert (row["fewest_steps"], row["curation_native"]) == (NO_PROMISE, "True")
    assert "+" not in row["gaps"]


def test_work_is_added_up_for_each_who_could_do_it():
    both = (OWNER, GovernanceRole(role="owner", name="finance-data-owners"))
    summary = summarised([RolesWork((OWNER,), 2, 10.5), RolesWork(both, 1, 4), RolesWork((), 5, 100)])
    assert (summary.assets, summary.points_missing, summary.contacts) == (8, 114.5, 2)
    assert [(one.name, one.assets, one.points_missing) for one in summary.by_contact] == [
        (None, 5, 100), ("sales-data-owners", 3, 14.5), ("finance-data-owners", 1, 4),
    ]  # fmt: skip


@pytest.mark.parametrize("asset_id", ["t:orders", "urn:li:dataset:(a,b/c?d=e,PROD)", "漢字/😀", 'a"b\\c', "x" * 2048])
def test_a_cursor_leads_back_to_its_place(asset_id: str):
    place = WorkPosition(60 - 100 * 20 / 110, asset_id)
    cursor = cursor_of(place)
    assert position_of(cursor) == place
    assert cursor.replace("-", "").replace("_", "").isalnum()  # fit for a URL as it is


def encoded(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    ["", "a", "%%%", "bm90IGpzb24", "漢", encoded([1.5]), encoded([1.5, "a", 2]), encoded(["1", "a"]),
     encoded([1.5, 2]),
     encoded([float("nan"), "a"]), encoded([float("inf"), "a"]), encoded([True, "a"]), encoded([1.5, "a\0"]),
     encoded({"a": 1, "b": 2}), encoded(None), encoded([1.5, "\ud800"]), "[" * 5000],
)  # fmt: skip
def test_what_is_no_cursor_is_refused_by_name(cursor: str):
    with pytest.raises(InvalidRequest, match=r"^cursor: "):
        position_of(cursor)


@pytest.mark.parametrize("cell", FORMULAS)
def test_no_cell_of_the_csv_is_a_formula(cell: str):
    safe = spreadsheet_safe(cell)
    assert safe.startswith("'")
    assert "\n" not in safe
    assert "\t" not in safe
    evil = work("t:0", name=cell, title=cell, url=cell, governance_roles=[{"role": "owner", "name": cell}],
                columns=[{"name": cell}], custom_fields=[{"name": cell, "value": "x"}])  # fmt: skip
    [row] = csv.DictReader(io.StringIO(worklist_csv(worklist_table(items(evil)))))
    assert row["name"] == row["title"] == row["url"] == row["ask"] == safe
    assert not [value for value in row.values() if value.startswith(STARTS)]
    assert float(row["curation_score"]) > 0


def test_no_formula_begins_behind_a_semicolon():
    assert spreadsheet_safe("orders;=1+1; -2;a=b") == "orders;'=1+1;' -2;a=b"
    assert spreadsheet_safe("a; b; ;") == "a; b; ;"


def test_the_table_has_its_columns_also_without_rows_and_a_header_once():
    empty = worklist_csv(worklist_table(()))
    assert empty.startswith("id,name,title,")
    assert empty.count("\r\n") == 1
    assert worklist_csv(worklist_table(()), header=False) == ""
    table = worklist_table(items(work("t:0")))
    assert table["ask"].tolist() == [NOBODY]
    assert "\ufeff" not in worklist_csv(table)
