"""What a search finds under narrow and wide views, held against a computation over everything the caller sees.

The index is large beside the setting that lets vectors be compared one by one, so that wide views are answered by the
graph index, narrow ones by comparison. A workspace goes with the topics of its questions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import psycopg
import pytest

from services import wiring
from services.access.principal import Principal
from services.embedded import EmbeddedServer
from services.index.pgvector.database import PgDatabase
from services.index.pgvector.migrations import migrate
from services.index.store import Vectors
from services.retrieval.keyword import LENGTH_SHARE, SATURATION, KeywordQuery
from services.retrieval.model import Filters, Mode, Result, SearchRequest
from services.retrieval.pgvector.search import PgSearchStore
from services.retrieval.ranking import Candidate, vector_similarity
from services.retrieval.search import SearchService
from services.retrieval.store import Question, Scope
from services.retrieval.visibility import Visibility
from services.settings import load_settings
from tests.benchmarks.exact import stored_vectors
from tests.benchmarks.filling import VERSION, fill
from tests.benchmarks.synthetic import SHARES, SyntheticCatalog, SyntheticEmbedder, caller

ASSETS = 12_000
EXACT_SCAN_ROWS = 60
QUESTIONS = 30
TOP = 10
LIMIT = 30
Values = npt.NDArray[np.float64]
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class View:
    """Who asks, whether within the workspace of the question's topic or of another one, and what must be found."""

    group: str
    workspace: str | None  # "own", "other" or None: everywhere
    by_graph: bool | None  # None: PostgreSQL may find comparing cheaper than the graph index it is offered
    least_recall: float

    def __str__(self) -> str:
        return f"{SHARES[self.group]:g}%" + (f" in the {self.workspace} workspace" if self.workspace else "")


VIEWS = [
    View("permille", None, by_graph=False, least_recall=0.99),
    View("percent", None, by_graph=False, least_recall=0.99),
    View("tenth", None, by_graph=True, least_recall=0.98),
    View("half", None, by_graph=True, least_recall=0.98),
    View("everybody", None, by_graph=True, least_recall=0.98),
    View("everybody", "own", by_graph=None, least_recall=0.98),
    View("everybody", "other", by_graph=None, least_recall=0.98),
]


class Everything:
    """All that is stored, and what ought to be found in it."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.vectors = stored_vectors(uri)
        with psycopg.connect(uri, options="-c search_path=vouch,public") as connection:
            rows = connection.execute(
                "SELECT asset_key, id, acl.groups, workspaces, keyword_length FROM asset JOIN acl USING (acl_id)"
                " JOIN asset_score USING (asset_key) WHERE eligible ORDER BY asset_key"
            ).fetchall()
        self.keys = np.array([row[0] for row in rows])
        self.ids = np.array([row[1] for row in rows])
        self.groups = [frozenset(row[2]) for row in rows]
        self.workspaces = [frozenset(row[3]) for row in rows]
        self.lengths = np.array([row[4] for row in rows], dtype=np.float64)

    def visible(self, group: str, workspace: str | None) -> npt.NDArray[np.bool_]:
        """Which assets the group sees in the workspace."""
        pairs = zip(self.groups, self.workspaces, strict=True)
        return np.array([group in groups and (workspace is None or workspace in spaces) for groups, spaces in pairs])

    def similarities(self, vector: Vectors) -> Values:
        keys, similarities = self.vectors.similarities(vector)
        assert (keys == self.keys).all()
        clipped: Values = np.clip(similarities, 0, 1)
        return clipped

    def relevance_scores(self, vector: Vectors, keywords: KeywordQuery) -> Values:
        """By the formulas of the design, from stored vectors and postings."""
        weights = {term.group: np.zeros(len(self.keys)) for term in keywords.terms}
        with psycopg.connect(self.uri, options="-c search_path=vouch,public") as connection:
            for term in keywords.terms:
                query = "SELECT asset_key, weight FROM posting WHERE term = %s"
                for key, weight in connection.execute(query, [term.term]):
                    weights[term.group][np.searchsorted(self.keys, key)] += term.discount * weight
        length = 1 - LENGTH_SHARE + LENGTH_SHARE * self.lengths / self.lengths.mean()
        idfs = {term.group: term.idf for term in keywords.terms}
        matched = np.zeros(len(self.keys))
        for group, weight in weights.items():
            matched += idfs[group] * weight / (weight + SATURATION * length)
        relevance: Values = (self.similarities(vector) + np.clip(matched / keywords.total_idf, 0, 1)) / 2
        return relevance

    def best_ids(self, values: Values, visible: npt.NDArray[np.bool_]) -> list[str]:
        """The visible assets with the largest values; ties by id."""
        order = np.lexsort((self.ids, -values))
        return [str(asset_id) for asset_id in self.ids[order[visible[order]][:TOP]]]

    def graph_scans(self) -> int:
        """How often the graph index was asked; all others have to be disconnected."""
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        with psycopg.connect(self.uri, autocommit=True) as connection:
            while connection.execute(f"{others} AND backend_type = 'client backend'").fetchone() != (0,):
                time.sleep(0.01)  # a server process counts when it ends
            query = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = %s"
            (scans,) = connection.execute(query, [f"embedding_{VERSION}_ann"]).fetchone() or (0,)
        return int(scans)


class AttentiveStore(PgSearchStore):
    """Remembers the last question that it was asked."""

    last_question: Question | None = None

    def candidates(self, version: int, question: Question, scope: Scope) -> list[Candidate]:
        self.last_question = question
        return super().candidates(version, question, scope)


@dataclass(frozen=True)
class Asking:
    """A search as the query API has it, and the store below it."""

    catalog: SyntheticCatalog
    store: AttentiveStore
    search: SearchService

    def results(self, question: str, principal: Principal, filters: Filters) -> tuple[tuple[Result, ...], KeywordQuery]:
        """The answer, and what it understood the question's words to be."""
        request = SearchRequest(
            query=question, mode=Mode.DISCOVERY, limit=LIMIT, filters=filters, explain=True, group_siblings=False
        )
        answer = self.search.search(request, principal, "request-1")
        assert self.store.last_question is not None
        return answer.results, self.store.last_question.keywords

    def most_similar(self, question: str, principal: Principal, filters: Filters) -> list[str]:
        """What the vector side alone proposes, most similar first."""
        scope = Scope(Visibility(self.store).acl_ids(principal), True, (), filters, NOW)
        vector = self.catalog.query_vector(question)
        asked = Question(vector, KeywordQuery((), 0.0, ""), self.store.corpus().mean_length, 100)
        found = self.store.candidates(VERSION, asked, scope)
        near = [(-vector_similarity(item.best_cosine or 0.0, item.mean_cosine or 0.0), item.id) for item in found]
        return [asset_id for _, asset_id in sorted(near)[:TOP]]


