"""What a caller may not see has no influence on what they are answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from services.access.principal import Principal
from services.embedded import EmbeddedServer
from services.errors import AssetNotFound
from services.retrieval.model import Mode, SearchAnswer, SearchRequest
from tests.contract.pgvector_tables import empty
from tests.integration.refresh_kit import Line, World, fresh_world, table

VISITOR = Principal("visitor", ("sales",), clearance=1)
COLUMNS = [{"name": "net"}, {"name": "total"}]

SHOWN: list[Line] = [
    table("shop.orders", "orders", descriptions={"business": "orders with their net total"}, columns=COLUMNS,
          lineage={"upstream": ["secret.orders"], "downstream": ["shop.returns"]},
          relationships=[{"kind": "join", "columns": ["net"], "target": "secret.margin", "confirmed": True}]),
    table("shop.returns", "returns", descriptions={"business": "orders that came back"},
          lineage={"upstream": ["shop.orders"]}, access={"groups": ["sales"]}),
    table("shop.revenue", "revenue", descriptions={"business": "revenue by region"}, siblings=["secret.revenue"]),
    {"id": "term.margin", "object_type": "term", "name": "Margin", "attributes": {"definition": "what is left"}},
    *(table(f"shop.t{number}", f"thing_{number}", descriptions={"business": f"thing {number} of the shop"})
      for number in range(20)),
]  # fmt: skip
RESTRICTED = {"classification": "Restricted"}
FINANCE = {"groups": ["finance"]}
DENIED = {"denied_users": ["visitor"]}
HIDDEN: list[Line] = [
    table("secret.orders", "orders", descriptions={"business": "orders with their net total"}, columns=COLUMNS,
          authoritative=True, critical_data_element=True, access=RESTRICTED),
    table("secret.revenue", "revenue", descriptions={"business": "revenue by region"}, access=FINANCE,
          certification={"status": "certified"}, siblings=["shop.revenue"]),
    table("secret.margin", "margin", descriptions={"business": "margin of every order"}, access=DENIED),
    *(table(f"secret.m{number}", "margin", descriptions={"business": "margin"}, access=FINANCE)
      for number in range(150)),
]  # fmt: skip
QUESTIONS = ["orders", "net total of orders", "revenue by region", "margin", "margin of every order", "thing", "secret"]


@pytest.fixture
def world(postgres_server: EmbeddedServer, tmp_path: Path) -> World:
    return fresh_world(postgres_server, tmp_path)


def answers(world: World, **changes: Any) -> list[SearchAnswer]:
    with world.searching() as searching:
        return [
            searching.search.search(
                SearchRequest(query=query, explain=True, mode=mode, limit=limit, candidate_limit=candidates, **changes),
                VISITOR,
                "request-1",
            )
            for query in QUESTIONS
            for mode in Mode
            for limit, candidates in ((3, 5), (50, 200))
        ]


def test_an_index_with_hidden_assets_answers_like_one_without_them(world: World) -> None:
    world.put("shop", [*SHOWN, *HIDDEN])
    world.refresh()
    with_hidden = answers(world)
    assert sum(len(answer.results) for answer in with_hidden) > 100
    statistics = (world.rows("SELECT * FROM term_stat"), world.rows("SELECT * FROM corpus_stat")[0])
    empty(world.uri)
    world.put("shop", SHOWN)
    world.refresh()
    # Document frequencies are global: the one thing that may be known of what is hidden.
    terms, corpus = statistics
    with psycopg.connect(world.uri, options="-c search_path=vouch") as connection:
        connection.execute("TRUNCATE term_stat")
        connection.cursor().executemany(
            "INSERT INTO term_stat (term, assets) VALUES (%s, %s)", [(row["term"], row["assets"]) for row in terms]
        )
        connection.execute(
            "UPDATE corpus_stat SET assets = %s, total_length = %s", (corpus["assets"], corpus["total_length"])
        )
    without = answers(world)
    for one, other in zip(with_hidden, without, strict=True):
        assert one.results == other.results
        assert one.refusal == other.refusal


def test_nothing_hidden_stands_in_any_answer(world: World) -> None:
    world.put("shop", [*SHOWN, *HIDDEN])
    world.refresh()
    for answer in answers(world):
        assert "secret" not in answer.model_dump_json(exclude={"request_id"})
    with world.searching() as searching:
        for line in SHOWN:
            view = searching.assets.get(line["id"], VISITOR)
            assert "secret" not in view.model_dump_json()


def test_a_hidden_asset_is_answered_like_one_that_never_was(world: World) -> None:
    world.put("shop", [*SHOWN, *HIDDEN])
    world.refresh()
    told = set()
    with world.searching() as searching:
        for asset_id in ("secret.orders", "secret.revenue", "secret.margin", "secret.nowhere", "nul \x00", "\ud800"):
            with pytest.raises(AssetNotFound) as caught:
                searching.assets.get(asset_id, VISITOR)
            told.add(str(caught.value).replace(repr(asset_id), "ID"))
    assert told == {"there is no asset ID that you may see"}


def test_a_question_about_nothing_but_hidden_assets_is_refused_like_one_about_nothing(world: World) -> None:
    hidden = [table("secret.a", "xyzzy", descriptions={"business": "xyzzy plugh"}, access=FINANCE)]
    world.put("shop", hidden)
    world.refresh()
    with world.searching() as searching:
        about_hidden, about_nothing = (
            searching.search.search(SearchRequest(query=query), VISITOR, "r") for query in ("xyzzy", "frobnicate")
        )
        assert (about_hidden.results, about_hidden.refusal) == (about_nothing.results, about_nothing.refusal)
        assert about_hidden.refusal is not None


def test_near_duplicates_are_counted_only_as_far_as_they_may_be_seen(world: World) -> None:
    twin = table("shop.orders_copy", "orders", columns=COLUMNS, descriptions={"business": "orders once more"})
    world.put("shop", [*SHOWN, *HIDDEN, twin])
    world.refresh()
    with world.searching() as searching:
        request = SearchRequest(query="orders with their net total", limit=5)
        visitor = searching.search.search(request, VISITOR, "r").results
        insider = searching.search.search(request, Principal("insider", ("sales", "finance"), clearance=3), "r").results
    (grouped,) = [result for result in visitor if result.id in ("shop.orders", "shop.orders_copy")]
    assert grouped.siblings is not None
    assert {grouped.id, *grouped.siblings.ids} == {"shop.orders", "shop.orders_copy"}
    assert grouped.siblings.count == 1
    # The governed one stands for its group, for whoever may see it.
    assert insider[0].id == "secret.orders"
    assert insider[0].siblings is not None
    assert insider[0].siblings.count == 2
    apart = SearchRequest(query="orders with their net total", limit=5, group_siblings=False)
    with world.searching() as searching:
        ids = [result.id for result in searching.search.search(apart, VISITOR, "r").results]
    assert {"shop.orders", "shop.orders_copy"} <= set(ids)


def test_a_list_that_is_tightened_holds_from_the_moment_it_is_drafted(world: World) -> None:
    world.put("shop", SHOWN)
    world.refresh()
    world.put("shop", [{**SHOWN[0], "access": RESTRICTED}, *SHOWN[1:]])
    with world.searching() as searching, world.steps() as steps:
        assert searching.assets.get("shop.orders", VISITOR)
        run_id = steps.begin(None, full=False, dry_run=False, holder="process:here:1:1")
        steps.extract(run_id, "shop")
        steps.compose(run_id)
        with pytest.raises(AssetNotFound):
            searching.assets.get("shop.orders", VISITOR)
        found = searching.search.search(SearchRequest(query="orders"), VISITOR, "r").results
        assert "shop.orders" not in {result.id for result in found}
        steps.fail(run_id, "enough")
