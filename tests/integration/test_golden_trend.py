"""Quality after each refresh, from the catalog to the verdict: real index, real ranking, a model without randomness."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from services.embedded import EmbeddedServer
from services.evaluation.check import QualityCheck, QualityFell
from services.evaluation.golden import GoldenQuery, as_administrator
from services.evaluation.pgvector.evaluations import PgEvaluationStore
from services.index.pgvector.database import PgDatabase
from services.trust.gate import GateThresholds
from tests.integration.refresh_kit import World, fresh_world, table

ORDERS = table("t.orders", descriptions={"business": "Late orders of customers."})
PARCELS = table("t.parcels", descriptions={"business": "Parcels with their carrier."})
CARRIERS = table("t.carriers", descriptions={"business": "Addresses and contracts."})
SHOP = [ORDERS, PARCELS, CARRIERS]
GOLDEN = (
    GoldenQuery(qid="late", question="late orders of customers", gold=("t.orders",)),
    GoldenQuery(qid="carrier", question="parcels with their carrier", gold=("t.parcels",)),
)
# Says what the golden query asks, in fewer words, and is trusted more.
RIVAL = table(
    "t.rival", "late_orders_of_customers", critical_data_element=True, descriptions={"business": "Late orders."}
)


@pytest.fixture
def world(postgres_server: EmbeddedServer, tmp_path: Path) -> World:
    return fresh_world(postgres_server, tmp_path)


@contextmanager
def checking(world: World) -> Iterator[QualityCheck]:
    database = PgDatabase(world.uri)
    try:
        with world.searching() as searching:
            ask = as_administrator(searching.search.search)
            yield QualityCheck(ask, PgEvaluationStore(database), lambda: world.now)
    finally:
        database.close()


def run(world: World, *queries: GoldenQuery, accept: bool = False) -> dict[str, Any]:
    with checking(world) as check:
        return check.run(queries or GOLDEN, accept=accept)


def refreshed(world: World, *lines: dict[str, Any]) -> World:
    world.put("shop", lines)
    world.refresh()
    return world


def test_an_asset_that_pushes_gold_down_is_named(world: World) -> None:
    first = run(refreshed(world, *SHOP))
    assert (first["status"], first["measures"]["ndcg@10"]) == ("first", 1.0)
    with pytest.raises(QualityFell) as raised:
        run(refreshed(world, *SHOP, RIVAL))
    said = str(raised.value)
    assert "late 'late orders of customers': nDCG@10 1.000 -> 0.631" in said
    assert "'t.orders' from rank 1 to 2, overtaken by 't.rival'" in said
    assert "carrier" not in said.replace("t.carriers", "")
    assert run(refreshed(world, *SHOP, RIVAL), accept=True)["status"] == "accepted"
    assert run(world)["status"] == "passed"


def test_gold_that_lost_its_place_in_the_index_is_told_from_gold_that_sank(world: World) -> None:
    run(refreshed(world, *SHOP))
    world.thresholds = GateThresholds(100)
    world.reevaluate()
    with pytest.raises(QualityFell) as raised:
        run(world)
    assert "'t.orders' is below the curation threshold (gold of late)" in str(raised.value)
    world.thresholds = GateThresholds()
    world.reevaluate()
    assert run(world)["status"] == "passed"


def test_gold_that_never_was_in_the_index_is_named_and_no_fall(world: World) -> None:
    refreshed(world, *SHOP)
    wrong = GoldenQuery(qid="wrong", question="carrier", gold=("t.carrier", "t.parcels"))
    assert run(world, *GOLDEN, wrong)["unreachable_gold"] == 1
    assert run(world, *GOLDEN, wrong)["status"] == "passed"


def test_each_run_says_after_which_refresh_it_was(world: World) -> None:
    refreshed(world, *SHOP)
    first = run(world)
    world.now = world.now.replace(hour=13)
    report = world.refresh()
    run(world)
    with checking(world) as check:
        later, earlier = check.recent(10)
    assert later.run_id == report["run_id"] != earlier.run_id
    assert earlier.evaluation_id == first["evaluation_id"]
    assert (later.index_version, later.model_id) == (report["index_version"], world.embedder.identity.model_id)


def test_measuring_writes_nothing_of_the_index(world: World) -> None:
    refreshed(world, *SHOP)
    before = world.index()
    for accept in (False, False, True):
        run(world, accept=accept)
    assert world.index() == before