@pytest.fixture(scope="module")
def catalog() -> SyntheticCatalog:
    return SyntheticCatalog(ASSETS, brief=True)


@pytest.fixture(scope="module")
def everything(postgres_server: EmbeddedServer, catalog: SyntheticCatalog) -> Everything:
    postgres_server.ensure_database("visibility")
    uri = postgres_server.uri("visibility")
    migrate(uri)
    fill(uri, catalog)
    return Everything(uri)


@contextmanager
def asking(uri: str, home: Path, catalog: SyntheticCatalog) -> Iterator[Asking]:
    settings = load_settings(home=home, database_url=uri, exact_scan_rows=EXACT_SCAN_ROWS, statement_timeout_ms=60_000)
    stores: list[AttentiveStore] = []

    def attentive(database: PgDatabase, *, exact_scan_rows: int) -> AttentiveStore:
        stores.append(AttentiveStore(database, exact_scan_rows=exact_scan_rows))
        return stores[-1]

    with (
        patch.object(wiring, "query_embedder", lambda _settings: SyntheticEmbedder(catalog)),
        patch.object(wiring, "PgSearchStore", attentive),
        wiring.open_query_services(settings) as services,
    ):
        assert isinstance(services.search, SearchService)
        yield Asking(catalog, stores[0], services.search)


def relevance_of(result: Result) -> float:
    assert result.explain is not None
    return result.explain.relevance_score


@pytest.mark.parametrize("view", VIEWS, ids=str)
def test_a_search_finds_what_a_look_at_everything_finds(
    everything: Everything, catalog: SyntheticCatalog, tmp_path: Path, view: View
) -> None:
    shares: dict[str, list[float]] = {"relevance": [], "vectors": []}
    scans = everything.graph_scans()
    with asking(everything.uri, tmp_path, catalog) as search:
        principal = caller(view.group)
        for number in range(QUESTIONS):
            question = catalog.question(number)
            topic = catalog.topic_of(question) + (view.workspace == "other")
            workspace = catalog.workspace_of(topic) if view.workspace else None
            filters = Filters(workspace=(workspace,)) if workspace else Filters()
            visible = everything.visible(view.group, workspace)
            results, keywords = search.results(question, principal, filters)
            nearest = search.most_similar(question, principal, filters)

            found = {result.id for result in results}
            assert len(found) == len(results) == min(LIMIT, visible.sum())
            assert len(nearest) == min(TOP, visible.sum())
            assert found | set(nearest) <= set(everything.ids[visible])

            vector = catalog.query_vector(question)
            relevance = everything.relevance_scores(vector, keywords)
            told = sorted(results, key=lambda result: (-relevance_of(result), result.id))[:TOP]
            wanted = everything.best_ids(relevance, visible)
            shares["relevance"].append(share(wanted, [result.id for result in told]))
            shares["vectors"].append(share(everything.best_ids(everything.similarities(vector), visible), nearest))
    assert view.by_graph in (None, everything.graph_scans() > scans)
    recalls = {side: float(np.mean(values)) for side, values in shares.items()}
    assert min(recalls.values()) >= view.least_recall, recalls


def share(wanted: list[str], found: list[Any]) -> float:
    return len(set(wanted) & set(found)) / len(wanted)
