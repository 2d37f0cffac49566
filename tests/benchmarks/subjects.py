"""The ways to answer a question that are measured side by side, each on connections and processes of its own."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil
import psycopg
from pgvector.psycopg import register_vector

from services import wiring
from services.access import keys
from services.access.rule import Level
from services.api.server import KEEP_ALIVE_SECONDS
from services.index.pgvector.database import PgDatabase
from services.index.pgvector.keys import PgKeyStore
from services.index.store import Vectors
from services.retrieval.model import SearchRequest
from services.settings import load_settings
from tests.benchmarks.filling import VERSION
from tests.benchmarks.measuring import Subject
from tests.benchmarks.synthetic import SyntheticCatalog, SyntheticEmbedder, caller

REPOSITORY = Path(__file__).resolve().parents[2]
TOP = 30
START_SECONDS = 180  # a first start exports the model
RANK_CONSTANT = 60  # of reciprocal rank fusion, as everybody uses it
EVERYBODY = caller("everybody")
# As the product's own sessions have it, so that no subject gains by a setting.
PLAIN_SESSION = {"search_path": "vouch,public", "hnsw.ef_search": "100", "jit": "off",
                 "max_parallel_workers_per_gather": "0", "random_page_cost": "1.1"}  # fmt: skip

PLAIN_TEXTS = f"""
    CREATE SCHEMA IF NOT EXISTS plain;
    CREATE TABLE IF NOT EXISTS plain.document (asset_key bigint PRIMARY KEY, lexemes tsvector STORAGE MAIN NOT NULL);
    INSERT INTO plain.document
        SELECT asset_key, to_tsvector('english', narrative) FROM vouch.asset_document
        WHERE asset_key NOT IN (SELECT asset_key FROM plain.document);
    CREATE INDEX IF NOT EXISTS document_lexemes ON plain.document USING gin (lexemes);
    VACUUM ANALYZE plain.document;
    VACUUM ANALYZE vouch.embedding_{VERSION}
"""
NEAREST = f"SELECT asset_key, number FROM embedding_{VERSION} ORDER BY embedding <=> %s LIMIT {TOP}"
MATCHING = f"""
    WITH asked AS MATERIALIZED (
        SELECT string_agg(quote_literal(lexeme), ' | ')::tsquery AS words FROM unnest(to_tsvector('english', %s))
    )
    SELECT asset_key FROM plain.document, asked WHERE lexemes @@ words
    ORDER BY ts_rank(lexemes, words) DESC LIMIT {TOP}
"""


def named_uri(uri: str, application: str) -> str:
    """The same database for connections that can be told from others'."""
    return f"{uri}&application_name={application}"


@dataclass(frozen=True)
class Backends:
    """The server processes of the connections of one application."""

    uri: str
    application: str

    def __call__(self) -> list[int]:
        with psycopg.connect(self.uri) as connection:
            query = "SELECT pid FROM pg_stat_activity WHERE application_name = %s"
            return [pid for (pid,) in connection.execute(query, [self.application])]


@contextmanager
def vouch_in_process(uri: str, home: Path, catalog: SyntheticCatalog) -> Iterator[Subject]:
    """The whole search as the API calls it, by the caller who sees all."""
    settings = load_settings(home=home, database_url=named_uri(uri, "bench-vouch"))
    embedder = SyntheticEmbedder(catalog, wiring.query_embedder(settings))
    with (
        patch.object(wiring, "query_embedder", lambda _settings: embedder),
        wiring.open_query_services(settings) as services,
    ):

        def answer(question: str) -> int:
            found = services.search.search(SearchRequest(query=question), EVERYBODY, "benchmark")
            return len(found.results)

        yield Subject("Vouch, in process", answer, Backends(uri, "bench-vouch"))


