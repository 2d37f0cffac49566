"""PostgreSQL with pgvector keeps the contracts of an index engine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import psycopg
import pytest

from services.access.principal import LOCAL_ADMINISTRATOR
from services.access.rule import AccessRule, Level
from services.embedded import EmbeddedServer
from services.evaluation.pgvector.evaluations import PgEvaluationStore
from services.index.pgvector.database import PgDatabase
from services.index.pgvector.migrations import migrate
from services.index.pgvector.stores import PgIndexStores
from services.retrieval.abbreviations import Abbreviations
from services.retrieval.keyword import KeywordQuery
from services.retrieval.model import Filters
from services.retrieval.pgvector import words
from services.retrieval.pgvector.assets import PgAssetStore
from services.retrieval.pgvector.search import SESSION, PgSearchStore
from services.retrieval.pgvector.words import PgWordStore
from services.retrieval.pgvector.worklist import PgPayloadStore, PgWorklistStore
from services.retrieval.store import Question, Scope
from services.retrieval.visibility import Visibility
from services.retrieval.words import QueryReader
from tests.contract.engine import ALWAYS_EXACT, OPEN, Engine, Hand
from tests.contract.evaluation_contract import EvaluationContract
from tests.contract.pgvector_tables import empty
from tests.contract.search_contract import SearchContract
from tests.contract.store_contract import StoreContract
from tests.contract.word_contract import WordContract
from tests.contract.worklist_contract import WorklistContract

ASKING = "asking"


@pytest.fixture(scope="module")
def migrated(postgres_server: EmbeddedServer) -> str:
    """One database for the whole suite, emptied for each test."""
    postgres_server.ensure_database("contract")
    uri = postgres_server.uri("contract")
    migrate(uri)
    return uri


@pytest.fixture
def pgvector(migrated: str) -> Iterator[Engine]:
    empty(migrated)
    writing = PgDatabase(migrated)
    reading = PgDatabase(migrated, session=SESSION)
    yield Engine(
        stores=PgIndexStores(writing),
        search_store=PgSearchStore(reading, exact_scan_rows=ALWAYS_EXACT),
        graph_search_store=PgSearchStore(reading, exact_scan_rows=0),
        asset_store=PgAssetStore(reading),
        worklist_store=PgWorklistStore(reading),
        payload_store=PgPayloadStore(reading),
        word_store=PgWordStore(reading),
        evaluation_store=PgEvaluationStore(writing),
    )
    writing.close()
    reading.close()


class TestPgvectorStore(StoreContract):
    @pytest.fixture
    def engine(self, pgvector: Engine) -> Engine:
        return pgvector


class TestPgvectorSearch(SearchContract):
    @pytest.fixture
    def engine(self, pgvector: Engine) -> Engine:
        return pgvector


class TestPgvectorWords(WordContract):
    @pytest.fixture
    def engine(self, pgvector: Engine) -> Engine:
        return pgvector


class TestPgvectorWordsAmongMany(WordContract):
    """By the statements for callers who see many assets; the tests above are of callers who see few."""

    @pytest.fixture
    def engine(self, pgvector: Engine, monkeypatch: pytest.MonkeyPatch) -> Engine:
        monkeypatch.setattr(words, "FEW_ASSETS", -1)
        return pgvector


class TestPgvectorWorklist(WorklistContract):
    @pytest.fixture
    def engine(self, pgvector: Engine) -> Engine:
        return pgvector


class TestPgvectorEvaluation(EvaluationContract):
    @pytest.fixture
    def engine(self, pgvector: Engine) -> Engine:
        return pgvector


class TestPgvectorAlone:
    """What only this engine does."""

    def test_the_graph_index_answers_wide_questions_and_narrow_ones_are_compared(
        self, pgvector: Engine, migrated: str
    ) -> None:
        hand = Hand(pgvector).begin()
        few = AccessRule(Level.PUBLIC, groups=("finance",))
        hand.publish(
            *(
                hand.asset(f"asset-{number}", f"word{number % 50} text{number}", access=OPEN if number % 20 else few)
                for number in range(600)
            )
        )
        assert hand.verify(exact_scan_rows=100) == {}
        question = Question(hand.embedder.embed_query("word7"), KeywordQuery((), 0.0, ""), 1.0, 20)
        rules = {rule: acl_id for _, acl_id, rule in pgvector.search_store.access_lists(0)}
        for acl_ids, walks in (((rules[OPEN], rules[few]), 1), ((rules[few],), 0)):
            scope = Scope(acl_ids, eligible_only=True, object_types=(), filters=Filters(), now=datetime.now(UTC))
            before = graph_walks(migrated)
            database = PgDatabase(migrated, session={**SESSION, "application_name": ASKING})
            found = PgSearchStore(database, exact_scan_rows=100).candidates(hand.version, question, scope)
            database.close()
            assert len(found) >= 15
            assert graph_walks(migrated) - before == walks

    def test_connections_that_died_are_replaced_before_anybody_notices(self, pgvector: Engine, migrated: str) -> None:
        hand = Hand(pgvector).begin()
        hand.publish(hand.asset("a", "text"))
        hand.verify()
        assert pgvector.search_store.corpus().assets == 1
        end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database()"
        with psycopg.connect(migrated, autocommit=True) as connection:
            connection.execute(f"{end} AND pid <> pg_backend_pid()")
        assert pgvector.search_store.corpus().assets == 1
        with psycopg.connect(migrated, autocommit=True) as connection:
            connection.execute(f"{end} AND pid <> pg_backend_pid()")
        assert hand.publish(hand.asset("b", "text")) > 0
        assert pgvector.search_store.corpus().assets == 2

    def test_a_vocabulary_of_many_pages_is_read_to_its_end(
        self, pgvector: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hand = Hand(pgvector).begin()
        known = ("customer", "invoice", "quantity")
        hand.publish(hand.asset("a", "text", postings=dict.fromkeys(known, 1.0), words={word: word for word in known}))
        monkeypatch.setattr(words, "VOCABULARY_PAGE", 1)
        reader = QueryReader(pgvector.word_store, Abbreviations({}), lambda _word: False)
        acl_ids = Visibility(pgvector.search_store).acl_ids(LOCAL_ADMINISTRATOR)
        told = reader.read("custmer invioce quantiti", 1, acl_ids).understood
        assert [item.alternatives for item in told] == [(word,) for word in known]

    def test_the_planner_knows_a_version_as_soon_as_it_is_promoted(self, pgvector: Engine, migrated: str) -> None:
        hand = Hand(pgvector).begin()
        hand.publish(*(hand.asset(f"asset-{number}", f"text {number}") for number in range(50)))
        hand.verify()
        with psycopg.connect(migrated) as connection:
            query = "SELECT reltuples FROM pg_class WHERE oid = ANY(%s::regclass[])"
            names = [f"vouch.{name}" for name in ("asset", "posting", "embedding_1", "chunk_1")]
            assert all(rows >= 50 for (rows,) in connection.execute(query, [names]))


def graph_walks(uri: str) -> int:
    """How often the graph index was searched; a server process tells what it counted when it ends."""
    with psycopg.connect(uri, autocommit=True) as connection:
        busy = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
        while connection.execute(busy, [ASKING]).fetchone() != (0,):
            time.sleep(0.01)
        query = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'embedding_1_ann'"
        return int((connection.execute(query).fetchone() or (0,))[0])
