"""What an answer tells of the assets that another one refers to, to those who may not see them."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.access.principal import LOCAL_ADMINISTRATOR, Permission, Principal
from services.access.rule import Level
from services.retrieval.model import Filters, Mode, SearchRequest
from tests.integration.refresh_kit import World, new_world, table

PRODUCT = {"id": "mesh:product:17", "object_type": "data_product", "name": "falcon_pack", "title": "Project Falcon"}
ORDERS = table("shop.orders", data_products=["mesh:product:17", "Web shop"])
SEES_LITTLE = Principal(user="sales-ops-lead", clearance=Level.INTERNAL)
OPERATES = Principal("platform-team", clearance=Level.INTERNAL, permissions=frozenset({Permission.OPERATE}))


@pytest.fixture
def world(database_uri: str, tmp_path: Path) -> World:
    return new_world(database_uri, tmp_path)


@pytest.mark.parametrize("classification", ["Public", "Restricted"])
def test_a_data_product_is_named_and_found_by_only_where_all_readers_may_see_it(
    world: World, classification: str
) -> None:
    world.put("shop", [ORDERS, {**PRODUCT, "access": {"classification": classification}}])
    world.refresh()
    shown = classification == "Public"
    with world.searching() as searching:
        told = searching.assets.get("shop.orders", SEES_LITTLE).model_dump_json().casefold()
        found = {}
        for word in ("mesh:product:17", "falcon_pack", "project falcon", "web shop"):
            request = SearchRequest(mode=Mode.DISCOVERY, filters=Filters(data_product=(word,)))
            answer = searching.search.search(request, SEES_LITTLE, "r")
            found[word] = "shop.orders" in [result.id for result in answer.results]
    assert found.pop("web shop")
    assert set(found.values()) == {shown}
    assert ("falcon" in told, "mesh:product:17" in told) == (shown, shown)
    assert "web shop" in told


def test_a_renamed_data_product_is_found_by_its_new_name(world: World) -> None:
    world.put("shop", [ORDERS, PRODUCT])
    world.refresh()
    world.put("shop", [ORDERS, {**PRODUCT, "title": "Project Heron"}])
    world.refresh()
    rows = world.rows("SELECT data_products FROM asset WHERE id = 'shop.orders'")
    assert rows == [{"data_products": ["falcon_pack", "mesh:product:17", "project heron", "web shop"]}]


@pytest.mark.parametrize(
    ("reader", "upstream_access", "shown"),
    [
        (SEES_LITTLE, "Public", False),
        (OPERATES, "Public", True),
        (OPERATES, "Restricted", False),
        (LOCAL_ADMINISTRATOR, "Restricted", True),
    ],
)
def test_code_is_shown_to_operators_who_may_see_what_it_is_made_from(
    world: World, reader: Principal, upstream_access: str, shown: bool
) -> None:
    secret = table("shop.falcon", access={"classification": upstream_access})
    code = {"source_code": "SELECT net FROM shop.falcon", "status": "live"}
    world.put("shop", [table("shop.view", attributes=code, lineage={"upstream": ["shop.falcon"]}), secret])
    world.refresh()
    with world.searching() as searching:
        attributes = searching.assets.get("shop.view", reader).attributes["attributes"]
    assert attributes == (code if shown else {"status": "live"})
