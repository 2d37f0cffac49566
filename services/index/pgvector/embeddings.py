"""The vector cache, index versions, and the publishing of drafts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from psycopg import Connection, sql

from services.index.identity import ModelIdentity
from services.index.pgvector.database import Database, Row
from services.index.pgvector.history import note_published_movers
from services.index.pgvector.runs import fenced
from services.index.pgvector.scores import threshold_row, with_threshold
from services.index.pgvector.tables import ann_index_name, version_query
from services.index.store import OF_DRAFTS, Vectors, Wanted
from services.sql_files import load_queries

DRAFTS = load_queries("pgvector/queries/drafts.sql")
PUBLISH = load_queries("pgvector/queries/publish.sql")
VERSIONS = load_queries("pgvector/queries/versions.sql")

# In this order: what compares with the published state runs before what changes it.
PUBLISH_STEPS = (
    ("publish_corpus", False),
    ("publish_assets", True),
    ("publish_documents", True),
    ("publish_vocabulary", False),
    ("publish_passages", False),
    ("publish_scores", True),
    ("publish_term_stats", False),
    ("drop_postings", True),
    ("publish_postings", True),
    ("drop_embeddings", True),
    ("publish_embeddings", True),
    ("drop_chunks", True),
    ("publish_chunks", True),
    ("drop_drafts", False),
)


class PgEmbeddingStore:
    """See `services.index.store.EmbeddingStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def missing_texts(self, wanted: Wanted = OF_DRAFTS) -> Iterator[tuple[str, int, int]]:
        query, row = _wanted_query("missing_texts", wanted)
        with self._database.transaction() as connection, connection.cursor(name="missing_texts") as cursor:
            cursor.execute(query, row)
            for found in cursor:
                yield found["source"], found["asset_key"], found["texts"]

    def cached_texts(self, wanted: Wanted = OF_DRAFTS) -> Mapping[str, int]:
        query, row = _wanted_query("cached_texts", wanted)
        with self._database.transaction() as connection:
            return {found["source"]: found["texts"] for found in connection.execute(query, row)}

    def texts(self, source: str, first_key: int, last_key: int, wanted: Wanted = OF_DRAFTS) -> dict[str, str]:
        query, row = _wanted_query("texts_to_embed", wanted)
        row = {**row, "source": source, "first_key": first_key, "last_key": last_key}
        with self._database.transaction() as connection:
            return {found["content_hash"]: found["text"] for found in connection.execute(query, row)}

    def add_vectors(self, run_id: str, hashes: Sequence[str], vectors: Vectors) -> int:
        with fenced(self._database, run_id) as connection:
            connection.execute(DRAFTS["incoming_vectors_table"])
            with connection.cursor().copy(DRAFTS["incoming_vectors_copy"]) as copy:
                copy.set_types(("bytea", "vector"))
                for content_hash, vector in zip(hashes, vectors, strict=True):
                    copy.write_row((bytes.fromhex(content_hash), vector))
            return connection.execute(DRAFTS["add_vectors"]).rowcount

    def ensure_version(self, model: ModelIdentity) -> int:
        wanted = {"model_id": model.model_id, "model_revision": model.revision, "dimension": model.dimension}
        with self._database.transaction() as connection:
            connection.execute("LOCK TABLE index_version IN SHARE ROW EXCLUSIVE MODE")
            known = connection.execute(VERSIONS["version_of_model"], wanted).fetchone()
            if known is not None:
                return int(known["version"])
            version = _number(connection, VERSIONS["add_version"], "version", wanted)
            for statement in VERSIONS["create_version_tables"].split(";"):
                connection.execute(version_query(statement, version, model.dimension))
            return version

    def publish(self, run_id: str, version: int, keys: Sequence[int]) -> int:
        row = {"keys": list(keys), "run_id": run_id}
        written = 0
        with fenced(self._database, run_id) as connection:
            note_published_movers(connection, run_id, keys)
            for step, counts in PUBLISH_STEPS:
                rows = connection.execute(version_query(PUBLISH[step], version), row).rowcount
                written += rows if counts else 0
        return written

    def verify(self, run_id: str, version: int, exact_scan_rows: int) -> Mapping[str, int]:
        with fenced(self._database, run_id) as connection:
            checks = connection.execute(version_query(VERSIONS["verify_version"], version)).fetchone() or {}
            faults = {name: int(count) for name, count in checks.items() if count}
            if not faults:
                _ensure_ann_index(connection, version, exact_scan_rows)
                connection.execute(VERSIONS["retire_active"], {"version": version})
                if connection.execute(VERSIONS["promote"], {"version": version}).rowcount:
                    # The first questions come before the server has looked at its new tables by itself.
                    connection.execute(version_query(VERSIONS["analyze_version"], version))
        return faults


def _wanted_query(name: str, wanted: Wanted) -> tuple[sql.Composed, dict[str, Any]]:
    """A statement about wanted texts, and its parameters."""
    parts: list[sql.Composable] = [sql.SQL(DRAFTS["wanted_by_drafts"])] if wanted.drafts else []
    row: dict[str, Any] = {}
    if wanted.entering is not None:
        parts.append(with_threshold(DRAFTS["wanted_by_entering"], wanted.version))
        row = threshold_row(wanted.entering)
    return sql.SQL(DRAFTS[name]).format(wanted=sql.SQL(" UNION ALL ").join(parts)), row


def _ensure_ann_index(connection: Connection[Row], version: int, exact_scan_rows: int) -> None:
    row = connection.execute(VERSIONS["ann_index_exists"], {"name": ann_index_name(version)}).fetchone()
    if row is not None and row["present"]:
        return
    if _number(connection, version_query(VERSIONS["embedding_count"], version), "vectors") <= exact_scan_rows:
        return
    connection.execute("SET LOCAL statement_timeout = 0")
    connection.execute("SET LOCAL maintenance_work_mem = '512MB'")
    connection.execute(version_query(VERSIONS["create_ann_index"], version))


def _number(
    connection: Connection[Row],
    query: str | sql.Composed,
    column: str,
    row: Mapping[str, object] | None = None,
) -> int:
    found = connection.execute(query, row).fetchone()
    return 0 if found is None else int(found[column])
