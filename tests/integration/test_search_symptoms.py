"""What people report of hybrid searches over catalogs, each report turned into what has to hold here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from flask.testing import FlaskClient

from services import wiring
from services.access.keys import create_key
from services.access.principal import LOCAL_ADMINISTRATOR, Permission, Principal
from services.access.rule import Level
from services.api.app import create_app
from services.api.config import ApiConfig
from services.embedded import EmbeddedServer
from services.retrieval.keyword import LENGTH_SHARE, SATURATION, idf
from services.retrieval.model import Explanation, Mode, Result, SearchAnswer, SearchRequest
from services.retrieval.search import SearchService
from services.settings import load_settings
from tests.embedders import HashEmbedder
from tests.integration.refresh_kit import Line, World, fresh_world, new_world, table

TRUSTED = {
    "critical_data_element": True,
    "data_quality_score": 100,
    "certification": {"status": "certified"},
    "authoritative": True,
}
BUSY = {"usage": {"queries_30d": 9000, "users_30d": 120}, "rating": 5, "statistics": {"row_count": 10**9}}


def told(text: str) -> dict[str, dict[str, str]]:
    return {"descriptions": {"business": text}}


def columns(*names: str) -> dict[str, list[dict[str, str]]]:
    return {"columns": [{"name": name} for name in names]}


CATALOG: list[Line] = [
    table("o.1", "customer_orders", **told("what customers bought"), location=["shop", "sales"]),
    table("o.2", "customer_orders_archive", **TRUSTED, **BUSY, **told("customer orders of former years")),
    table("o.3", "all_customer_orders", **TRUSTED, **BUSY, **told("customer orders, customer by customer")),
    table("o.4", "returns", **TRUSTED, **told("customer orders that came back")),
    table("o.5", "vendor_orders", title="Customer orders by vendor", **TRUSTED),
    table("r.1", "refund_requests"),
    table("r.2", "refund_requests_archive"),
    table("r.3", "refund_requests_v2"),
    table("r.4", "open_refund_requests"),
    table("p.1", "staff_departures", synonyms=["attrition"], **told("who left, and when")),
    {"id": "g.arr", "object_type": "term", "name": "Annual Recurring Revenue", "synonyms": ["ARR"],
     "attributes": {"definition": "what subscriptions bring in a year"}},
    table("a.1", "subscriptions", **told("annual recurring revenue of each subscription")),
    table("b.1", "src_booking", **columns("booking_id", "booking_date"), **told("booking records as the source has")),
    table("b.2", "fct_booking", **columns("booking_id", "booking_date"), **told("booking facts"), **TRUSTED, **BUSY),
    table("i.1", "iso4217", title="Currency codes", **columns("code", "minor_unit")),
    table("i.2", "iso_8601", title="Date formats", **columns("code", "example")),
    table("n.1", "api_calls", **told("api calls by client")),
    table("s.1", "shipment_log", **told("when parcels left")),
    table("q.1", "cust_qty", **columns("qty")),
    table("q.2", "customer_quantity_targets", **columns("target")),
    table("q.3", "customer_limits", **columns("ceiling")),
    table("c.1", "café", **told("places that serve coffee")),
    table("d.1", "umsatzübersicht", title="Umsatzübersicht", **told("Umsatz je Monat und Region")),
    table("l.1", "заказы_клиентов", **told("все заказы по месяцам")),
    table("l.2", "hantei", title="顧客注文一覧", **told("顧客の注文")),
    table("l.3", "طلبات", title="طلبات العملاء", **told("كل الطلبات")),
    *(table(f"z.{number}", f"zz{number}_gauge", **told(f"gauges of hall {number}")) for number in range(10, 50)),
]  # fmt: skip


class SpellingEmbedder(HashEmbedder):
    """Has a token of its own for short words only: longer ones may be slips of spelling."""

    def count_tokens(self, text: str) -> int:
        return 2 + sum(1 + len(word) // 4 for word in text.split())


@dataclass(frozen=True)
class Asking:
    """The services as the query API has them, and the API before them with a key that sees everything public."""

    search: SearchService
    client: FlaskClient
    headers: dict[str, str]

    def ask(self, query: str, mode: Mode = Mode.ANALYSIS, **changes: Any) -> SearchAnswer:
        request = SearchRequest(query=query, mode=mode, explain=True, **changes)
        return self.search.search(request, LOCAL_ADMINISTRATOR, "request-1")

    def ids(self, query: str) -> list[str]:
        return [result.id for result in self.ask(query).results]

    def most_relevant(self, query: str) -> list[str]:
        """Ids by relevance alone: what is well governed but beside the point may stand before them in an answer."""
        results = self.ask(query, limit=50, candidate_limit=200, min_relevance=0.0).results
        return [result.id for result in sorted(results, key=lambda result: -explained(result).relevance_score)]


@pytest.fixture(scope="module")
def world(postgres_server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> World:
    postgres_server.ensure_database("symptoms")
    world = new_world(postgres_server.uri("symptoms"), tmp_path_factory.mktemp("symptoms"))
    world.embedder = SpellingEmbedder(256)
    world.put("shop", CATALOG)
    world.refresh()
    return world


@pytest.fixture(scope="module")
def asking(world: World) -> Iterator[Asking]:
    settings = load_settings(home=world.folder, database_url=world.uri)
    permissions = (Permission.SEARCH, Permission.EXPLAIN)
    token, record = create_key("reader", (), Level.PUBLIC, permissions, now=datetime.now(UTC))
    with wiring.key_store(settings) as keys:
        keys.add(record)
    with (
        patch.object(wiring, "query_embedder", lambda _settings: world.embedder),
        wiring.open_query_services(settings) as services,
    ):
        assert isinstance(services.search, SearchService)
        client = create_app(services, ApiConfig()).test_client()
        yield Asking(services.search, client, {"Authorization": f"Bearer {token}"})


def explained(result: Result) -> Explanation:
    assert result.explain is not None
    return result.explain


@pytest.mark.parametrize(
    "query", ["customer_orders", "customer orders", "CUSTOMER-ORDERS", "customerOrders", "sales.customer_orders"]
)
def test_an_exact_name_is_first_however_well_others_are_governed_or_used(asking: Asking, query: str) -> None:
    results = asking.ask(query).results
    assert (results[0].id, results[0].pinned) == ("o.1", "exact name")
    assert {"o.2", "o.3", "o.4", "o.5"} & {result.id for result in results[1:]}
    assert max(explained(result).governance_score for result in results[1:]) > explained(results[0]).governance_score


@pytest.mark.parametrize("pin", [True, False])
@pytest.mark.parametrize(
    ("query", "exact"),
    [
        ("customer_orders", "o.1"),
        ("customer orders", "o.1"),
        ("refund_requests", "r.1"),
        ("refund requests", "r.1"),
        ("which refund requests are there", "r.1"),
        ("requests for a refund", "r.1"),
    ],
)
def test_a_name_and_longer_ones_that_hold_it_do_not_tie(world: World, query: str, exact: str, pin: bool) -> None:
    with world.searching(pin=pin) as searching:
        request = SearchRequest(query=query, explain=True)
        results = searching.search.search(request, LOCAL_ADMINISTRATOR, "r").results
    keyword = {result.id: explained(result).keyword_score for result in results}
    relevance = {result.id: explained(result).relevance_score for result in results}
    assert len([asset_id for asset_id in relevance if asset_id[0] == exact[0]]) > 3
    for other in relevance.keys() - {exact}:
        assert keyword[exact] > keyword[other]
        assert relevance[exact] > relevance[other]


def test_a_word_that_is_only_a_synonym_finds_its_asset(asking: Asking) -> None:
    for query in ("attrition", "attrition by team"):
        assert asking.most_relevant(query)[0] == "p.1"
    assert not any(result.pinned for result in asking.ask("attrition").results)


def test_a_glossary_synonym_finds_what_is_written_out(asking: Asking) -> None:
    assert asking.most_relevant("ARR")[:2] == ["g.arr", "a.1"]
    assert asking.most_relevant("ARR by plan")[:2] == ["g.arr", "a.1"]
    (understood,) = asking.ask("ARR").understood
    assert (understood.word, understood.alternatives, understood.why) == (
        "arr",
        ("annual recurring revenue",),
        "synonym",
    )


@pytest.mark.parametrize("query", ["booking", "bookings", "which bookings are there", "booking date"])
def test_of_two_tables_of_one_word_the_governed_one_is_first(asking: Asking, query: str) -> None:
    assert asking.ids(query)[:2] == ["b.2", "b.1"]


def test_nothing_known_of_governance_or_usage_takes_nothing_from_relevance(asking: Asking) -> None:
    (found,) = [result for result in asking.ask("parcels left").results if result.id == "s.1"]
    explain = explained(found)
    assert {(part.value, part.origin, part.contribution) for part in explain.governance} == {(0, "absent", 0)}
    assert explain.governance_score == 0
    assert explain.relevance_score > 0.3
    assert found.final_score == pytest.approx(0.75 * explain.relevance_score)


QUERIES = [
    "customer orders", "booking", "ARR", "cust qty", "code", "hall 17", "orders customer revenue api", "заказы",
    "顧客注文", "umsatzübersicht", "coffee", "who left when", "iso", "zz11 gauge", "table",
]  # fmt: skip


@pytest.mark.parametrize("mode", list(Mode))
def test_no_asset_stands_twice_though_both_sides_find_it(asking: Asking, mode: Mode) -> None:
    both = 0
    for query in QUERIES:
        results = asking.ask(query, mode, limit=50, candidate_limit=200, min_relevance=0.0).results
        ids = [other for result in results for other in (result.id, *(result.siblings.ids if result.siblings else ()))]
        assert len(ids) == len(set(ids)) > 5
        both += sum(explained(item).keyword_rank is not None and explained(item).vector_rank == 1 for item in results)
    assert both > len(QUERIES) / 2


@pytest.mark.parametrize("mode", list(Mode))
def test_the_order_and_the_numbers_survive_the_way_through_the_api(asking: Asking, mode: Mode) -> None:
    for query in QUERIES:
        body = {"query": query, "mode": mode, "limit": 50, "explain": True, "min_relevance": 0.0}
        response = asking.client.post("/v1/search", json=body, headers=asking.headers)
        assert response.status_code == 200
        answer = asking.ask(query, mode, limit=50, min_relevance=0.0)
        assert response.json is not None
        assert response.json["results"] == answer.model_dump(mode="json")["results"]
        keys = [(item.get("pinned") is None, -item["final_score"], item["id"]) for item in response.json["results"]]
        assert keys == sorted(keys)
        assert [item["rank"] for item in response.json["results"]] == list(range(1, len(keys) + 1))


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("the of and", None),
        ("it", None),
        ("x", None),
        ("?", None),
        ("😀 🎉", None),
        ("😀 coffee 🎉", "c.1"),
        ("'; DROP TABLE asset; --", None),
        ("SELECT * FROM customer_orders WHERE 1=1", "o.1"),
        ("customer & !orders | (archive:*)", "o.2"),
        ("a & !b | (c:*)", None),
        ("attrition' OR 'a'='a", "p.1"),
        ("\\coffee\\", "c.1"),
        ("100% coffee %s %(x)s {y}", "c.1"),
        ("%", None),
        ("_", None),
        ("طلبات العملاء", "l.3"),
        ("\u202eطلبات\u202c", "l.3"),
        ("顧客注文", "l.2"),
        ("注文", "l.2"),
        ("заказы", "l.1"),
        ("ЗАКАЗЫ по месяцам", "l.1"),
        ("customer\torders\r\narchive", "o.2"),
        ("attrition" + " word" * 2000, "p.1"),
        ("attrition " + " ".join(f"w{number:04}" for number in range(2000)), "p.1"),
        ("x" * 16_000, None),
    ],
)
def test_any_query_is_answered_and_by_the_asset_that_it_is_about(asking: Asking, query: str, best: str | None) -> None:
    for mode in Mode:
        body = {"query": query, "mode": mode, "limit": 50, "explain": True, "min_relevance": 0.0}
        response = asking.client.post("/v1/search", json=body, headers=asking.headers)
        assert response.status_code == 200
        assert response.json is not None
        results = response.json["results"]
        assert len(results) == 50
        if best is not None:
            assert max(results, key=lambda result: result["explain"]["relevance_score"])["id"] == best
        judged = asking.client.post("/v1/search", json={"query": query, "mode": mode}, headers=asking.headers)
        assert judged.status_code == 200
        assert judged.json is not None
        assert bool(judged.json["results"]) != ("refusal" in judged.json)


@pytest.mark.parametrize("query", ["\x00", "coffee\x00", "\ud800", "x" * 16_385, " " * 20_000 + "x"])
def test_what_cannot_be_a_query_is_refused_by_its_field(asking: Asking, query: str) -> None:
    response = asking.client.post("/v1/search", json={"query": query}, headers=asking.headers)
    assert response.status_code == 422
    assert response.json is not None
    assert [error["field"] for error in response.json["errors"]] == ["query"]


@pytest.mark.parametrize("query", ["ISO 4217", "iso-4217", "ISO4217", "iso 4217 codes", "ISO 4217 code of a country"])
def test_a_code_is_told_from_others_of_its_kind(asking: Asking, query: str) -> None:
    relevant = asking.most_relevant(query)
    assert relevant[0] == "i.1"
    assert "i.2" in relevant


def test_an_acronym_is_not_mended_into_another(asking: Asking) -> None:
    for query in ("NPI", "NPI calls", "npi", "ISO 4218"):
        assert not [item for item in asking.ask(query).understood if item.why == "spelling"]


@pytest.mark.parametrize(
    ("query", "found", "whys"),
    [
        ("custmer ordrs", "o.1", {"spelling", "abbreviation"}),
        ("customer odrers", "o.1", {"spelling", "abbreviation"}),
        ("refnd requsts", "r.1", {"spelling", "abbreviation"}),
        ("atrition", "p.1", {"spelling"}),
        ("umsatzubresicht", "d.1", {"spelling"}),
        ("shipm", "s.1", {"prefix"}),
        ("recurr", "a.1", {"prefix"}),
        ("customer quantity", "q.1", {"abbreviation"}),
        ("cust qty", "q.2", {"abbreviation"}),
        ("cafe", "c.1", set()),
        ("CAFÉ", "c.1", set()),
        ("Umsatzubersicht", "d.1", set()),
        ("UMSATZÜBERSICHT", "d.1", set()),
        ("umsatzu\u0308bersicht", "d.1", set()),
    ],
)
def test_what_is_spelled_otherwise_is_found(asking: Asking, query: str, found: str, whys: set[str]) -> None:
    assert found in asking.most_relevant(query)[:3]
    assert {item.why for item in asking.ask(query).understood} == whys


def test_a_name_with_all_words_abbreviated_stands_before_one_with_a_single_word(asking: Asking) -> None:
    for query in ("customer quantity", "cust qty"):
        relevant = asking.most_relevant(query)
        assert max(relevant.index("q.1"), relevant.index("q.2")) < relevant.index("q.3")


def test_equals_stand_by_id(postgres_server: EmbeddedServer, tmp_path: Any) -> None:
    world = fresh_world(postgres_server, tmp_path)
    names = ["t.b", "t.B", "t.a", "t._", "t.10", "t.9", "t.é"]
    world.put("shop", [table(asset_id, "twin", **told("one of several")) for asset_id in names])
    world.refresh()
    with world.searching() as searching:
        for query in ("twin", "several", "one twin", "nothing"):
            for limit in (3, 50):
                request = SearchRequest(query=query, mode=Mode.DISCOVERY, limit=limit, candidate_limit=limit)
                results = searching.search.search(request, LOCAL_ADMINISTRATOR, "r").results
                assert len({result.final_score for result in results}) == 1
                assert [result.id for result in results] == sorted(names)[:limit]


NOISE = [f"{first}{second}{third}" for first in "bdfg" for second in "aeiou" for third in ("lmr", "nst", "rkt", "ppd")]


def test_what_only_one_side_proposes_has_both_numbers_exact(postgres_server: EmbeddedServer, tmp_path: Any) -> None:
    """A pool of 50 a side; the one is far down in the other side's order each time."""
    world = fresh_world(postgres_server, tmp_path)
    world.embedder = HashEmbedder(256)
    orders = [
        table(f"t.{number:03}", f"orders_{number}", **told("orders " + " ".join(NOISE[number % 20 : number % 20 + 40])))
        for number in range(160)
    ]
    by_word = table("x.word", "ledger", **columns(*NOISE[:30], "zanzibar"))
    by_vector = table("x.vector", "thing", **told("orders of orders and of orders"))
    world.put("shop", [*orders, by_word, by_vector])
    world.refresh()
    with world.searching() as searching:
        request = SearchRequest(
            query="zanzibar orders", mode=Mode.DISCOVERY, explain=True, limit=25, candidate_limit=25
        )
        found = {
            result.id: explained(result)
            for result in searching.search.search(request, LOCAL_ADMINISTRATOR, "r").results
        }
    similarities = stored_similarities(world, "zanzibar orders")
    keywords = stored_keyword_scores(world, ["zanzibar", "order"])
    assert place(similarities, "x.word") > 50 >= place(keywords, "x.word")
    assert place(keywords, "x.vector") > 50 >= place(similarities, "x.vector")
    for asset_id in ("x.word", "x.vector"):
        assert found[asset_id].vector_similarity == pytest.approx(similarities[asset_id], abs=1e-6)
        assert found[asset_id].keyword_score == pytest.approx(keywords[asset_id], abs=1e-6)
        assert keywords[asset_id] > 0


