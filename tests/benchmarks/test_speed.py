"""What a search costs beside plainer ways over the same rows, with the same query embedder, in the same run.

Assets are synthetic (`synthetic.py`); the CPU of embedding a query is that of the real model. Sizes come from
BENCH_SIZES (default "10000,100000"); above 100,000 they are multiples of it, made by copying (`multiplying.py`).
BENCH_HOME names a folder whose filled databases are kept and used again; BENCH_QUESTIONS (default 200) are asked.
Numbers are printed and written to build/benchmarks/; what is asserted is that all were answered.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import psutil
import psycopg
import pytest

from services import wiring
from services.embedded import EmbeddedServer
from services.index.pgvector.database import PgDatabase
from services.index.pgvector.migrations import migrate
from services.index.store import Vectors
from services.logs import configure_logging
from services.retrieval.keyword import KeywordQuery
from services.retrieval.model import Filters
from services.retrieval.pgvector.search import SESSION, PgSearchStore
from services.retrieval.ranking import vector_similarity
from services.retrieval.search import POOL_FACTOR, POOL_LEAST
from services.retrieval.store import Question, Scope
from services.retrieval.visibility import Visibility
from services.settings import Settings
from tests.benchmarks.exact import StoredVectors, best, recall, stored_vectors
from tests.benchmarks.filling import VERSION, fill
from tests.benchmarks.measuring import Subject, ask_all, keep, printed, table
from tests.benchmarks.multiplying import multiplied_database
from tests.benchmarks.subjects import (
    EVERYBODY,
    TOP,
    Api,
    Backends,
    Plain,
    plain,
    prepare_plain,
    serving,
    vouch_in_process,
)
from tests.benchmarks.synthetic import SyntheticCatalog

SIZES = [int(size) for size in os.environ.get("BENCH_SIZES", "10000,100000").split(",")]
COMPOSED_AT_MOST = 100_000  # composing more takes hours, and FAISS builds its graph of more for many minutes
WARM_UP, QUESTIONS = 20, int(os.environ.get("BENCH_QUESTIONS", "200"))
REQUESTS_PER_LOAD = 300
CLIENTS = (1, 4, 16)
LIMIT = 10


@dataclass(frozen=True)
class Filled:
    """A database that holds a catalog, and a home with the model of queries."""

    uri: str
    home: Path
    catalog: SyntheticCatalog
    composed: int  # assets; the others are copies of these with their vectors moved

    @property
    def described(self) -> str:
        assets = f"{self.catalog.assets:,} synthetic assets"
        if self.catalog.assets == self.composed:
            return assets
        return f"{assets} ({self.catalog.assets // self.composed} copies of {self.composed:,} with vectors moved)"

    def questions(self, first: int, count: int) -> list[str]:
        """Different for every range: a question asked twice would find its vector remembered."""
        return [self.catalog.question(number) for number in range(first, first + count)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    configure_logging("warning")
    kept = os.environ.get("BENCH_HOME")
    server = EmbeddedServer(Path(kept) if kept else tmp_path_factory.mktemp("speed"))
    ran_before = server.running()
    server.start()
    yield server
    if not ran_before:
        server.stop()


@pytest.fixture(params=SIZES)
def filled(request: pytest.FixtureRequest, server: EmbeddedServer) -> Filled:
    size: int = request.param
    composed = min(size, COMPOSED_AT_MOST)
    uri = _composed(server, composed)
    if size > composed:
        copies, rest = divmod(size, composed)
        assert rest == 0, f"{size} of BENCH_SIZES is no multiple of {composed}"
        multiplied_database(server, f"speed_{composed}", f"speed_{size}", copies - 1)
        uri = server.uri(f"speed_{size}")
        migrate(uri)
    return Filled(uri, server.home, SyntheticCatalog(size), composed)


def _composed(server: EmbeddedServer, assets: int) -> str:
    """A database of as many composed assets, with what the plain hybrid needs."""
    name = f"speed_{assets}"
    server.ensure_database(name)
    uri = server.uri(name)
    migrate(uri)
    with psycopg.connect(uri, options="-c search_path=vouch,public") as connection:
        (graph,) = connection.execute("SELECT to_regclass(%s)", [f"embedding_{VERSION}_ann"]).fetchone() or (None,)
    if graph is None:
        fill(uri, SyntheticCatalog(assets))
    prepare_plain(uri)
    return uri


def test_speed(filled: Filled) -> None:
    stored = stored_vectors(filled.uri)
    warm_up, questions = filled.questions(0, WARM_UP), filled.questions(WARM_UP, QUESTIONS)
    asked = WARM_UP + QUESTIONS + len(CLIENTS) * REQUESTS_PER_LOAD
    with ExitStack() as stack:
        api = stack.enter_context(serving(filled.uri, filled.home, filled.catalog, asked))
        subjects, base = _subjects(stack, filled, api, stored)
        answered: dict[str, list[int]] = {}
        for subject in subjects[:2]:
            subject.answer = _counted(subject.answer, answered.setdefault(subject.name, []))
        ask_all(subjects, warm_up, questions)
        loads = [_load(api, filled, clients, place) for place, clients in enumerate(CLIENTS)]
    rows = table(subjects, base)
    size, chunks = filled.catalog.assets, len(stored.keys)
    print(f"\n{filled.described}, {chunks:,} chunks, {len(questions)} questions, HNSW ef 100, top {TOP}")
    print(printed(rows))
    for load in loads:
        print("HTTP, {clients:2} clients: {requests_per_second:6.1f} requests/s, {failures} failures".format(**load))
    about = {"assets": size, "composed": filled.composed, "chunks": chunks, "processors": psutil.cpu_count()}
    kept = {**about, "questions": len(questions), "at": datetime.now(UTC).isoformat(), "rows": rows, "loads": loads}
    print(f"written to {keep(f'speed-{size}', kept)}")
    assert all(counts == [LIMIT] * (WARM_UP + QUESTIONS) for counts in answered.values())
    assert [load["failures"] for load in loads] == [0] * len(CLIENTS)


def _subjects(stack: ExitStack, filled: Filled, api: Api, stored: StoredVectors) -> tuple[list[Subject], Subject]:
    """All ways, and the one that the others are held against: embedding and the graph index alone."""
    settings = Settings(home=filled.home)
    vector = filled.catalog.query_vector

    def embedding() -> Callable[[str], Vectors]:
        """Vectors at the price of the real model, by an embedder that has not seen a question yet."""
        real = wiring.query_embedder(settings)

        def embed(question: str) -> Vectors:
            real.embed_query(question)
            return vector(question)

        return embed

    def opened(name: str, embed: Callable[[str], Vectors]) -> tuple[Plain, Backends]:
        return stack.enter_context(plain(filled.uri, name, embed)), Backends(filled.uri, name)

    hybrid, hybrid_pids = opened("bench-hybrid", embedding())
    embedded, embedded_pids = opened("bench-embedded", embedding())
    raw, raw_pids = opened("bench-raw", vector)
    questions = filled.questions(WARM_UP, QUESTIONS)
    wanted = [stored.nearest_chunks(vector(question), TOP) for question in questions]
    in_process = stack.enter_context(vouch_in_process(filled.uri, filled.home, filled.catalog))
    in_process.recall = _vouch_recall(filled, stored)
    base = Subject("embedding + raw HNSW", embedded.nearest, embedded_pids, _raw_recall(raw, stored, questions, wanted))
    subjects = [
        in_process,
        Subject("Vouch, over HTTP", stack.enter_context(api.client()).results, api.pids, in_process.recall),
        Subject("plain hybrid (HNSW + full text, RRF)", hybrid.hybrid, hybrid_pids, base.recall),
        base,
        Subject("raw HNSW", raw.nearest, raw_pids, base.recall),
    ]
    if filled.catalog.assets <= COMPOSED_AT_MOST:
        graph = _faiss_graph(stored.vectors)

        def faiss_nearest(question: str) -> Any:
            return graph.search(vector(question)[None], TOP)[1][0]

        found = recall(map(faiss_nearest, questions), wanted)
        subjects.append(Subject("FAISS HNSW, one thread", faiss_nearest, recall=found))
    for question in (*filled.questions(0, WARM_UP), *questions):
        vector(question)  # remembered: what the synthetic part costs is not to count
    return subjects, base


def _faiss_graph(vectors: Vectors) -> Any:
    graph = faiss.IndexHNSWFlat(vectors.shape[1], 16, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction, graph.hnsw.efSearch = 64, 100
    graph.add(vectors)
    faiss.omp_set_num_threads(1)
    return graph


def _raw_recall(raw: Plain, stored: StoredVectors, questions: list[str], wanted: list[list[int]]) -> float:
    chunks = [{(int(stored.keys[row]), int(stored.numbers[row])) for row in rows} for rows in wanted]
    found = [{(key, number) for key, number in raw.nearest(question)} for question in questions]
    return recall(found, chunks)


def _vouch_recall(filled: Filled, stored: StoredVectors) -> float:
    """Of the vector side alone: the most similar assets of those that a search proposes when no word is known."""
    database = PgDatabase(filled.uri, session=SESSION)
    store = PgSearchStore(database, exact_scan_rows=Settings(home=filled.home).exact_scan_rows)
    scope = Scope(Visibility(store).acl_ids(EVERYBODY), True, (), Filters(), datetime.now(UTC))
    corpus = store.corpus()
    found, wanted = [], []
    for question in filled.questions(WARM_UP, QUESTIONS):
        vector = filled.catalog.query_vector(question)
        asked = Question(vector, KeywordQuery((), 0.0, ""), corpus.mean_length, max(POOL_LEAST, POOL_FACTOR * TOP))
        proposed = [item for item in store.candidates(VERSION, asked, scope) if item.best_cosine is not None]
        proposed.sort(key=lambda item: -vector_similarity(item.best_cosine or 0.0, item.mean_cosine or 0.0))
        found.append([item.asset_key for item in proposed[:TOP]])
        keys, similarities = stored.similarities(vector)
        wanted.append([int(key) for key in keys[best(similarities, TOP)]])
    database.close()
    return recall(found, wanted)


def _counted(answer: Callable[[str], Any], counts: list[int]) -> Callable[[str], Any]:
    return lambda question: counts.append(answer(question))


def _load(api: Api, filled: Filled, clients: int, place: int) -> dict[str, Any]:
    """Requests of several clients at once, each on its own connection; they share this process's time with it."""
    first = WARM_UP + QUESTIONS + place * REQUESTS_PER_LOAD
    shares = np.array_split(np.array(filled.questions(first, REQUESTS_PER_LOAD)), clients)

    def run(share: Any) -> int:
        with api.client() as client:
            return sum(client.search(str(question))[0] != HTTPStatus.OK for question in share)

    started = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        failures = sum(pool.map(run, shares))
    seconds = time.perf_counter() - started
    return {"clients": clients, "requests_per_second": REQUESTS_PER_LOAD / seconds, "failures": failures}
