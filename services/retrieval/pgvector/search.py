"""Stage one in PostgreSQL: candidates under the caller's access, both signals exact for each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from psycopg import sql

from services.access.rule import AccessRule
from services.index.identity import ModelIdentity
from services.index.pgvector.access_lists import id_array, rule_of
from services.index.pgvector.database import PgDatabase, Row
from services.index.pgvector.tables import version_names
from services.retrieval.keyword import LENGTH_SHARE, SATURATION
from services.retrieval.pgvector.plans import (
    NARROW_FACTOR,
    SAMPLED_VECTORS,
    CountMemory,
    SampledVectors,
    VisibleVectors,
)
from services.retrieval.pgvector.scope import conditions
from services.retrieval.ranking import BEST_CHUNK_SHARE, Candidate
from services.retrieval.store import Corpus, Details, Question, Scope
from services.sql_files import load_queries

QUERIES = load_queries("pgvector/queries/search.sql")

# Measured on 100,000 assets: a filtered graph search needs the iterative scan, strict order loses recall, a generic
# plan costs many times the custom one, and the memory that a memoized join sets aside costs more than the join.
SESSION = {
    "hnsw.ef_search": "100",
    "hnsw.iterative_scan": "relaxed_order",
    "plan_cache_mode": "force_custom_plan",
    "enable_memoize": "off",
    "max_parallel_workers_per_gather": "0",
    "random_page_cost": "1.1",
    "jit": "off",
}
# Chunks asked of the graph index for each asset that it shall propose. The second number is for an index whose assets
# have so many chunks each that the nearest are of a few assets alone.
CHUNKS_PER_ASSET = (1.5, 16)


class PgSearchStore:
    """See `services.retrieval.store.SearchStore`.

    Up to `exact_scan_rows` allowed vectors are compared one by one, and some more where most are hidden; beyond, the
    graph index proposes, and where it proposes too few, they are compared after all. `clock` counts seconds.
    """

    def __init__(
        self, database: PgDatabase, *, exact_scan_rows: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._exact_scan_rows = exact_scan_rows
        self._counts: CountMemory[VisibleVectors] = CountMemory(clock)

    def corpus(self) -> Corpus:
        row = next(iter(self._database.read(QUERIES["corpus"])), {})
        model = ModelIdentity(row["model_id"], row["model_revision"], row["dimension"]) if row.get("version") else None
        assets = int(row.get("assets") or 0)
        mean_length = float(row.get("total_length") or 0) / assets if assets else 0.0
        return Corpus(row.get("version"), model, assets, mean_length, row.get("data_age_seconds"))

    def access_lists(self, after_seq: int) -> Sequence[tuple[int, int, AccessRule]]:
        rows = self._database.read(QUERIES["acl_since"], {"seq": after_seq})
        return [(row["seq"], row["acl_id"], rule_of(row)) for row in rows]

    def candidates(self, version: int, question: Question, scope: Scope) -> list[Candidate]:
        asked = conditions(scope)
        row = {**asked, "now": scope.now, **_question_row(question)}
        names = tuple(asked)
        counted = self._visible_vectors(version, scope, row, names)
        if not counted.are_compared(self._exact_scan_rows):
            for chunks_per_asset in CHUNKS_PER_ASSET:
                row["chunk_limit"] = int(chunks_per_asset * question.pool_size)
                found = self._database.read(
                    _candidates(version, names, "vector_hits_graph", "keyword_hits_walked"), row
                )
                hit_assets, hit_chunks = (found[0]["hit_assets"], found[0]["hit_chunks"] or 0) if found else (0, 0)
                if hit_chunks < row["chunk_limit"]:
                    break  # a filter let too little through
                if 2 * hit_assets >= question.pool_size:
                    return [_candidate(item) for item in found]
        keyword_hits = "keyword_hits_of_few" if counted.are_few(self._exact_scan_rows) else "keyword_hits_walked"
        found = self._database.read(_candidates(version, names, "vector_hits_exact", keyword_hits), row)
        return [_candidate(item) for item in found]

    def browse(self, scope: Scope, limit: int) -> list[Candidate]:
        asked = conditions(scope)
        found = self._database.read(
            _about_assets("browse", 0, tuple(asked)), {**asked, "now": scope.now, "pool": limit}
        )
        return [_candidate(item) for item in found]

    def details(self, version: int, hits: Sequence[Candidate], acl_ids: Sequence[int]) -> Mapping[int, Details]:
        row = {
            "keys": [hit.asset_key for hit in hits],
            "chunk_numbers": [hit.chunk_number for hit in hits],
            "acl_ids": id_array(tuple(acl_ids)),
        }
        found = self._database.read(_about_assets("details", version, ()), row)
        return {item["asset_key"]: _details(item) for item in found}

    def _visible_vectors(
        self, version: int, scope: Scope, row: Mapping[str, Any], names: tuple[str, ...]
    ) -> VisibleVectors:
        key = (version, scope.acl_ids, scope.eligible_only, scope.object_types, scope.filters)
        known = self._counts.recall(key)
        if known is not None:
            return known
        limit = NARROW_FACTOR * self._exact_scan_rows + 1
        table = version_names(version)["embedding"].as_string()
        asked = {**row, "count_limit": limit, "sample_limit": SAMPLED_VECTORS, "embedding_table": table}
        (drawn,) = self._database.read(_about_assets("sampled_vectors", version, names), asked)
        sample = SampledVectors(**drawn)
        if sample.surely_exceed(limit):
            return self._counts.keep(key, VisibleVectors(limit, sample.stored))
        (counted,) = self._database.read(_about_assets("visible_vectors", version, names), asked)
        return self._counts.keep(key, VisibleVectors(**counted))


@lru_cache(maxsize=1000)
def _candidates(version: int, names: tuple[str, ...], vector_hits: str, keyword_hits: str) -> bytes:
    """The statement for candidates under the conditions of these names."""
    parts: dict[str, sql.Composable] = {name: _text(name) for name in ("group_weights", "matched_idf")}
    parts |= {**version_names(version), "allowed": _allowed(names)}
    hits = {
        "allowed_assets": _text("allowed_assets").format(**parts)
        if vector_hits == "vector_hits_exact"
        else sql.SQL(""),
        "vector_hits": _text(vector_hits).format(**parts),
        "keyword_hits": _text(keyword_hits).format(**parts),
    }
    return _text("candidates").format(**parts, **hits).as_bytes()


@lru_cache(maxsize=1000)
def _about_assets(name: str, version: int, names: tuple[str, ...]) -> bytes:
    """A statement about assets under the conditions of these names."""
    return _text(name).format(**version_names(version), allowed=_allowed(names)).as_bytes()


def _allowed(names: Sequence[str]) -> sql.Composed:
    """All of the conditions: each in parentheses, so that none of them can let in what another keeps out."""
    return sql.SQL(" AND ").join(sql.SQL("({})").format(_text(name)) for name in names)


def _text(name: str) -> sql.SQL:
    """A named query without its comments: psycopg keeps what it finds out about a statement of up to 4096 bytes."""
    return sql.SQL("\n".join(line for line in QUERIES[name].splitlines() if not line.lstrip().startswith("--")))


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
        "best_chunk_share": BEST_CHUNK_SHARE,
        "pool": question.pool_size,
    }


def _candidate(row: Row) -> Candidate:
    return Candidate(
        asset_key=row["asset_key"],
        id=row["id"],
        named=row["named"],
        called=row["called"],
        best_cosine=row["best_cosine"],
        mean_cosine=row["mean_cosine"],
        chunk_number=row["chunk_number"],
        matched_idf=row["matched_idf"],
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
        signals=row["signals"],
        curation_score=row["curation_score"],
        eligible=row["eligible"],
        eligibility_reasons=tuple(row["eligibility_reasons"]),
        matched=matched,
    )