def place(values: dict[str, float], asset_id: str) -> int:
    """How many have at least as much, itself counted."""
    return sum(value >= values[asset_id] for value in values.values())


def stored_similarities(world: World, query: str) -> dict[str, float]:
    """Of assets with one chunk each."""
    asked = np.asarray(world.embedder.embed_query(query), dtype=float)
    chunks: dict[str, list[float]] = {}
    for row in world.rows("SELECT id, embedding::text AS v FROM embedding_1 JOIN asset USING (asset_key)"):
        vector = np.array([float(number) for number in row["v"].strip("[]").split(",")])
        chunks.setdefault(row["id"], []).append(float(vector @ asked / np.linalg.norm(vector) / np.linalg.norm(asked)))
    return {key: min(1.0, max(0.0, only)) for key, (only,) in chunks.items()}


def stored_keyword_scores(world: World, terms: list[str]) -> dict[str, float]:
    lengths = {row["id"]: row["l"] for row in world.rows("SELECT id, keyword_length::float8 AS l FROM asset")}
    mean = sum(lengths.values()) / len(lengths)
    matched, total = dict.fromkeys(lengths, 0.0), 0.0
    for term in terms:
        rows = world.rows(
            "SELECT id, weight::float8 AS w FROM posting JOIN asset USING (asset_key) WHERE term = %s", term
        )
        worth = idf(len(rows), len(lengths))
        total += worth
        for row in rows:
            usual = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * lengths[row["id"]] / mean)
            matched[row["id"]] += worth * row["w"] / (row["w"] + usual)
    return {asset_id: value / total for asset_id, value in matched.items()}


