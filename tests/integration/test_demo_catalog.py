"""The demo's catalog from source to answer: crawled, overlaid, refreshed with the real model, and asked."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any, NoReturn
from uuid import uuid4

import numpy as np
import psycopg
import pytest
import yaml
from click.testing import CliRunner, Result
from psycopg import sql

from services.access.principal import LOCAL_ADMINISTRATOR, Principal
from services.access.rule import Level
from services.api.services import QueryServices
from services.catalog.model import Asset, ObjectType
from services.cli import main
from services.demo.catalog import DEMO_QUESTION, QUESTIONS, SHOP_DATABASE, write_demo_sources
from services.demo.database import create_demo_database
from services.embedded import EmbeddedServer
from services.errors import AssetNotFound
from services.evaluation.golden import as_administrator, ask_all, read_queries
from services.evaluation.metrics import summary
from services.index.embedder import SentenceTransformerEmbedder
from services.index.lease import local_holder
from services.index.pgvector.migrations import migrate
from services.index.pgvector.stores import PgIndexStores
from services.index.run_all import run_all
from services.retrieval.abbreviations import load_abbreviations
from services.retrieval.asset_view import AssetView
from services.retrieval.keyword import QueryTerm
from services.retrieval.model import Explanation, Filters, Mode, SearchAnswer, SearchRequest
from services.retrieval.pgvector.words import PgWordStore
from services.retrieval.words import QueryReader
from services.settings import Settings, load_settings
from services.text.tokens import query_tokens
from services.trust.governance import governance_score
from services.trust.signals import read_signals
from services.wiring import database_uri, index_database, open_query_services, open_refresh, query_embedder, trust_rules

TABLE = "postgres:table:shop."
BOOKED = TABLE + "finance.customer_revenue_monthly"
ORDERED = TABLE + "sales.customer_monthly_revenue"
IMPORTED = TABLE + "staging.monthly_customer_revenue"
MARGIN = TABLE + "finance.customer_revenue_margin"
PAYROLL = "lake:file:people/payroll_2024.parquet"
TICKETS = TABLE + "crm.support_tickets"

ANALYST = Principal("demo-analyst", clearance=Level.CONFIDENTIAL)
CONTROLLER = Principal("finance-controller", ("finance-controllers",), Level.RESTRICTED)
PEOPLE_PARTNER = Principal("people-partner", ("people-team",), Level.RESTRICTED)
PHRASINGS = (
    DEMO_QUESTION,
    "customer revenue",
    "customer revenue by month",
    "Which table should I use for customer revenue?",
    "How much revenue does each customer bring per month?",
    "monthly revenue for each customer",
    "revenue of a customer over time",
    "which customers bring the most revenue",
    "show me revenue by customer and month",
)


@dataclass(frozen=True)
class Demo:
    """The refreshed demo: its settings, the report of the first refresh, and the services that answer from it."""

    settings: Settings
    first_report: dict[str, Any]
    services: QueryServices

    def ask(self, query: str, principal: Principal = LOCAL_ADMINISTRATOR, **more: Any) -> SearchAnswer:
        request = SearchRequest.model_validate({"query": query, "explain": True, "limit": 50, **more})
        return self.services.search.search(request, principal, "test")

    def found(self, query: str, principal: Principal, **more: Any) -> list[str]:
        return [result.id for result in self.ask(query, principal, **more).results]

    def asset(self, asset_id: str, principal: Principal = LOCAL_ADMINISTRATOR) -> AssetView:
        return self.services.assets.get(asset_id, principal)


def refresh(settings: Settings) -> dict[str, Any]:
    with open_refresh(settings) as steps:
        return run_all(steps, None, full=False, dry_run=False, holder=local_holder())


@pytest.fixture(scope="module")
def demo(postgres_server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    index_name = f"index_{uuid4().hex}"
    for name in (SHOP_DATABASE, index_name):
        postgres_server.ensure_database(name)
    shop_uri, index_uri = postgres_server.uri(SHOP_DATABASE), postgres_server.uri(index_name)
    create_demo_database(shop_uri)
    migrate(index_uri)
    home = tmp_path_factory.mktemp("home")
    settings = load_settings(home=home, database_url=index_uri, sources_file=write_demo_sources(home, shop_uri))
    report = refresh(settings)
    with open_query_services(settings) as services:
        yield Demo(settings, report, services)
    with psycopg.connect(postgres_server.uri("postgres"), autocommit=True) as connection:
        for name in (SHOP_DATABASE, index_name):
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(scope="module")
def views(demo: Demo) -> dict[str, AssetView]:
    """Every asset of the demo by id, as an administrator sees it."""
    ids: list[str] = []
    for object_type in ObjectType:
        answer = demo.ask("", mode=Mode.DISCOVERY, object_types=[object_type])
        ids += [result.id for result in answer.results]
    return {asset_id: demo.asset(asset_id) for asset_id in ids}


# What is there ------------------------------------------------------------------------------------------------------


def test_has_about_a_hundred_assets_of_all_ten_types(views: dict[str, AssetView]) -> None:
    counts = Counter(view.attributes["object_type"] for view in views.values())
    assert set(counts) == set(ObjectType)
    assert min(counts.values()) >= 5
    assert (counts["table"], counts["schema"]) == (26, 5)  # the shop, crawled
    assert 90 <= len(views) <= 120


def test_nothing_is_in_quarantine(demo: Demo) -> None:
    assert demo.first_report["status"] == "succeeded"
    assert demo.first_report["total"]["quarantined"] == 0
    with index_database(demo.settings) as database:
        assert list(PgIndexStores(database).records.quarantined(100)) == []


def test_the_overlay_speaks_of_columns_that_the_tables_have(views: dict[str, AssetView]) -> None:
    """A column that only the overlay knows would have come without the type that the crawl brings."""
    for asset_id, view in views.items():
        if asset_id.startswith(TABLE):
            assert [column["name"] for column in view.attributes["columns"] if "data_type" not in column] == [], (
                asset_id
            )


def test_overlay_and_crawl_are_one_asset(views: dict[str, AssetView]) -> None:
    attributes = views[BOOKED].attributes
    assert attributes["descriptions"]["source"].startswith("Monthly revenue per customer: net amounts invoiced")
    assert attributes["data_quality_score"] == 97
    assert attributes["relationships"][0]["target"] == TABLE + "crm.customers"
    assert "jobs:code:book_customer_revenue" in attributes["lineage"]["upstream"]


def test_some_assets_are_complete_and_some_are_work(views: dict[str, AssetView]) -> None:
    scores = [view.curation_score for view in views.values()]
    assert len([score for score in scores if score < 40]) >= 10
    assert len([score for score in scores if score == 100]) >= 10


def test_a_second_refresh_writes_and_embeds_nothing(demo: Demo) -> None:
    total = refresh(demo.settings)["total"]
    done = {name: total[name] for name in ("changed", "written", "embedded", "quarantined", "missing")}
    assert set(done.values()) == {0}, done
    assert total["unchanged"] == total["seen"] == demo.first_report["total"]["seen"]


# Which table to believe ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", PHRASINGS)
@pytest.mark.parametrize("principal", [LOCAL_ADMINISTRATOR, ANALYST], ids=lambda principal: principal.user)
def test_the_certified_table_comes_first(demo: Demo, query: str, principal: Principal) -> None:
    first = demo.ask(query, principal).results[0]
    assert first.id == BOOKED
    assert first.pinned is None


@pytest.mark.parametrize("query", PHRASINGS)
def test_governance_decides_and_relevance_hardly_helps_it(demo: Demo, query: str) -> None:
    explained = {result.id: explanation(result.explain) for result in demo.ask(query).results}
    relevance = {asset_id: explained[asset_id].relevance_score for asset_id in (BOOKED, ORDERED, IMPORTED)}
    assert max(relevance.values()) - min(relevance.values()) < 0.05
    lead = relevance[BOOKED] - max(relevance[ORDERED], relevance[IMPORTED])
    assert 0.75 * lead < 0.02 * 0.25 * (0.991 - 0.213)
    governance = [explained[asset_id].governance_score for asset_id in (BOOKED, ORDERED, IMPORTED)]
    assert governance == pytest.approx([0.991, 0.213, 0])


def test_asked_by_its_whole_name_a_table_comes_first_whatever_its_trust(demo: Demo) -> None:
    first = demo.ask("monthly customer revenue").results[0]
    assert (first.id, first.pinned) == (IMPORTED, "exact name")


def test_most_golden_questions_find_their_answers(demo: Demo) -> None:
    judged = list(ask_all(read_queries(QUESTIONS), as_administrator(demo.services.search.search), sources=(), depth=10))
    quality = summary(judged, depths=(5, 10))
    assert quality["recall@5"] > 0.85
    assert quality["mrr"] > 0.75


def explanation(explain: Explanation | None) -> Explanation:
    assert explain is not None
    return explain


# Trust that ends -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "asset_id",
    [TABLE + "logistics.shipments", TABLE + "sales.product_sales_monthly", "insights:report:delivery-performance"],
)
def test_an_expired_certification_counts_nothing_and_is_warned_of(
    demo: Demo, views: dict[str, AssetView], asset_id: str
) -> None:
    certification = next(part for part in views[asset_id].governance if part.signal == "certification")
    assert (certification.value, certification.contribution) == (0, 0)
    title = views[asset_id].attributes.get("title") or views[asset_id].attributes["name"]
    result = next(result for result in demo.ask(title).results if result.id == asset_id)
    assert result.warnings == ("expired",)
    certified = Filters.model_validate({"certification": ["certified"]})
    assert asset_id not in demo.found(title, LOCAL_ADMINISTRATOR, filters=certified)
    assert TABLE + "sales.orders" in demo.found("orders", LOCAL_ADMINISTRATOR, filters=certified)


def test_the_same_certification_counted_before_it_ended(demo: Demo, views: dict[str, AssetView]) -> None:
    rules = trust_rules(demo.settings)
    signals = read_signals(Asset.model_validate(views[TABLE + "logistics.shipments"].attributes), rules)
    before, after = (
        governance_score(signals, rules, now=datetime(2024, 6, day, tzinfo=UTC)).governance_score for day in (29, 30)
    )
    assert before - after == pytest.approx(0.20)


def test_a_certification_with_a_far_end_counts(views: dict[str, AssetView]) -> None:
    parts = {part.signal: part.contribution for part in views[TABLE + "finance.invoices"].governance}
    assert parts["certification"] == pytest.approx(0.20)


# Who sees what -------------------------------------------------------------------------------------------------------


def sees(demo: Demo, asset_id: str, principal: Principal) -> bool:
    """Whether the principal gets the asset; search in both modes must agree with the look-up."""
    attributes = demo.asset(asset_id).attributes
    query = attributes.get("title") or attributes["name"]
    in_results = [asset_id in demo.found(query, principal, mode=mode, group_siblings=False) for mode in Mode]
    try:
        shown = demo.asset(asset_id, principal).attributes["id"] == asset_id
    except AssetNotFound as error:
        missing = TABLE + "finance.no_such_table"
        with pytest.raises(AssetNotFound) as never_was:
            demo.asset(missing, principal)
        assert str(error) == str(never_was.value).replace(missing, asset_id)
        shown = False
    assert in_results == [shown, shown]
    return shown


@pytest.mark.parametrize(
    ("asset_id", "principal", "visible"),
    [
        (MARGIN, ANALYST, False),
        (MARGIN, Principal("anybody", clearance=Level.RESTRICTED), True),
        (PAYROLL, CONTROLLER, False),  # cleared, but in none of its groups
        (PAYROLL, Principal("newcomer", ("people-team",), Level.CONFIDENTIAL), False),
        (PAYROLL, PEOPLE_PARTNER, True),
        ("glossary:term:salary-band", CONTROLLER, False),
        ("glossary:term:salary-band", PEOPLE_PARTNER, True),
        ("lake:file:audit/access_review_2024.csv", ANALYST, False),
        ("lake:file:audit/access_review_2024.csv", Principal("audit-reader", clearance=Level.CONFIDENTIAL), True),
        (TICKETS, Principal("sales-ops-lead", ("sales-ops",), Level.INTERNAL), True),
        (TICKETS, Principal("contract-developer", ("external-contractors",), Level.INTERNAL), False),
        ("insights:report:support-load", Principal("wallboard", clearance=Level.INTERNAL), False),
        ("insights:report:support-load", Principal("sales-ops-lead", clearance=Level.INTERNAL), True),
        ("mesh:data_product:cash-collection", Principal("sales-ops-lead", clearance=Level.INTERNAL), False),
        ("mesh:data_product:cash-collection", ANALYST, True),  # by its sensitivity, Confidential
        (BOOKED, Principal("shop-visitor"), False),
        (TABLE + "sales.product_categories", Principal("shop-visitor"), True),
    ],
)
def test_clearance_groups_users_and_denials(demo: Demo, asset_id: str, principal: Principal, visible: bool) -> None:
    assert sees(demo, asset_id, principal) is visible


def test_a_dashboard_names_the_restricted_table_only_to_those_who_see_it(demo: Demo) -> None:
    dashboard = "insights:report:revenue-overview"
    for_analyst, for_controller = demo.asset(dashboard, ANALYST), demo.asset(dashboard, CONTROLLER)
    assert BOOKED in for_analyst.attributes["lineage"]["upstream"]
    assert MARGIN not in for_analyst.attributes["lineage"]["upstream"]
    assert MARGIN in for_controller.attributes["lineage"]["upstream"]
    assert "margin" not in for_controller.narrative


def test_personal_values_are_in_no_text_and_no_list(demo: Demo) -> None:
    view = demo.asset(TABLE + "crm.customers")
    columns = {column["name"]: column for column in view.attributes["columns"]}
    assert "top_values" not in columns["city"]
    assert columns["country_code"]["top_values"]
    assert all("city" not in row and row["segment_code"] for row in view.attributes["sample_rows"])
    assert "Westhaven" not in view.narrative
    assert "HOS" in view.narrative


# The gate -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def vouch(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs a command on the demo's index, where nothing can be embedded."""

    def embeds(self: SentenceTransformerEmbedder, texts: Sequence[str]) -> NoReturn:
        raise AssertionError(f"{self.identity.model_id} was asked to embed {list(texts)}")

    monkeypatch.setattr(SentenceTransformerEmbedder, "embed_documents", embeds)
    monkeypatch.setenv("VOUCH_HOME", str(demo.settings.home))
    monkeypatch.setenv("VOUCH_DATABASE_URL", database_uri(demo.settings))

    def run(*arguments: str) -> Result:
        result = CliRunner().invoke(main, list(arguments), catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result

    return run


def test_a_threshold_of_60_takes_assets_out_of_analysis_and_0_brings_them_back(
    demo: Demo, vouch: Callable[..., Result]
) -> None:
    question = "monthly customer revenue"
    before = demo.ask(question)
    assert {BOOKED, IMPORTED} <= {result.id for result in before.results}
    preview = json.loads(vouch("gate", "evaluate", "--threshold", "60", "--dry-run", "--json").stdout)
    assert "would leave" in vouch("gate", "evaluate", "--threshold", "60", "--dry-run").stdout
    assert json.loads(vouch("gate", "history", "--json").stdout) == []

    raised = vouch("gate", "evaluate", "--threshold", "60", "--json")
    assert "holds until the next refresh, which goes back to VOUCH_GATE_THRESHOLD = 0" in raised.stderr
    report = json.loads(raised.stdout)
    assert report["changes"] == preview["changes"]
    assert report["leaving"] > 10
    assert (report["entering"], report["embedded"], report["waiting"]) == (0, 0, 0)
    assert {change["source"] for change in report["changes"]} == {"shop", "governance"}
    found = [result.id for result in demo.ask(question).results]
    assert BOOKED in found
    assert IMPORTED not in found
    (hidden,) = [item for item in demo.ask(question, mode=Mode.DISCOVERY).results if item.id == IMPORTED]
    assert hidden.explain is not None
    assert (hidden.explain.vector_similarity, hidden.explain.eligible) == (None, False)
    assert hidden.explain.keyword_score > 0

    lowered = json.loads(vouch("gate", "evaluate", "--threshold", "0", "--json").stdout)
    assert (lowered["leaving"], lowered["entering"], lowered["embedded"]) == (0, report["leaving"], 0)
    after = demo.ask(question)
    assert [(item.id, item.final_score) for item in after.results] == [
        (item.id, item.final_score) for item in before.results
    ]
    history = json.loads(vouch("gate", "history", "--limit", "1000", "--json").stdout)
    assert [item["entered"] for item in history if item["id"] == IMPORTED] == [True, False]
    assert {item["cause"] for item in history} == {"threshold"}
    assert len(history) == 2 * report["leaving"]
    shown = vouch("gate", "history", "--limit", "5").stdout
    assert "0 -> 60" in shown or "60 -> 0" in shown


def test_status_tells_how_scores_lie(demo: Demo, views: dict[str, AssetView], vouch: Callable[..., Result]) -> None:
    report = demo.services.status.status(LOCAL_ADMINISTRATOR)
    assert report.drift is not None
    assert sum(report.drift.curation_score.histogram) == sum(report.drift.governance_score.histogram) == len(views)
    complete = len([view for view in views.values() if view.curation_score >= 90])
    assert report.drift.curation_score.histogram[9] == complete
    assert "assets by score" in vouch("status").stdout


# The numbers, computed a second time --------------------------------------------------------------------------------


class Recomputed:
    """The formulas of the design over stored vectors and postings, raw metadata and the rules file."""

    def __init__(self, demo: Demo) -> None:
        self.settings, self.embedder = demo.settings, query_embedder(demo.settings)
        self.signals = yaml.safe_load((files("services") / "trust" / "rules.yaml").read_text(encoding="utf-8"))[
            "signals"
        ]
        with index_database(demo.settings) as database, database.transaction() as connection:
            vectors = connection.execute(
                "SELECT a.id, e.embedding::text AS v FROM asset a JOIN embedding_1 e USING (asset_key)"
            ).fetchall()
            postings = connection.execute(
                "SELECT a.id, p.term, p.weight::float8 AS weight FROM asset a JOIN posting p USING (asset_key)"
            ).fetchall()
            lengths = connection.execute("SELECT id, keyword_length::float8 AS length FROM asset").fetchall()
            self.acl_ids = [row["acl_id"] for row in connection.execute("SELECT acl_id FROM acl")]
        self.vectors: dict[str, list[Any]] = {}
        for row in vectors:
            self.vectors.setdefault(row["id"], []).append(np.array(json.loads(row["v"]), dtype=float))
        self.weights = {(row["id"], row["term"]): row["weight"] for row in postings}
        self.having = Counter(row["term"] for row in postings)
        self.lengths = {row["id"]: row["length"] for row in lengths}

    def vector_similarity(self, question: str, asset_id: str) -> float:
        asked = np.asarray(self.embedder.embed_query(question), dtype=float)
        cosines = [v @ asked / np.linalg.norm(v) / np.linalg.norm(asked) for v in self.vectors[asset_id]]
        return float(min(1, max(0, (max(cosines) + sum(cosines) / len(cosines)) / 2)))

    def terms(self, question: str) -> tuple[QueryTerm, ...]:
        """Which terms stand for which word is proven where queries are understood; their worth here."""
        with index_database(self.settings) as database:
            reader = QueryReader(PgWordStore(database), load_abbreviations(), lambda _word: True)
            return reader.read(question, len(self.lengths), self.acl_ids).keywords.terms

    def keyword_score(self, question: str, asset_id: str) -> float:
        count, mean = len(self.lengths), sum(self.lengths.values()) / len(self.lengths)
        words = query_tokens(question)
        groups: dict[int, list[QueryTerm]] = {}
        for term in self.terms(question):
            groups.setdefault(term.group, []).append(term)
        asked = sum(self.idf(0) / 2 for word in words if word not in {terms[0].term for terms in groups.values()})
        matched = 0.0
        for terms in groups.values():
            first, joined = terms[0], terms[0].term not in words
            assert first.discount == 1, "no word of the demo's questions is known by its alternatives alone"
            idf = self.idf(self.having[first.term]) / (4 if joined else 1)
            asked += 0 if joined else idf
            weight = sum(term.discount * self.weights.get((asset_id, term.term), 0.0) for term in terms)
            matched += idf * weight / (weight + 0.6 * (0.5 + 0.5 * self.lengths[asset_id] / mean))
        usual = 3 * math.log(1 + (count + 0.5) / 0.5)
        return min(1.0, matched / (asked if asked <= usual else usual * (asked / usual) ** (1 / 3)))

    def idf(self, having: int) -> float:
        return math.log(1 + (len(self.lengths) - having + 0.5) / (having + 0.5))

    def governance_score(self, asset: dict[str, Any], explain: Explanation) -> float:
        certification = asset.get("certification") or {}
        ends = certification.get("expires_at")
        valid = ends is None or datetime.fromisoformat(ends) > datetime.now(UTC)
        native = {
            "critical_data_element": asset.get("critical_data_element"),
            "data_quality": asset["data_quality_score"] / 100 if "data_quality_score" in asset else None,
            "certification": certification.get("status") == "certified" and valid if certification else None,
            "authoritative": asset.get("authoritative"),
        }
        total = 0.0
        for part in explain.governance:
            rule, value = self.signals[part.signal], native[part.signal]
            if asset["object_type"] not in rule["object_types"]:
                continue
            if value is not None:
                total += rule["weight"] * float(value)
            elif part.origin != "absent":  # a stand-in: what it says is proven with the trust rules, its worth here
                assert part.confidence == 0.8
                total += rule["weight"] * part.value * 0.8
        return total


@pytest.mark.parametrize("number", range(10))
def test_a_final_score_is_what_a_second_computation_gives(demo: Demo, views: dict[str, AssetView], number: int) -> None:
    question = read_queries(QUESTIONS)[number].question
    again = Recomputed(demo)
    answer = demo.ask(question, limit=10)
    assert answer.results
    for result in answer.results:
        assert result.explain is not None
        relevance = (again.vector_similarity(question, result.id) + again.keyword_score(question, result.id)) / 2
        governance = again.governance_score(views[result.id].attributes, result.explain)
        assert result.final_score == pytest.approx(0.75 * relevance + 0.25 * governance, abs=1e-6)
