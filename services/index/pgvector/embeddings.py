"""The vector cache, index versions, and the publishing of drafts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from psycopg import Connection, sql

from services.index.identity import ModelIdentity
from services.index.pgvector.database import Database, Row
from services.index.pgvector.runs import fenced
from services.index.store import Vectors
from services.sql_files import load_queries

DRAFTS = load_queries("pgvector/queries/drafts.sql")
PUBLISH = load_queries("pgvector/queries/publish.sql")
VERSIONS = load_queries("pgvector/queries/versions.sql")

# In this order: what compares with the published state runs before what changes it.
PUBLISH_STEPS = (
    ("publish_corpus", False),
    ("publish_assets", True),
    ("publish_documents", True),
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


def version_names(version: int) -> dict[str, sql.Identifier]:
    """The table names of one index version; they are made from an integer alone."""
    return {
        "embedding": sql.Identifier(f"embedding_{int(version)}"),
        "chunk": sql.Identifier(f"chunk_{int(version)}"),
        "ann_index": sql.Identifier(_ann_index(version)),
    }


def version_query(text: str, version: int, dimension: int = 0) -> sql.Composed:
    """A statement with the names (and, where it asks, the dimension) of one index version filled in."""
    return sql.SQL(text).format(dimension=sql.Literal(int(dimension)), **version_names(version))


class PgEmbeddingStore:
    """See `services.index.store.EmbeddingStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def missing_texts(self) -> Iterator[tuple[str, int, int]]:
        with self._database.transaction() as connection, connection.cursor(name="missing_texts") as cursor:
            cursor.execute(DRAFTS["missing_texts"])
            for row in cursor:
                yield row["source"], row["asset_key"], row["texts"]

    def cached_texts(self) -> Mapping[str, int]:
        with self._database.transaction() as connection:
            return {row["source"]: row["texts"] for row in connection.execute(DRAFTS["cached_texts"])}

    def texts(self, source: str, first_key: int, last_key: int) -> dict[str, str]:
        row = {"source": source, "first_key": first_key, "last_key": last_key}
        with self._database.transaction() as connection:
            return {found["content_hash"]: found["text"] for found in connection.execute(DRAFTS["texts_to_embed"], row)}

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
        row = {"keys": list(keys)}
        written = 0
        with fenced(self._database, run_id) as connection:
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


def _ensure_ann_index(connection: Connection[Row], version: int, exact_scan_rows: int) -> None:
    row = connection.execute(VERSIONS["ann_index_exists"], {"name": _ann_index(version)}).fetchone()
    if row is not None and row["present"]:
        return
    if _number(connection, version_query(VERSIONS["embedding_count"], version), "vectors") <= exact_scan_rows:
        return
    connection.execute("SET LOCAL statement_timeout = 0")
    connection.execute("SET LOCAL maintenance_work_mem = '512MB'")
    connection.execute(version_query(VERSIONS["create_ann_index"], version))


def _ann_index(version: int) -> str:
    return f"embedding_{int(version)}_ann"


def _number(
    connection: Connection[Row],
    query: str | sql.Composed,
    column: str,
    row: Mapping[str, object] | None = None,
) -> int:
    found = connection.execute(query, row).fetchone()
    return 0 if found is None else int(found[column])
