"""What the words of a question stand for, from a refreshed index to the answer; none of it tells of what is hidden."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.access.principal import LOCAL_ADMINISTRATOR, Principal
from services.embedded import EmbeddedServer
from services.retrieval.model import Mode, SearchAnswer, SearchRequest
from tests.contract.pgvector_tables import empty
from tests.integration.refresh_kit import Line, Searching, World, fresh_world, table, written_since

VISITOR = Principal("visitor", clearance=1)
HIDDEN = {"classification": "Restricted"}


def term(asset_id: str, name: str, *synonyms: str, **fields: Any) -> Line:
    return {"id": asset_id, "object_type": "term", "name": name, "synonyms": list(synonyms), **fields}


CATALOG: list[Line] = [
    table("dw.cust_addr", columns=[{"name": "cust_id"}, {"name": "zip_cd"}]),
    table("dw.inventory", descriptions={"business": "stock on hand"}, columns=[{"name": "shipment"}]),
    table("dw.OrderHeader", "orderheader", columns=[{"name": "placed"}]),
    table("dw.order_note", columns=[{"name": "text"}]),
    table("dw.arr_by_region", columns=[{"name": "region"}]),
    table("dw.iso4217", columns=[{"name": "unit"}]),
    table("dw.iso3166", columns=[{"name": "land"}]),
    table("dw.npi_list", columns=[{"name": "prescriber"}]),
    table("dw.api_list", columns=[{"name": "gateway"}]),
    table("dw.Umsatzübersicht", columns=[{"name": "monat"}]),
    term("g.arr", "Annual Recurring Revenue", "ARR"),
    table("hidden.takeover", "takeover_falcon", descriptions={"business": "inventury of the takeover"}, access=HIDDEN),
    term("g.takeover", "Takeover", "Stock Purchase", access=HIDDEN),
]


@pytest.fixture
def world(postgres_server: EmbeddedServer, tmp_path: Path) -> World:
    return fresh_world(postgres_server, tmp_path)


@pytest.fixture
def searching(world: World) -> Iterator[Searching]:
    world.put("dw", CATALOG)
    world.refresh()
    with world.searching() as found:
        yield found


def ask(searching: Searching, query: str, principal: Principal = VISITOR, limit: int = 50) -> SearchAnswer:
    request = SearchRequest(query=query, mode=Mode.DISCOVERY, limit=limit, candidate_limit=200, explain=True)
    return searching.search.search(request, principal, "request-1")


def keyword_scores(answer: SearchAnswer) -> dict[str, float]:
    return {item.id: item.explain.keyword_score for item in answer.results if item.explain}


def understood(answer: SearchAnswer) -> list[tuple[str, tuple[str, ...], str]]:
    return [(item.word, item.alternatives, item.why) for item in answer.understood]


@pytest.mark.parametrize(
    ("query", "asset_id", "told"),
    [
        ("customer addresses", "dw.cust_addr", [("customer", ("cust",), "abbreviation"),
                                                ("addresses", ("addr",), "abbreviation")]),
        ("postal code", "dw.cust_addr", [("postal code", ("zip",), "abbreviation"), ("code", ("cd",), "abbreviation")]),
        ("annual recurring revenue", "dw.arr_by_region", [("annual recurring revenue", ("arr",), "synonym")]),
        ("ivnentory levels", "dw.inventory", [("ivnentory", ("inventory",), "spelling")]),
        ("shipm dates", "dw.inventory", [("shipm", ("shipment",), "prefix")]),
        ("order header", "dw.OrderHeader", []),
        ("umsatz ubersicht", "dw.Umsatzübersicht", []),
        ("regions", "dw.arr_by_region", []),
    ],
)  # fmt: skip
def test_a_word_finds_what_is_called_otherwise_and_the_answer_says_so(
    searching: Searching, query: str, asset_id: str, told: list[tuple[str, tuple[str, ...], str]]
) -> None:
    answer = ask(searching, query)
    scores = keyword_scores(answer)
    others = {key: value for key, value in scores.items() if not key.startswith("g.")}
    assert max(others, key=lambda key: others[key]) == asset_id, (others, understood(answer))
    assert scores[asset_id] > 0.1
    assert understood(answer) == told


def test_what_was_understood_stands_in_the_answer_only_where_something_was(searching: Searching) -> None:
    said = ask(searching, "ivnentory").model_dump(mode="json")["understood"]
    assert said == [{"word": "ivnentory", "as": ["inventory"], "why": "spelling"}]
    assert "understood" not in ask(searching, "stock on hand").model_dump(mode="json")
    assert "understood" not in ask(searching, "").model_dump(mode="json")
    assert "understood" not in ask(searching, "?!").model_dump(mode="json")


@pytest.mark.parametrize(("query", "asset_id"), [("ISO 4217", "dw.iso4217"), ("iso3166", "dw.iso3166")])
def test_a_code_finds_its_own_list_first(searching: Searching, query: str, asset_id: str) -> None:
    assert ask(searching, f"{query} units").results[0].id == asset_id


@pytest.mark.parametrize("query", ["NPX", "APL", "iso4218", "INVENTORI", "INVENTORI list", "iso421", "give", "least"])
def test_codes_acronyms_and_words_of_the_language_are_not_corrected(searching: Searching, query: str) -> None:
    assert ask(searching, query).understood == ()


def test_only_the_first_unknown_words_of_a_question_are_mended(searching: Searching) -> None:
    noise = [f"zqx{letter}wv" for letter in "abcdefgh"]
    assert [item.word for item in ask(searching, " ".join([*noise[:7], "inventry"])).understood] == ["inventry"]
    assert ask(searching, " ".join([*noise, "inventry"])).understood == ()


def test_words_that_only_hidden_assets_have_correct_and_explain_nothing(searching: Searching) -> None:
    for query in ("takeovre", "takeo", "falcno", "stock purchase", "inventuri"):
        told = str(understood(ask(searching, query)))
        assert "takeover" not in told and "falcon" not in told and "inventury" not in told
    assert understood(ask(searching, "takeovre", LOCAL_ADMINISTRATOR)) == [("takeovre", ("takeover",), "spelling")]
    # The word itself is there, but not for everybody: who may not see it is taken to mean another one.
    assert understood(ask(searching, "inventury")) == [("inventury", ("inventory",), "spelling")]
    assert understood(ask(searching, "inventury", LOCAL_ADMINISTRATOR)) == []


def test_hidden_words_leave_no_trace_in_what_is_understood(world: World) -> None:
    shown = [line for line in CATALOG if line.get("access") != HIDDEN]
    crowd = [table(f"hidden.t{number}", f"inventor{letter}", access=HIDDEN) for number, letter in enumerate("abcdefgh")]
    queries = ["inventora", "invetory", "shipmt", "arr", "takeover price", "customer", "orderheadr", "stock purchase"]
    told = []
    for catalog in (shown, [*CATALOG, *crowd]):
        empty(world.uri)
        world.put("dw", catalog)
        world.refresh()
        with world.searching() as searching:
            told.append([understood(ask(searching, query)) for query in queries])
    assert told[0] == told[1]
    assert any(told[0])


def test_an_access_change_takes_words_away_and_writes_no_vocabulary(world: World) -> None:
    world.put("dw", CATALOG)
    world.refresh()
    before = world.counters()
    world.put("dw", [{**line, "access": HIDDEN} if line["id"] == "dw.inventory" else line for line in CATALOG])
    world.refresh()
    assert not {"vocabulary", "asset_document", "posting"} & written_since(before, world.counters()).keys() - {
        "asset_document"  # holds the payload, in which the list stands
    }
    with world.searching() as searching:
        assert understood(ask(searching, "ivnentory")) == []
        assert understood(ask(searching, "ivnentory", LOCAL_ADMINISTRATOR)) != []


def test_a_process_learns_the_words_that_a_later_refresh_brings(world: World) -> None:
    world.put("dw", CATALOG)
    world.refresh()
    with world.searching() as searching:
        assert understood(ask(searching, "warehuose")) == []
        world.put("dw", [*CATALOG, table("dw.warehouse")])
        world.refresh()
        assert understood(ask(searching, "warehuose")) == [("warehuose", ("warehouse",), "spelling")]


def test_the_words_of_custom_fields_and_values_are_not_spelled_out(world: World) -> None:
    fields = {"custom_fields": [{"name": "note", "value": "zanzibar"}],
              "columns": [{"name": "place", "top_values": ["reykjavik"], "description": "where it lies"}]}  # fmt: skip
    world.put("dw", [table("dw.a", **fields)])
    world.refresh()
    words = {row["word"] for row in world.rows("SELECT word FROM vocabulary")}
    assert "place" in words and "where" not in words
    assert not {"zanzibar", "reykjavik"} & words