SESSION = columns("visitor", "pageview", "session_start")
THROUGH_THREE: list[Line] = [
    table(f"{system}.web_visits", "web_visits", **told("website sessions of visitors"), **SESSION)
    for system in ("lake", "mart", "warehouse")
]
FORTY_DAYS: list[Line] = [
    table(f"s.{day:02}", f"web_sessions_{day:02}", title="Website sessions", siblings=["s.00"], **SESSION,
          **told("website sessions of one day"))
    for day in range(40)
]  # fmt: skip
OF_EACH_TENANT: list[Line] = [
    table(f"s.{tenant:03}", "website_sessions", location=["app", f"tenant_{tenant:03}"], **SESSION,
          **told("website sessions of one tenant"))
    for tenant in range(300)
]  # fmt: skip
OTHERS: list[Line] = [
    table(f"w.{number:02}", f"kind_{number}", **told(f"what website sessions of kind {number} cost"))
    for number in range(12)
]


@pytest.mark.parametrize("copies", [FORTY_DAYS, OF_EACH_TENANT], ids=["declared", "of one shape"])
def test_near_duplicates_leave_room_for_others_and_are_counted(
    postgres_server: EmbeddedServer, tmp_path: Any, copies: list[Line]
) -> None:
    world = fresh_world(postgres_server, tmp_path)
    world.put("shop", [*THROUGH_THREE, *copies, *OTHERS])
    world.refresh()
    with world.searching() as searching:

        def ask(**changes: Any) -> tuple[Result, ...]:
            request = SearchRequest(query="website sessions", **changes)
            return searching.search.search(request, LOCAL_ADMINISTRATOR, "r").results

        results = ask(limit=14)
        assert len(results) == 14  # one, one, and twelve
        assert {result.id for result in results} >= {line["id"] for line in OTHERS}
        grouped = {result.name: result for result in results if result.siblings is not None}
        assert sorted(len(result.siblings.ids) for result in grouped.values() if result.siblings) == [
            2,
            len(copies) - 1,
        ]
        for result in grouped.values():
            assert result.siblings is not None
            assert result.siblings.count == len(result.siblings.ids)
        everybody = {result.id for result in results} | {
            other for result in results if result.siblings for other in result.siblings.ids
        }
        assert everybody == {line["id"] for line in (*THROUGH_THREE, *copies, *OTHERS)}
        assert len(ask()) == len(ask(limit=10, candidate_limit=1)) == 10
        for apart in (ask(group_siblings=False), ask(mode=Mode.DISCOVERY)):
            assert len(apart) == 10
            assert all(result.siblings is None for result in apart)
            assert len([result for result in apart if result.id.startswith("s.")]) > 5


def test_there_are_as_many_results_as_asked_for_whenever_that_many_match(
    postgres_server: EmbeddedServer, tmp_path: Any
) -> None:
    world = fresh_world(postgres_server, tmp_path)
    hidden = {"access": {"groups": ["finance"]}}
    shown = [table(f"v.{number:02}", f"ledger_{number}", **told("ledger")) for number in range(50)]
    unseen = [table(f"h.{number:03}", "ledger", **told("ledger ledger"), **TRUSTED, **hidden) for number in range(300)]
    world.put("shop", [*shown, *unseen])
    world.refresh()
    visitor = Principal("visitor", ("sales",), clearance=0)
    with world.searching() as searching:
        for mode in Mode:
            for limit, candidate_limit in ((1, 1), (10, 1), (50, 1), (50, 30), (50, 200), (7, 200)):
                request = SearchRequest(query="ledger", mode=mode, limit=limit, candidate_limit=candidate_limit)
                results = searching.search.search(request, visitor, "r").results
                assert len(results) == limit
                assert {result.id[0] for result in results} == {"v"}
