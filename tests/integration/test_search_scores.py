"""Every number of an answer, computed a second time from what is stored and from the raw catalog alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from services.access.principal import LOCAL_ADMINISTRATOR
from services.errors import InvalidRequest, ModelError, SchemaError
from services.index.embedder import Embedder
from services.retrieval.model import Explanation, Filters, Mode, Result, SearchAnswer, SearchRequest
from tests.embedders import HashEmbedder
from tests.integration.refresh_kit import NOW, Line, Searching, World, new_world, table

LONG = " ".join(
    f"The rule za{one}{other}k of the stock says something." for one in "abcdefghij" for other in "abcdefghi"
)
CATALOG: list[Line] = [
    table("t.orders", "orders", title="Order lines", descriptions={"business": "net total of an order"},
          columns=[{"name": "order_id"}, {"name": "net"}, {"name": "tax"}, {"name": "email"}],
          critical_data_element=True, data_quality_score=95, certification={"status": "certified"},
          authoritative=True),
    table("t.orders_copy", "orders_copy", descriptions={"business": "a copy of order lines with the net total"},
          columns=[{"name": "order_id"}, {"name": "net"}], data_quality_score=40,
          certification={"status": "violated"}),
    table("t.cart", "cart", title="Cart", descriptions={"business": "what is in a cart before it is an order"},
          custom_fields=[{"name": "CDE", "value": "yes"}, {"name": "Data Quality Score", "value": "80%"}]),
    table("t.stock", "stock", descriptions={"business": LONG}, authoritative=True,
          certification={"status": "certified", "expires_at": "2026-02-01T00:00:00Z"}),
    table("t.tax", "tax_region", title="Tax by region", descriptions={"business": "tax of each region"},
          certification={"status": "certified", "expires_at": "2026-04-01T00:00:00Z"}),
    table("t.email", "email_log", descriptions={"source": "every email that was sent"}, data_quality_score=100),
    {"id": "r.net", "object_type": "report", "name": "net_total_report", "title": "Net total",
     "descriptions": {"business": "the net total by region"}, "certification": {"status": "cautioned"},
     "critical_data_element": True, "data_quality_score": 90},
    {"id": "f.stock", "object_type": "file", "name": "stock.csv", "synonyms": ["stock list"],
     "data_quality_score": 55.5, "tags": [["Stock", "Export"]]},
    {"id": "c.cart", "object_type": "code", "name": "load_cart", "descriptions": {"technical": "loads the cart"},
     "certification": {"status": "certified"}, "authoritative": True},
    {"id": "g.net", "object_type": "term", "name": "Net total", "attributes": {"definition": "total less tax"},
     "authoritative": True, "certification": {"status": "certified"}},
    {"id": "p.tax", "object_type": "data_product", "name": "Tax pack", "attributes": {"domain": "Tax"},
     "authoritative": True, "descriptions": {"business": "everything on tax"}},
]  # fmt: skip
QUESTIONS = [
    "net total",
    "order net tax email",
    "cart",
    "stock",
    "stock zabak zabbk",
    "tax region",
    "email",
    "total of each region",
    "order_id",
    "nothing knows xyzzy but a cart",
    "net stock load cart",  # "load cart" stands written together in the name of one asset
    "tax region net total stock email zabak zabbk nothing knows xyzzy cart order",  # long enough to be matched by less
]
STEMS = {"nothing": "noth", "knows": "know", "xyzzy": "xyzzi"}  # all other words of the questions are their own stems


@pytest.fixture(scope="module")
def module_database(postgres_server: Any) -> str:
    postgres_server.ensure_database("scores")
    return str(postgres_server.uri("scores"))


@pytest.fixture(scope="module")
def world(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> World:
    world = new_world(module_database, tmp_path_factory.mktemp("scores"))
    world.put("shop", CATALOG)
    world.refresh()
    return world


@pytest.fixture(scope="module")
def searching(world: World) -> Iterator[Searching]:
    with world.searching() as searching:
        yield searching


def ask(searching: Searching, query: str, **changes: Any) -> SearchAnswer:
    request = SearchRequest(query=query, **{"explain": True, "mode": Mode.DISCOVERY, **changes})
    return searching.search.search(request, LOCAL_ADMINISTRATOR, "request-1")


def explained(result: Result) -> Explanation:
    assert result.explain is not None
    return result.explain


def parsed(vector: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([float(number) for number in vector.strip("[]").split(",")])


class Recomputed:
    """The formulas of the design, from stored vectors and postings, the raw lines and the rules file."""

    def __init__(self, world: World) -> None:
        self.embedder: Embedder = world.embedder
        keys = {row["asset_key"]: row["id"] for row in world.rows("SELECT asset_key, id FROM asset")}
        self.vectors: dict[str, list[np.ndarray[Any, np.dtype[np.float64]]]] = {}
        for row in world.rows("SELECT asset_key, embedding::text AS v FROM embedding_1 ORDER BY asset_key, number"):
            self.vectors.setdefault(keys[row["asset_key"]], []).append(parsed(row["v"]))
        self.postings: dict[str, dict[str, float]] = {asset_id: {} for asset_id in keys.values()}
        for row in world.rows("SELECT asset_key, term, weight::float8 AS weight FROM posting"):
            self.postings[keys[row["asset_key"]]][row["term"]] = row["weight"]
        self.lengths = {row["id"]: row["l"] for row in world.rows("SELECT id, keyword_length::float8 AS l FROM asset")}
        self.lines = {line["id"]: line for line in CATALOG}
        self.rules = yaml.safe_load((files("services") / "trust" / "rules.yaml").read_text(encoding="utf-8"))

    def vector_similarity(self, query: str, asset_id: str) -> float:
        asked = np.asarray(self.embedder.embed_query(query), dtype=float)
        cosines = [v @ asked / np.linalg.norm(v) / np.linalg.norm(asked) for v in self.vectors[asset_id]]
        return float(min(1, max(0, (max(cosines) + sum(cosines) / len(cosines)) / 2)))

    def keyword_score(self, words: list[str], whole_query: str, asset_id: str) -> float:
        """Neighbouring words that somewhere stand written together are a quarter of a word on top."""
        if whole_query in self.names(asset_id):
            return 1.0
        words = list(dict.fromkeys(words))
        asked = sum(self.idf(word) if self.having(word) else self.idf(word) / 2 for word in words)
        usual = 3 * self.idf("no such word")
        full = asked if asked <= usual else usual * (asked / usual) ** (1 / 3)
        matched = sum(self.matched(word, asset_id) for word in words)
        matched += sum(self.matched(term, asset_id) / 4 for term in self.joined(whole_query, words))
        return min(1.0, matched / full)

    def having(self, term: str) -> int:
        return sum(term in postings for postings in self.postings.values())

    def idf(self, term: str) -> float:
        return math.log(1 + (len(self.postings) - self.having(term) + 0.5) / (self.having(term) + 0.5))

    def matched(self, term: str, asset_id: str) -> float:
        weight = self.postings[asset_id].get(term, 0.0)
        mean = sum(self.lengths.values()) / len(self.lengths)
        return self.idf(term) * weight / (weight + 0.6 * (0.5 + 0.5 * self.lengths[asset_id] / mean))

    def joined(self, whole_query: str, words: list[str]) -> set[str]:
        spelled = whole_query.split()
        runs = [spelled[start:end] for end in range(len(spelled) + 1) for start in range(max(0, end - 3), end - 1)]
        return {term for term in map("".join, runs) if term not in words and self.having(term)}

    def names(self, asset_id: str) -> set[str]:
        line = self.lines[asset_id]
        texts = [line["name"], line.get("title") or "", *line.get("synonyms", [])]
        return {" ".join(text.lower().replace("_", " ").replace(".", " ").split()) for text in texts}

    def governance_score(self, asset_id: str) -> float:
        line = self.lines[asset_id]
        fields = {field["name"]: field["value"] for field in line.get("custom_fields", [])}
        believed = self.rules["confidence"]["custom_field"]
        native = {
            "critical_data_element": float(line.get("critical_data_element") or 0),
            "data_quality": (line.get("data_quality_score") or 0) / 100,
            "certification": self.certified(line),
            "authoritative": float(line.get("authoritative") or 0),
        }
        if "CDE" in fields:
            native["critical_data_element"] = believed * (fields["CDE"] == "yes")
            native["data_quality"] = believed * float(fields["Data Quality Score"].strip("%")) / 100
        signals = self.rules["signals"]
        return sum(
            signals[name]["weight"] * value
            for name, value in native.items()
            if line["object_type"] in signals[name]["object_types"]
        )

    @staticmethod
    def certified(line: Mapping[str, Any]) -> float:
        certification = line.get("certification") or {}
        ends = certification.get("expires_at")
        expired = ends is not None and datetime.fromisoformat(ends) <= NOW
        return float(certification.get("status") == "certified" and not expired)


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_final_score_is_what_a_second_computation_gives(
    world: World, searching: Searching, question: str
) -> None:
    again = Recomputed(world)
    function_words = {"of", "each", "but", "a"}
    whole = question.replace("_", " ")
    words = [word for word in whole.split() if word not in function_words]
    if "_" in question:
        words.append(question.replace("_", ""))  # an identifier of several words also stands for itself
    words = [STEMS.get(word, word) for word in words]
    answer = ask(searching, question, limit=50)
    assert len(answer.results) == len(CATALOG)
    for result in answer.results:
        explain = explained(result)
        similarity = again.vector_similarity(question, result.id)
        keyword = again.keyword_score(words, whole, result.id)
        governance = again.governance_score(result.id)
        assert explain.vector_similarity == pytest.approx(similarity, abs=1e-6)
        assert explain.keyword_score == pytest.approx(keyword, abs=1e-6)
        assert explain.governance_score == pytest.approx(governance, abs=1e-9)
        assert result.final_score == pytest.approx(0.75 * (similarity + keyword) / 2 + 0.25 * governance, abs=1e-6)


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_explains_a_result_adds_up_by_hand(searching: Searching, question: str) -> None:
    results = ask(searching, question, limit=50).results
    for result in results:
        explain = explained(result)
        assert explain.relevance_score == pytest.approx(
            ((explain.vector_similarity or 0) + explain.keyword_score) / 2, abs=1e-12
        )
        assert explain.governance_score == pytest.approx(sum(part.contribution for part in explain.governance))
        for part in explain.governance:
            assert part.contribution == pytest.approx(part.weight * part.value * part.confidence, abs=1e-12)
        assert result.final_score == pytest.approx(
            0.75 * explain.relevance_score + 0.25 * explain.governance_score, abs=1e-12
        )
    assert_in_order(results)
    ranks = sorted(
        (explained(result).vector_rank or 0, -(explained(result).vector_similarity or 0)) for result in results
    )
    assert [rank for rank, _ in ranks] == list(range(1, len(results) + 1))
    assert [similarity for _, similarity in ranks] == sorted(similarity for _, similarity in ranks)


def assert_in_order(results: tuple[Result, ...]) -> None:
    keys = [(result.pinned is None, -result.final_score, result.id) for result in results]
    assert keys == sorted(keys)
    assert [result.rank for result in results] == list(range(1, len(results) + 1))


def test_origins_confidences_and_warnings_are_told(searching: Searching) -> None:
    by_id = {result.id: result for result in ask(searching, "net total", limit=50).results}
    cart = {part.signal: part for part in explained(by_id["t.cart"]).governance}
    assert cart["critical_data_element"].origin == "custom field 'CDE'"
    assert (cart["critical_data_element"].confidence, cart["data_quality"].value) == (0.8, 0.8)
    assert cart["certification"].origin == "absent"
    assert by_id["t.orders_copy"].warnings == ("violated",)
    assert by_id["t.stock"].warnings == ("expired",)
    assert by_id["r.net"].warnings == ("cautioned",)
    assert by_id["t.tax"].warnings == ()


def test_the_matched_chunk_is_the_one_that_answers(searching: Searching) -> None:
    for word in ("zaaak", "zajik"):
        by_id = {result.id: result for result in ask(searching, f"{word} rule", limit=50).results}
        matched = by_id["t.stock"].matched
        assert matched is not None
        assert word in matched.text


@pytest.mark.parametrize(
    ("query", "pinned"),
    [
        ("orders", ["t.orders"]),
        ("Order  LINES", ["t.orders"]),
        ("orders-copy", ["t.orders_copy"]),
        ("net total", ["r.net", "g.net"]),
        ("order lines of", []),
    ],
)
def test_an_asset_whose_name_is_the_whole_query_comes_first(
    searching: Searching, query: str, pinned: list[str]
) -> None:
    answer = ask(searching, query)
    assert [result.id for result in answer.results if result.pinned] == pinned
    assert [result.id for result in answer.results[: len(pinned)]] == pinned
    assert all(result.pinned in (None, "exact name") for result in answer.results)


def test_a_pin_holds_however_few_candidates_are_kept_and_can_be_turned_off(world: World) -> None:
    with world.searching() as pinning:
        assert ask(pinning, "cart", limit=1, candidate_limit=1).results[0].id == "t.cart"
    with world.searching(pin=False) as plain:
        results = ask(plain, "net total").results
        assert all(result.pinned is None for result in results)
        assert_in_order(results)


def test_limits_are_kept_and_a_limit_above_the_candidates_raises_them(searching: Searching) -> None:
    assert len(ask(searching, "net total", limit=3).results) == 3
    assert len(ask(searching, "net total", limit=11, candidate_limit=1).results) == 11
    few = ask(searching, "net total", limit=2, candidate_limit=2).results
    relevant = sorted(
        ask(searching, "net total", limit=50).results,
        key=lambda result: (result.pinned is None, -explained(result).relevance_score, result.id),
    )
    assert {result.id for result in few} == {result.id for result in relevant[:2]}


@pytest.mark.parametrize("mode", list(Mode))
def test_asking_twice_gives_the_same_order_and_the_same_numbers(searching: Searching, mode: Mode) -> None:
    for question in QUESTIONS[:4]:
        first, second = (ask(searching, question, mode=mode) for _ in range(2))
        assert first.results == second.results


def test_analysis_refuses_when_nothing_is_relevant_and_discovery_does_not(world: World, searching: Searching) -> None:
    nonsense = "xyzzy plugh frobnicate"
    with world.searching(min_relevance=0.95) as strict:
        refused = ask(strict, nonsense, mode=Mode.ANALYSIS)
        assert (refused.results, refused.refusal is not None) == ((), True)
        assert refused.refusal is not None
        assert refused.refusal.code == "insufficient_context"
        assert refused.refusal.ask.endswith("?")
        assert ask(strict, nonsense).refusal is None
        assert ask(strict, nonsense, mode=Mode.ANALYSIS, min_relevance=0.0).results
        assert ask(strict, "orders", mode=Mode.ANALYSIS, min_relevance=0.5).refusal is None
    assert ask(searching, "net total", mode=Mode.ANALYSIS, min_relevance=1.0).refusal is not None


def test_an_empty_question_browses_in_discovery_and_is_refused_in_analysis(searching: Searching) -> None:
    for query in ("", "   "):
        answer = ask(searching, query, limit=50)
        assert len(answer.results) == len(CATALOG)
        names = [(result.name.lower(), result.id) for result in answer.results]
        assert names == sorted(names)
        assert all(result.matched is None for result in answer.results)
        with pytest.raises(InvalidRequest, match="query: is empty"):
            ask(searching, query, mode=Mode.ANALYSIS)


@pytest.mark.parametrize("query", ["\x00", "?!...", "'; DROP TABLE asset; --", "%s {x}", "数据", "x" * 16_000])
def test_odd_questions_are_answered(searching: Searching, query: str) -> None:
    assert ask(searching, query).index_version == 1


def test_a_question_that_is_too_long_is_refused_with_its_size(searching: Searching) -> None:
    with pytest.raises(InvalidRequest, match="query: has 16385 bytes"):
        ask(searching, "x" * 16_385)


def test_filters_and_types_reach_the_candidates(searching: Searching) -> None:
    found = ask(searching, "stock", object_types=("file",), filters=Filters(tag=("stock",)))
    assert [result.id for result in found.results] == ["f.stock"]


def test_an_index_of_another_model_is_named(world: World) -> None:
    other = World(world.uri, world.folder, HashEmbedder(model_id="other"))
    with other.searching() as searching, pytest.raises(ModelError, match=r"built with model 'hash-bag'.*'other'"):
        ask(searching, "cart")


def test_before_the_first_refresh_there_is_no_index(database_uri: str, tmp_path: Path) -> None:
    with (
        new_world(database_uri, tmp_path).searching() as searching,
        pytest.raises(SchemaError, match="run: vouch refresh"),
    ):
        ask(searching, "cart")
