"""Stage one in PostgreSQL: candidates under the caller's access, both signals exact for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import Connection, sql

from services.access.rule import AccessRule, Level
from services.index.identity import ModelIdentity
from services.index.pgvector.access_lists import rule_of
from services.index.pgvector.database import PgDatabase, Row
from services.index.pgvector.tables import version_names
from services.retrieval.keyword import LENGTH_SHARE, SATURATION
from services.retrieval.ranking import CHUNK_DISCOUNT, Candidate
from services.retrieval.store import Corpus, Details, Question, Scope
from services.sql_files import load_queries
from services.text.clean import scrub

QUERIES = load_queries("pgvector/queries/search.sql")

# Measured on 100,000 rows: a filtered graph search needs the iterative scan, strict order loses recall, and a generic
# plan costs four times the custom one.
SESSION = {
    "hnsw.ef_search": "100",
    "hnsw.iterative_scan": "relaxed_order",
    "plan_cache_mode": "force_custom_plan",
    "max_parallel_workers_per_gather": "0",
    "random_page_cost": "1.1",
    "jit": "off",
}


class PgSearchStore:
    """See `services.retrieval.store.SearchStore`.

    Up to `exact_scan_rows` allowed vectors are compared one by one; beyond, the graph index proposes.
    """

    def __init__(self, database: PgDatabase, *, exact_scan_rows: int) -> None:
        self._database = database
        self._exact_scan_rows = exact_scan_rows

    def corpus(self) -> Corpus:
        with self._database.transaction() as connection:
            row = connection.execute(QUERIES["corpus"]).fetchone() or {}
        model = ModelIdentity(row["model_id"], row["model_revision"], row["dimension"]) if row.get("version") else None
        assets = int(row.get("assets") or 0)
        mean_length = float(row.get("total_length") or 0) / assets if assets else 0.0
        return Corpus(row.get("version"), model, assets, mean_length, row.get("data_age_seconds"))

    def frequencies(self, terms: Sequence[str]) -> Mapping[str, int]:
        with self._database.transaction() as connection:
            rows = connection.execute(QUERIES["term_frequencies"], {"terms": list(terms)})
            return {row["term"]: row["assets"] for row in rows}

    def access_lists(self, after_seq: int) -> Sequence[tuple[int, int, AccessRule]]:
        with self._database.transaction() as connection:
            rows = connection.execute(QUERIES["acl_since"], {"seq": after_seq}).fetchall()
        return [(row["seq"], row["acl_id"], rule_of(row)) for row in rows]

    def candidates(self, version: int, question: Question, scope: Scope) -> list[Candidate]:
        row = {**_scope_row(scope), **_question_row(question)}
        with self._database.transaction() as connection:
            exact = self._may_scan(connection, version, row)
            hits = _statement("vector_hits_exact" if exact else "vector_hits_ann", version)
            found = connection.execute(_statement("candidates", version, vector_hits=hits), row).fetchall()
        return [_candidate(item) for item in found]

    def browse(self, scope: Scope, limit: int) -> list[Candidate]:
        row = {**_scope_row(scope), "pool": limit}
        with self._database.transaction() as connection:
            return [_candidate(item) for item in connection.execute(_statement("browse", 0), row)]

    def details(self, version: int, hits: Sequence[Candidate], acl_ids: Sequence[int]) -> Mapping[int, Details]:
        row = {
            "keys": [hit.asset_key for hit in hits],
            "chunk_numbers": [hit.chunk_number for hit in hits],
            "acl_ids": list(acl_ids),
        }
        with self._database.transaction() as connection:
            found = connection.execute(_statement("details", version), row).fetchall()
        return {item["asset_key"]: _details(item) for item in found}

    def _may_scan(self, connection: Connection[Row], version: int, row: Mapping[str, Any]) -> bool:
        counted = connection.execute(
            _statement("visible_vectors", version), {**row, "count_limit": self._exact_scan_rows + 1}
        ).fetchone()
        return counted is not None and int(counted["vectors"]) <= self._exact_scan_rows


def _statement(name: str, version: int, **parts: sql.Composed) -> sql.Composed:
    fragments = {"allowed": sql.SQL(QUERIES["allowed"]), "matched_idf": sql.SQL(QUERIES["matched_idf"])}
    return sql.SQL(QUERIES[name]).format(**fragments, **version_names(version), **parts)


def _scope_row(scope: Scope) -> dict[str, Any]:
    filters = scope.filters
    return {
        "acl_ids": list(scope.acl_ids),
        "eligible_only": scope.eligible_only,
        "now": scope.now,
        "object_types": list(scope.object_types) or None,
        "sources": _folded(filters.source),
        "tags": _folded(filters.tag),
        "glossary_terms": _folded(filters.term),
        "domains": _folded(filters.domain),
        "owners": _folded(filters.owner),
        "data_products": _folded(filters.data_product),
        "workspaces": _folded(filters.workspace),
        "certifications": [str(status) for status in filters.certification] or None,
        "classifications": [int(Level[name.upper()]) for name in filters.classification] or None,
        "critical": filters.critical_data_element,
        "min_curation_score": filters.min_curation_score,
        "min_data_quality": filters.min_data_quality,
    }


def _folded(words: Sequence[str]) -> list[str] | None:
    return [scrub(word)[0].casefold() for word in words] or None


def _question_row(question: Question) -> dict[str, Any]:
    terms = question.keywords.terms
    return {
        "vector": question.vector,
        "query_terms": [term.term for term in terms],
        "groups": [term.group for term in terms],
        "idfs": [term.idf for term in terms],
        "discounts": [term.discount for term in terms],
        "rare": [term.rare for term in terms],
        "whole_query": [question.keywords.whole_query] if question.keywords.whole_query else [],
        "mean_length": question.mean_length or 1.0,
        "saturation": SATURATION,
        "length_share": LENGTH_SHARE,
        "chunk_discount": CHUNK_DISCOUNT,
        "pool": question.pool_size,
    }


def _candidate(row: Row) -> Candidate:
    return Candidate(
        asset_key=row["asset_key"],
        id=row["id"],
        named=row["named"],
        called=row["called"],
        best_cosine=row["best_cosine"],
        chunk_count=row["chunk_count"],
        chunk_number=row["chunk_number"],
        matched_idf=row["matched_idf"],
        signals=row["signals"],
        curation_score=row["curation_score"],
        eligible=row["eligible"],
        shape=row["shape"],
        siblings=tuple(row["siblings"]),
    )


def _details(row: Row) -> Details:
    matched = None if row["matched_text"] is None else (row["matched_section"], row["matched_text"])
    return Details(
        object_type=row["object_type"],
        name=row["name"],
        title=row["title"],
        location=tuple(row["location"]),
        url=row["url"],
        eligibility_reasons=tuple(row["eligibility_reasons"]),
        matched=matched,
    )
