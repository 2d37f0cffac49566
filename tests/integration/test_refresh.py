"""A refresh from file to index: what it writes, what it leaves alone, and what it reports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from services.access.principal import LOCAL_ADMINISTRATOR, Principal
from services.catalog.model import CatalogRecord
from services.catalog.sources.base import Ending, Outcome, Page, Rejection
from services.embedded import EmbeddedServer
from services.errors import (
    AssetNotFound,
    PermanentError,
    QuarantineLimitExceeded,
    SourceError,
    SourceUnavailable,
    SourceUnknown,
)
from services.index import stages
from services.retrieval.model import Filters, Mode, SearchRequest
from services.trust.gate import GateThresholds
from tests.embedders import HashEmbedder
from tests.integration.refresh_kit import ListedSource, World, fresh_world, table, written_since

CUSTOMER = table("shop.customer", title="Customers", descriptions={"business": "Everybody who ever bought."})
ORDERS = table(
    "shop.cust_ord_hdr",
    title="Order headers",
    descriptions={"business": "One row for every order placed."},
    columns=[{"name": "cust_id", "description": "who ordered"}, {"name": "net_total"}],
    relationships=[{"kind": "foreign_key", "columns": ["cust_id"], "target": "shop.customer", "confirmed": True}],
    tags=[["Finance", "Revenue"]],
    data_quality_score=80,
    certification={"status": "certified"},
)
RETURNS = table(
    "shop.returns", descriptions={"business": "Goods sent back."}, lineage={"upstream": ["shop.cust_ord_hdr"]}
)
REVENUE = {"id": "term.revenue", "object_type": "term", "name": "Revenue", "attributes": {"definition": "Money in."}}
CATALOG = [CUSTOMER, ORDERS, RETURNS, REVENUE]


@pytest.fixture
def world(postgres_server: EmbeddedServer, tmp_path: Path) -> World:
    return fresh_world(postgres_server, tmp_path)


def narrative(world: World, asset_id: str) -> str:
    with world.searching() as searching:
        return searching.assets.get(asset_id, LOCAL_ADMINISTRATOR).narrative


def quarantine(world: World) -> dict[str, str]:
    return {row["record_ref"]: row["error"] for row in world.rows("SELECT record_ref, error FROM quarantine")}


def total(report: dict[str, Any], *names: str) -> tuple[int, ...]:
    return tuple(report["total"][name] for name in names)


def test_the_first_refresh_publishes_everything(world: World) -> None:
    world.put("shop", CATALOG)
    report = world.refresh()
    assert (report["status"], report["error"], report["index_version"]) == ("succeeded", None, 1)
    assert total(report, "seen", "changed", "unchanged", "quarantined", "missing", "cached") == (4, 4, 0, 0, 0, 0)
    assert report["total"]["embedded"] == len(set(world.embedder.texts)) == len(world.embedder.texts) >= 4
    assert report["sources"]["shop"]["outcome"] == "complete"
    assert report["total"]["written"] > 0
    assert world.rows("SELECT count(*) AS drafts FROM draft") == [{"drafts": 0}]
    assert "customer" in narrative(world, "shop.cust_ord_hdr").lower()


@pytest.mark.parametrize("full", [False, True])
def test_an_unchanged_second_run_writes_no_row_and_embeds_no_text(world: World, full: bool) -> None:
    world.put("shop", CATALOG)
    world.put("team", [{"id": "shop.customer", "synonyms": ["clients"]}], overlay=True)
    world.refresh()
    before, content, embedded = world.counters(), world.content(), len(world.embedder.texts)
    report = world.refresh(full=full)
    assert total(report, "seen", "changed", "unchanged", "written", "embedded") == (5, 0, 5, 0, 0)
    assert world.content() == content
    assert len(world.embedder.texts) == embedded
    # A full run drafts everything anew; what readers see is not touched either way.
    drafting = {"draft"} if full else set()
    assert set(written_since(before, world.counters())) == drafting


def test_a_changed_description_embeds_its_own_chunks_alone(world: World) -> None:
    words = " ".join(f"word{number} means something." for number in range(120))
    world.put("shop", [table("wide", descriptions={"business": words}), *CATALOG])
    world.refresh()
    chunks = world.rows(
        "SELECT count(*) AS n FROM chunk_1 WHERE asset_key = (SELECT asset_key FROM asset WHERE id = 'wide')"
    )
    assert chunks[0]["n"] > 2
    world.embedder.texts.clear()
    before = world.counters()
    changed = words.replace("word119 means something.", "The last sentence is new.")
    world.put("shop", [table("wide", descriptions={"business": changed}), *CATALOG])
    report = world.refresh()
    assert total(report, "changed", "unchanged", "embedded") == (1, 4, 1)
    (embedded,) = world.embedder.texts
    assert "The last sentence is new." in embedded
    written = written_since(before, world.counters())
    assert (written["embedding_1"], written["chunk_1"], written["vector_cache"]) == (1, 1, 1)


def test_a_change_of_scores_alone_touches_no_vector_and_no_text(world: World) -> None:
    world.put("shop", CATALOG)
    world.refresh()
    embedded, before = len(world.embedder.texts), world.counters()
    world.put("shop", [CUSTOMER, {**ORDERS, "data_quality_score": 81}, RETURNS, REVENUE])
    report = world.refresh()
    assert total(report, "changed", "embedded") == (1, 0)
    assert len(world.embedder.texts) == embedded
    written = written_since(before, world.counters())
    assert written.pop("draft") > 0
    # The run's own record tells which score moved, and how scores lie since.
    assert (written.pop("score_mover"), written.pop("score_histogram")) == (1, 20)
    assert written == {"record": 1, "asset": 1, "asset_document": 1, "asset_score": 1}
    assert report["total"]["written"] == 3


def test_a_change_of_access_alone_touches_no_vector(world: World) -> None:
    world.put("shop", CATALOG)
    world.refresh()
    before = world.counters()
    world.put("shop", [CUSTOMER, ORDERS, {**RETURNS, "access": {"classification": "Restricted"}}, REVENUE])
    assert total(world.refresh(), "changed", "embedded") == (1, 0)
    assert not {"embedding_1", "chunk_1", "vector_cache", "posting"} & set(written_since(before, world.counters()))


def test_a_renamed_neighbour_is_told_by_its_new_name(world: World) -> None:
    world.put("shop", CATALOG)
    world.refresh()
    assert "customers (customer)" in narrative(world, "shop.cust_ord_hdr").lower()
    world.put("shop", [{**CUSTOMER, "title": "Buyers"}, *CATALOG[1:]])
    report = world.refresh()
    assert report["total"]["changed"] == 1
    assert "buyers (customer)" in narrative(world, "shop.cust_ord_hdr").lower()
    assert report["total"]["embedded"] == len(set(world.embedder.texts[-report["total"]["embedded"] :]))
    assert any("Buyers" in text and "ord" in text for text in world.embedder.texts)


def test_a_neighbour_that_is_hidden_from_some_is_no_longer_named(world: World) -> None:
    world.put("shop", CATALOG)
    world.refresh()
    world.put("shop", [{**CUSTOMER, "access": {"groups": ["finance"]}}, *CATALOG[1:]])
    world.refresh()
    assert "customers" not in narrative(world, "shop.cust_ord_hdr").lower()


@pytest.mark.parametrize("hidden", [{}, {"classification": "Restricted"}])
def test_a_filter_confirms_no_guess_at_a_neighbour_that_some_may_not_see(world: World, hidden: dict[str, str]) -> None:
    term = {**REVENUE, "access": hidden}
    product = {"id": "dp.falcon", "object_type": "data_product", "name": "Falcon", "access": hidden}
    link = {"id": "term.revenue", "name": "Revenue", "domain": "Money"}
    world.put("shop", [{**ORDERS, "terms": [link], "data_products": ["dp.falcon", "Web shop"]}, term, product])
    world.refresh()
    everybody = Principal(user="sales-ops-lead")
    found = {}
    with world.searching() as searching:
        for name, value in [
            ("term", "Revenue"),
            ("term", "term.revenue"),
            ("domain", "money"),
            ("data_product", "dp.falcon"),
            ("data_product", "web shop"),
        ]:
            filters = Filters.model_validate({name: [value]})
            request = SearchRequest(mode=Mode.DISCOVERY, filters=filters)
            answer = searching.search.search(request, everybody, "r")
            found[value] = "shop.cust_ord_hdr" in [result.id for result in answer.results]
    assert found.pop("web shop")
    assert set(found.values()) == {not hidden}


def test_a_neighbour_that_appears_later_is_named_then(world: World) -> None:
    world.put("shop", [ORDERS])
    world.refresh()
    assert "customers" not in narrative(world, "shop.cust_ord_hdr").lower()
    world.put("shop", [ORDERS, CUSTOMER])
    world.refresh()
    assert "customers" in narrative(world, "shop.cust_ord_hdr").lower()


def test_a_reference_to_no_asset_is_no_error(world: World) -> None:
    world.put("shop", [{**RETURNS, "terms": [{"id": "nowhere", "name": "Return"}], "data_products": ["gone"]}])
    report = world.refresh()
    assert (report["status"], report["total"]["quarantined"]) == ("succeeded", 0)
    assert world.rows("SELECT count(*) AS n FROM edge") == [{"n": 3}]


def test_what_a_complete_listing_no_longer_holds_is_counted_and_kept(world: World) -> None:
    world.put("shop", CATALOG)
    world.refresh()
    before = world.index()
    world.put("shop", CATALOG[1:])
    report = world.refresh()
    assert total(report, "seen", "unchanged", "missing", "deleted", "written") == (3, 3, 1, 0, 0)
    assert world.index() == before


def test_a_dry_run_changes_nothing_and_says_what_would_be_done(world: World) -> None:
    world.put("shop", CATALOG)
    world.refresh()
    before, calls = world.content(), world.embedder.calls
    new = table("shop.payments", descriptions={"business": "Money that came in."})
    world.put("shop", [{**CUSTOMER, "title": "Buyers"}, *CATALOG[1:], new, "broken"])
    report = world.refresh(dry_run=True)
    assert (report["status"], report["dry_run"]) == ("succeeded", True)
    assert total(report, "seen", "changed", "unchanged", "quarantined", "written") == (6, 2, 3, 1, 0)
    # The renamed one, the one that names it, and the new one.
    assert report["total"]["would_publish"] == 3
    assert report["total"]["would_embed"] == 3
    assert world.content() == before
    assert world.embedder.calls == calls
    real = world.refresh()
    assert total(real, "changed", "embedded", "quarantined") == (2, 3, 1)


def test_a_dry_run_on_an_empty_database_leaves_it_empty(world: World) -> None:
    before = world.content()
    world.put("shop", CATALOG)
    report = world.refresh(dry_run=True)
    assert total(report, "changed", "would_publish", "written", "embedded") == (4, 4, 0, 0)
    assert report["index_version"] is None
    assert world.content() == before


def test_of_two_owners_of_one_id_the_first_keeps_it(world: World) -> None:
    world.put("a-shop", [CUSTOMER])
    world.put("b-shop", [{**CUSTOMER, "title": "Rival"}, RETURNS])
    report = world.refresh()
    assert report["sources"]["a-shop"]["quarantined"] == 0
    assert report["sources"]["b-shop"]["quarantined"] == 1
    assert "source 'a-shop' owns this id; make 'b-shop' an overlay" in quarantine(world)["shop.customer"]
    assert "customers" in narrative(world, "shop.customer").lower()
    again = world.refresh()
    assert total(again, "changed", "written", "quarantined") == (0, 0, 1)
    assert [row["attempts"] for row in world.rows("SELECT attempts FROM quarantine")] == [2]
    # The advice works: as an overlay its line is taken, and the quarantine is empty.
    world.put("b-shop", [{**CUSTOMER, "title": "Rival"}, RETURNS], overlay=True)
    healed = world.refresh()
    assert healed["total"]["quarantined"] == 0
    assert quarantine(world) == {}
    assert "rival" in narrative(world, "shop.customer").lower()


def test_an_overlays_fields_win_lists_unite_and_go_with_it(world: World) -> None:
    world.put("shop", CATALOG)
    world.refresh()
    alone = world.index()
    line = {
        "id": "shop.customer",
        "title": "Clients",
        "synonyms": ["patrons"],
        "columns": [{"name": "email", "description": "where to write"}],
        "certification": {"status": "violated"},
    }
    world.put("team", [line], overlay=True)
    world.refresh()
    with world.searching() as searching:
        view = searching.assets.get("shop.customer", LOCAL_ADMINISTRATOR)
    assert view.attributes["title"] == "Clients"
    assert view.attributes["descriptions"] == CUSTOMER["descriptions"]
    assert view.attributes["synonyms"] == ["patrons"]
    assert [column["name"] for column in view.attributes["columns"]] == ["email"]
    assert view.attributes["certification"]["status"] == "violated"
    # The line says nothing any more: its fields go, the owner's stay. Only the records tell that it was there.
    world.put("team", [{"id": "shop.customer"}], overlay=True)
    world.refresh()
    now = world.index()
    changing = {"record", "vector_cache"}
    digestless = [
        {
            table: [{k: v for k, v in row.items() if k != "record_digest"} for row in rows]
            for table, rows in index.items()
        }
        for index in (alone, now)
    ]
    assert {t: r for t, r in digestless[0].items() if t not in changing} == {
        t: r for t, r in digestless[1].items() if t not in changing
    }


def test_an_overlays_line_that_is_gone_is_counted_as_missing(world: World) -> None:
    world.put("shop", CATALOG)
    world.put(
        "team", [{"id": "shop.customer", "title": "Clients"}, {"id": "shop.returns", "title": "Back"}], overlay=True
    )
    world.refresh()
    world.put("team", [{"id": "shop.customer", "title": "Clients"}], overlay=True)
    report = world.refresh()
    assert report["sources"]["team"]["missing"] == 1
    assert report["total"]["written"] == 0


def test_an_overlays_line_without_an_owner_is_an_asset_or_goes_to_quarantine(world: World) -> None:
    world.put("shop", CATALOG)
    own = {"id": "team.sheet", "object_type": "file", "name": "sheet"}
    world.put("team", [own, {"id": "nobody.lists.me", "title": "Lost"}], overlay=True)
    report = world.refresh()
    assert report["sources"]["team"]["quarantined"] == 1
    assert set(quarantine(world)) == {"nobody.lists.me"}
    assert "no other source lists the id" in quarantine(world)["nobody.lists.me"]
    assert "sheet" in narrative(world, "team.sheet")
    # Once the owner lists it, it is whole, and the quarantine is healed.
    world.put("shop", [*CATALOG, table("nobody.lists.me")])
    assert world.refresh()["total"]["quarantined"] == 0
    assert quarantine(world) == {}
    assert "Lost" in narrative(world, "nobody.lists.me")


def test_a_source_that_raises_half_way_is_failed_and_the_others_go_on(world: World) -> None:
    first = CatalogRecord.model_validate(CUSTOMER)
    parts = [Page((first,), (Rejection("line 2", "bad"),)), SourceUnavailable("the catalog hung up")]
    world.open_as(ListedSource("broken", parts))
    world.put("shop", [RETURNS])
    report = world.refresh()
    assert report["status"] == "incomplete"
    assert report["error"] == "source 'broken' failed: the catalog hung up"
    broken = report["sources"]["broken"]
    # What it had brought is kept and counted; nothing counts as missing.
    assert (broken["outcome"], broken["seen"], broken["changed"], broken["quarantined"]) == ("failed", 2, 1, 1)
    assert "missing" not in broken or broken["missing"] == 0
    assert "customers" in narrative(world, "shop.customer").lower()
    assert "back" in narrative(world, "shop.returns")


def test_a_failed_listing_makes_nothing_missing_and_heals_nothing(world: World) -> None:
    world.put("shop", [*CATALOG, "broken line"])
    world.refresh()
    index = world.index()
    world.put("shop", [])
    with pytest.raises(SourceError, match="is empty"):
        world.refresh()
    assert world.index() == index
    assert set(quarantine(world)) == {"line 5"}
    run = world.rows("SELECT status, error FROM refresh_run ORDER BY started_at DESC LIMIT 1")[0]
    assert run["status"] == "failed"
    assert "is empty" in run["error"]


def test_a_partial_listing_makes_nothing_missing(world: World) -> None:
    world.put("shop", CATALOG)
    world.refresh()
    record = CatalogRecord.model_validate({**CUSTOMER, "title": "Buyers"})
    world.open_as(ListedSource("shop", [Page((record,)), Ending(Outcome.PARTIAL, "since yesterday")]))
    report = world.refresh()
    assert (report["status"], report["sources"]["shop"]["outcome"]) == ("succeeded", "partial")
    assert total(report, "changed", "missing") == (1, 0)


def test_one_source_may_be_refreshed_and_an_unknown_one_is_named(world: World) -> None:
    world.put("shop", [CUSTOMER])
    world.put("store", [RETURNS])
    assert set(world.refresh("store")["sources"]) == {"store"}
    with pytest.raises(SourceUnknown, match="'stroe' is not configured; known are: shop, store"):
        world.refresh("stroe")
    with pytest.raises(SourceError, match="no source is configured"):
        World(world.uri, world.folder).refresh()


def test_too_many_bad_records_stop_the_run_before_anything_is_published(world: World) -> None:
    world.put("shop", CATALOG)
    world.refresh()
    index = {name: rows for name, rows in world.index().items() if name not in {"record", "draft"}}
    world.limits = replace(world.limits, quarantine_limit_count=5, quarantine_limit_percent=50)
    world.put("shop", [{**CUSTOMER, "title": "Buyers"}, *["bad"] * 6])
    with pytest.raises(QuarantineLimitExceeded, match=r"6 of 7 records are in quarantine, more than 50 %"):
        world.refresh()
    assert {name: rows for name, rows in world.index().items() if name not in {"record", "draft"}} == index
    # Below either limit the run goes on. Any of the bad lines may have been one of the three others: none is missing.
    world.put("shop", [{**CUSTOMER, "title": "Buyers"}, *["bad"] * 5])
    assert total(world.refresh(), "quarantined", "missing") == (5, 0)
    assert "buyers" in narrative(world, "shop.customer").lower()


def test_a_source_that_breaks_off_does_not_get_past_the_limit(world: World) -> None:
    world.limits = replace(world.limits, quarantine_limit_count=5)
    rejected = tuple(Rejection(f"line {number}", "bad") for number in range(10))
    world.open_as(ListedSource("broken", [Page((), rejected), SourceUnavailable("the catalog hung up")]))
    world.put("shop", CATALOG)
    with pytest.raises(QuarantineLimitExceeded, match="10 of 14"):
        world.refresh()


def test_a_stage_that_is_tried_again_does_not_count_its_failures_twice(world: World) -> None:
    world.limits = replace(world.limits, quarantine_limit_count=3, quarantine_limit_percent=0)
    world.put("team", [{"id": f"lost-{number}"} for number in range(2)] + ["bad"], overlay=True)
    with world.steps() as steps:
        run_id = steps.begin(None, full=False, dry_run=False, holder="process:here:1:1")
        steps.extract(run_id, "team")
        for _ in range(3):
            assert steps.compose(run_id)["quarantined"] == 2
        assert steps.verify(run_id)["total"]["quarantined"] == 3


def test_embedding_again_what_was_embedded_costs_nothing(world: World) -> None:
    world.put("shop", CATALOG)
    with world.steps() as steps:
        run_id = steps.begin(None, full=False, dry_run=False, holder="process:here:1:1")
        steps.extract(run_id, "shop")
        steps.compose(run_id)
        batches = steps.plan(run_id)
        assert sum(batch["texts"] for batch in batches) == 4
        assert steps.plan(run_id) == batches
        for batch in batches * 2:
            steps.embed(run_id, batch)
        assert len(world.embedder.texts) == 4
        assert steps.plan(run_id) == []
        assert steps.publish(run_id)["published"] == 4
        assert steps.publish(run_id) == {"written": 0, "published": 0, "pending": 0}
        assert steps.verify(run_id)["total"]["embedded"] == 4


def test_texts_that_wait_for_a_vector_keep_the_index_as_it_was(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "PUBLISH_PAGE", 1)
    world.put("shop", CATALOG[:2])
    world.refresh()
    world.put("shop", [*CATALOG[:2], RETURNS, REVENUE])
    with world.steps() as steps:
        run_id = steps.begin(None, full=False, dry_run=False, holder="process:here:1:1")
        steps.extract(run_id, "shop")
        steps.compose(run_id)
        assert steps.publish(run_id)["pending"] == 2
        with pytest.raises(PermanentError, match="unpublished_drafts"):
            steps.verify(run_id)
        steps.fail(run_id, "two texts were not embedded")
    with world.searching() as searching, pytest.raises(AssetNotFound):
        searching.assets.get("shop.returns", LOCAL_ADMINISTRATOR)
    assert world.refresh()["status"] == "succeeded"


def test_a_raised_threshold_takes_assets_out_and_a_lowered_one_brings_them_back_unembedded(world: World) -> None:
    world.put("shop", CATALOG)
    world.refresh()
    vectors = world.rows("SELECT asset_key, number, embedding::text FROM embedding_1 ORDER BY 1, 2")
    texts, postings = len(world.embedder.texts), world.rows("SELECT * FROM posting ORDER BY 1, 2")
    world.thresholds = GateThresholds(100)
    report = world.refresh()
    assert (report["status"], report["total"]["changed"]) == ("succeeded", 0)
    assert world.rows("SELECT count(*) AS n FROM embedding_1") == [{"n": 0}]
    assert world.rows("SELECT * FROM posting ORDER BY 1, 2") == postings
    world.thresholds = GateThresholds(0)
    world.refresh()
    assert world.rows("SELECT asset_key, number, embedding::text FROM embedding_1 ORDER BY 1, 2") == vectors
    assert len(world.embedder.texts) == texts


def test_another_model_is_built_beside_and_the_old_one_costs_nothing_to_return_to(world: World) -> None:
    world.put("shop", CATALOG)
    world.refresh()
    old, first = world.embedder, world.index()
    world.embedder = HashEmbedder(16, model_id="other")
    report = world.refresh()
    assert (report["index_version"], report["total"]["embedded"]) == (2, len(world.embedder.texts))
    assert [row["status"] for row in world.rows("SELECT status FROM index_version ORDER BY version")] == [
        "retired",
        "active",
    ]
    assert world.index()["embedding_1"] == first["embedding_1"]
    world.embedder = old
    texts = len(old.texts)
    assert world.refresh()["index_version"] == 1
    assert len(old.texts) == texts
    assert world.index()["embedding_1"] == first["embedding_1"]