@dataclass
class ApiClient:
    """One client of the query API on one connection."""

    port: int
    token: str
    connection: http.client.HTTPConnection | None = None
    used_at: float = 0.0

    def search(self, question: str) -> tuple[int, Mapping[str, Any]]:
        """The status and the answer."""
        if self.connection is None or time.monotonic() - self.used_at > KEEP_ALIVE_SECONDS / 2:
            self.close()
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        head = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        self.connection.request("POST", "/v1/search", json.dumps({"query": question}), head)
        response = self.connection.getresponse()
        answer = json.loads(response.read())
        self.used_at = time.monotonic()
        return response.status, answer

    def results(self, question: str) -> int:
        status, answer = self.search(question)
        if status != http.HTTPStatus.OK:
            raise AssertionError(f"the API answers {status}: {answer}")
        return len(answer["results"])

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()


@dataclass(frozen=True)
class Api:
    """The query API in a process of its own."""

    process: subprocess.Popen[bytes]
    port: int
    token: str
    backends: Backends

    @contextmanager
    def client(self) -> Iterator[ApiClient]:
        client = ApiClient(self.port, self.token)
        try:
            yield client
        finally:
            client.close()

    def pids(self) -> list[int]:
        root = psutil.Process(self.process.pid)
        return [root.pid, *(child.pid for child in root.children(recursive=True)), *self.backends()]


@contextmanager
def serving(uri: str, home: Path, catalog: SyntheticCatalog, questions: int) -> Iterator[Api]:
    """The real server with a key of the caller who sees all; stopped afterwards."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VOUCH_")}
    environment |= {"VOUCH_HOME": str(home), "VOUCH_DATABASE_URL": named_uri(uri, "bench-api")}
    command = [sys.executable, "-m", "tests.benchmarks.speed_server", *map(str, (port, catalog.assets, questions))]
    with (home / "speed_server.log").open("w") as log:
        process = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=log, stderr=log)
    try:
        _wait_until_ready(process, port)
        yield Api(process, port, _new_key(uri), Backends(uri, "bench-api"))
    finally:
        process.terminate()
        process.wait()


def _new_key(uri: str) -> str:
    token, record = keys.create_key("everybody", ("everybody",), Level.INTERNAL, now=datetime.now(UTC))
    database = PgDatabase(uri)
    PgKeyStore(database).add(record)
    database.close()
    return token


def _wait_until_ready(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request("GET", "/readyz")
            if connection.getresponse().status == http.HTTPStatus.OK:
                return
        except OSError:
            pass  # it does not listen yet
        finally:
            connection.close()
        time.sleep(0.2)
    raise AssertionError(f"the API did not become ready; see speed_server.log (exit code {process.returncode})")


@dataclass
class Plain:
    """What one would write without Vouch: no access, no trust, no exact signals."""

    connection: psycopg.Connection[Any]
    embed: Callable[[str], Vectors]
    found: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # the nearest chunks by question

    def nearest(self, question: str) -> Sequence[tuple[int, int]]:
        """By the graph index alone, or behind the embedding of the question; `embed` decides."""
        rows = self.connection.execute(NEAREST, [self.embed(question)], binary=True).fetchall()
        self.found[question] = rows
        return rows

    def hybrid(self, question: str) -> list[int]:
        """Nearest chunks and matching texts, their ranks fused."""
        near = self.nearest(question)
        matching = self.connection.execute(MATCHING, [question], binary=True).fetchall()
        fused: dict[int, float] = {}
        for keys_in_order in (list(dict.fromkeys(key for key, _ in near)), [key for (key,) in matching]):
            for place, key in enumerate(keys_in_order, start=1):
                fused[key] = fused.get(key, 0.0) + 1 / (RANK_CONSTANT + place)
        return sorted(fused, key=lambda key: (-fused[key], key))[:10]


@contextmanager
def plain(uri: str, application: str, embed: Callable[[str], Vectors]) -> Iterator[Plain]:
    """On a connection of its own."""
    options = " ".join(f"-c {name}={value}" for name, value in PLAIN_SESSION.items())
    with psycopg.connect(named_uri(uri, application), autocommit=True, options=options) as connection:
        register_vector(connection)
        yield Plain(connection, embed)


def prepare_plain(uri: str) -> None:
    """The texts of the narratives as one would keep them for full-text search; made once."""
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute("SET maintenance_work_mem = '1GB'")
        for statement in PLAIN_TEXTS.split(";"):
            connection.execute(statement)
