"""What a caller may not see has no influence on what they are answered."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

from services.access.principal import Principal
from services.embedded import EmbeddedServer
from services.errors import AssetNotFound
from services.retrieval.model import Filters, Mode, SearchAnswer, SearchRequest
from services.text.tokens import tokens
from tests.contract.pgvector_tables import empty
from tests.integration.refresh_kit import Line, World, fresh_world, table

VISITOR = Principal("visitor", ("sales",), clearance=1)
INSIDER = Principal("insider", ("sales", "finance"), clearance=3)
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
QUESTIONS = [
    "orders", "net total of orders", "revenue by region", "margin", "margin of every order", "thing", "secret",
    "ordres", "revenu", "marg", "margni of ordres", "secr", "secretorders",
]  # fmt: skip


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
        assert one.understood == other.understood


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
        insider = searching.search.search(request, INSIDER, "r").results
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


def test_siblings_of_a_hidden_asset_are_not_grouped_by_what_stands_between_them(world: World) -> None:
    one, other = (
        table(f"shop.{name}", name, descriptions={"business": "daily totals"}, siblings=["secret.totals"])
        for name in ("sums", "amounts")
    )
    between = table("secret.totals", "totals", descriptions={"business": "daily totals"}, access=FINANCE)
    world.put("shop", [one, other, between])
    world.refresh()
    with world.searching() as searching:
        request = SearchRequest(query="daily totals")
        seen = searching.search.search(request, VISITOR, "r").results
        assert {(result.id, result.siblings) for result in seen} == {("shop.amounts", None), ("shop.sums", None)}
        (grouped,) = searching.search.search(request, INSIDER, "r").results
        assert grouped.siblings is not None
        assert grouped.siblings.count == 2


SPELLED: list[Line] = [
    table("shop.invoices", "invoice_lines", descriptions={"business": "invoices by customer and quarter"}),
    table("shop.order", "order_log", descriptions={"business": "the header of each order"}),
]
SPELLED_HIDDEN: list[Line] = [
    table("secret.i", "invoyce", descriptions={"business": "invoyces of a certain kind"}, access=FINANCE),
    table("secret.z", "zephyr", descriptions={"business": "project zephyr, quaterly"}, access=RESTRICTED),
    table("secret.h", "orderheader", descriptions={"business": "qty and quantity of things"}, access=DENIED),
    {"id": "secret.gmv", "object_type": "term", "name": "Invoice quarter", "synonyms": ["GMV"], "access": FINANCE,
     "attributes": {"definition": "how much was invoiced"}},
]  # fmt: skip
SPELLINGS = {
    # What is asked, what a visitor's words are understood as, and the words that only the insider's are understood as.
    "invoyce": ({"invoice"}, set()),
    "invoyces by quarter": ({"invoices"}, set()),
    "zephyrr": (set(), {"zephyr"}),
    "zeph": (set(), {"zephyr"}),
    "quaterlyy": (set(), {"quaterly"}),
    "GMV": (set(), {"invoice quarter"}),
    "qty": (set(), {"quantity"}),
    "qnty of zephyrs": (set(), {"quantity"}),
    "order header": (set(), set()),
    "invoise": ({"invoice"}, set()),
}


def understood(answer: SearchAnswer) -> set[str]:
    return {name for item in answer.understood for name in item.alternatives}


def test_words_of_hidden_assets_are_mended_like_words_that_nobody_has_and_mend_nothing(world: World) -> None:
    asked: list[list[SearchAnswer]] = []
    for lines in (SPELLED, [*SPELLED, *SPELLED_HIDDEN]):
        empty(world.uri)
        world.put("shop", lines)
        world.refresh()
        with world.searching() as searching:
            requests = [SearchRequest(query=query, min_relevance=0.0) for query in SPELLINGS]
            asked.append([searching.search.search(request, VISITOR, "r") for request in requests])
            insider = [searching.search.search(request, INSIDER, "r") for request in requests]
    for (query, (for_all, for_insiders)), without, beside, inside in zip(
        SPELLINGS.items(), *asked, insider, strict=True
    ):
        assert understood(without) == for_all, query
        assert beside.understood == without.understood, query
        assert understood(inside) >= for_insiders, query
        assert not for_insiders & understood(beside), query
        assert [result.id for result in beside.results] == [result.id for result in without.results], query


WORDS_OF_A_WORLD = 24


class RandomWorld:
    """Words of one stem each with four spellings; assets that a visitor sees, and hidden ones in two wordings.

    The wordings differ in spelling, order, names as a whole, access and governance, not in which stems stand how often
    in how many assets: that is all that may be known of what is hidden.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        syllables = [first + second for first in "bdfglmprt" for second in "aou"]
        stems: dict[str, str] = {}
        while len(stems) < WORDS_OF_A_WORLD:
            stem = "".join(self.random.sample(syllables, 3)) + self.random.choice("kmn")
            if {token for ending in ENDINGS for token in tokens(stem + ending)} == {stem}:
                stems[stem] = stem
        self.stems = list(stems)
        self.shown_stems = self.stems[: 2 * WORDS_OF_A_WORLD // 3]  # of the others only hidden assets speak
        self.shown = [self.line(f"shown.{number}", self.pick(self.shown_stems), {}) for number in range(12)]
        hidden = [(f"hidden.{number}", self.pick(self.stems)) for number in range(12)]
        self.wordings = [[self.line(asset_id, stems, self.secrecy()) for asset_id, stems in hidden] for _ in range(2)]

    def pick(self, stems: Sequence[str]) -> list[str]:
        return self.random.sample(stems, 5)

    def secrecy(self) -> dict[str, Any]:
        governed = self.random.choice([{}, {"critical_data_element": True, "authoritative": True}])
        return {"access": self.random.choice([RESTRICTED, FINANCE, DENIED]), **governed}

    def spelled(self, stem: str) -> str:
        return stem + self.random.choice(ENDINGS)

    def line(self, asset_id: str, stems: list[str], more: dict[str, Any]) -> Line:
        """The first stem is its name, the second a synonym, the others are told in whichever order."""
        name, synonym, *others = map(self.spelled, stems)
        self.random.shuffle(others)
        return table(asset_id, name, synonyms=[synonym], descriptions={"business": " ".join(others)}, **more)

    def questions(self) -> list[str]:
        """Words as they are spelled, with slips, unfinished, and joined; of what is shown and of what is hidden."""
        names = [line["name"] for line in (*self.shown, *self.wordings[0], *self.wordings[1])]
        words = self.random.sample(names, 8) + [self.spelled(stem) for stem in self.stems]
        slips = [word[:3] + word[4:] for word in self.random.sample(words, 8)]
        swapped = [word[:4] + word[5] + word[4] + word[6:] for word in self.random.sample(words, 8)]
        begun = [word[: self.random.randint(3, 5)] for word in self.random.sample(words, 8)]
        several = [" ".join(self.random.sample(words + slips, 3)) for _ in range(8)]
        return [*words, *slips, *swapped, *begun, *several, "".join(self.stems[-2:])]


ENDINGS = ("", "s", "ed", "ing")


@pytest.mark.parametrize("seed", range(2))
def test_how_hidden_assets_are_worded_governed_and_hidden_changes_no_answer(world: World, seed: int) -> None:
    random_world = RandomWorld(seed)
    questions = random_world.questions()
    told: dict[Principal, list[list[Any]]] = {VISITOR: [], INSIDER: []}
    statistics = []
    for hidden in random_world.wordings:
        empty(world.uri)
        world.put("shop", [*random_world.shown, *hidden])
        world.refresh()
        statistics.append(
            (world.rows("SELECT * FROM term_stat ORDER BY term"), world.rows("SELECT * FROM corpus_stat"))
        )
        with world.searching() as searching:
            for principal, answers_of in told.items():
                found = [
                    searching.search.search(SearchRequest(query=query, mode=mode, explain=True), principal, "r")
                    for query, mode in zip(questions, cycle(Mode), strict=False)
                ]
                answers_of.append([(answer.results, answer.refusal, answer.understood) for answer in found])
    assert statistics[0] == statistics[1]
    assert told[VISITOR][0] == told[VISITOR][1]
    assert any(words for _, _, words in told[VISITOR][0])
    assert sum(one != other for one, other in zip(*told[INSIDER], strict=True)) > len(questions) / 2


def test_a_filter_confirms_no_guess_at_what_is_hidden(world: World) -> None:
    glossary: dict[str, str] = {"domain": "Mergers", "category": "Targets"}
    referring = table(
        "shop.deals", "deals", descriptions={"business": "deals"},
        terms=[{"id": "secret.term", "name": "Takeover", **glossary}], data_products=["secret.product"],
        lineage={"upstream": ["secret.feed"]},
    )  # fmt: skip
    world.put("shop", [
        referring,
        {"id": "secret.term", "object_type": "term", "name": "Takeover", "attributes": glossary, "access": FINANCE},
        {"id": "secret.product", "object_type": "data_product", "name": "Takeovers", "access": RESTRICTED},
        table("secret.feed", "takeover_feed", access=DENIED, tags=[["Mergers"]], governance_roles=[
            {"role": "owner", "name": "deal-team"}]),
    ])  # fmt: skip
    world.put("confidential", [table("secret.other", "other", access=FINANCE)])
    world.refresh()
    guesses: list[dict[str, tuple[str, ...]]] = [
        {"term": ("nobody has this",)},
        {"term": ("Takeover",)}, {"term": ("secret.term",)}, {"domain": ("Mergers",)}, {"tag": ("Mergers",)},
        {"data_product": ("Takeovers",)}, {"data_product": ("secret.product",)}, {"owner": ("deal-team",)},
        {"source": ("confidential",)}, {"classification": ("Restricted",)},
    ]  # fmt: skip
    with world.searching() as searching:
        for mode in Mode:
            told = [
                searching.search.search(SearchRequest(query="deals", mode=mode, filters=Filters(**guess)), VISITOR, "r")
                for guess in guesses
            ]
            assert {(answer.results, answer.refusal, answer.understood) for answer in told} == {
                ((), told[0].refusal, ())
            }
            found = SearchRequest(query="deals", mode=mode, filters=Filters(source=("shop",)))
            assert [result.id for result in searching.search.search(found, VISITOR, "r").results] == ["shop.deals"]
        feed = SearchRequest(query="feed", filters=Filters(owner=("deal-team",)))
        assert [result.id for result in searching.search.search(feed, INSIDER, "r").results] == ["secret.feed"]


def test_however_many_words_are_hidden_they_crowd_out_none_that_is_seen(world: World) -> None:
    shown = [
        table("shop.s", "shipmentregister", descriptions={"business": "parcels"}),
        table("shop.t", "warehousekeeping", descriptions={"business": "halls"}),
    ]
    letters = "abcdefghijklmnopqrstuvwxyz"
    like_shown = [f"warehousekeepin{one}{other}" for one in letters for other in letters]
    begun_alike = [f"ship{one}{other}" for one in letters for other in letters]
    hidden = [
        table(f"secret.{number}", "thing", descriptions={"business": " ".join(words)}, access=FINANCE)
        for number, words in enumerate((like_shown[:338], like_shown[338:], begun_alike[:338], begun_alike[338:]))
    ]
    world.put("shop", [*shown, *hidden])
    world.refresh()
    with world.searching() as searching:
        # The slip is two letters away from what is seen, and one from many words that are hidden.
        for query, meant in (("ship", "shipmentregister"), ("warehousekeepixx", "warehousekeeping")):
            assert understood(searching.search.search(SearchRequest(query=query), VISITOR, "r")) == {meant}
            assert understood(searching.search.search(SearchRequest(query=query), INSIDER, "r")) - {meant}
