"""Words in PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from psycopg import sql

from services.index.pgvector.access_lists import id_array
from services.index.pgvector.database import PgDatabase, Row
from services.retrieval.pgvector.plans import CountMemory
from services.retrieval.words import LookUp, TermFacts
from services.sql_files import load_queries

QUERIES = load_queries("pgvector/queries/words.sql")
GLOSSARY_LIMIT = 50  # glossary terms for one query
VOCABULARY_PAGE = 50_000  # words; a whole vocabulary in one statement might not come within the time limit, ever
FEW_ASSETS = 5000  # who sees more than so many soon meets one of them among those that have a common word


class PgWordStore:
    """See `services.retrieval.words.WordStore`. `clock` counts seconds."""

    def __init__(self, database: PgDatabase, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._counts: CountMemory[int] = CountMemory(clock)

    def look_up(self, terms: Sequence[str], phrases: Sequence[str], acl_ids: Sequence[int]) -> LookUp:
        row = {"terms": list(terms), "phrases": list(phrases), "limit": GLOSSARY_LIMIT}
        found = self._seen("look_up", ("term_seen_among_few", "term_seen_among_many"), row, tuple(acl_ids))
        return LookUp(
            terms={item["term"]: TermFacts(item["assets"], item["visible"]) for item in found if item["term"]},
            glossary=[item["names"] for item in found if item["names"]],
        )

    def vocabulary(self, after_seq: int) -> Sequence[tuple[int, str, str]]:
        rows = self._database.read(QUERIES["vocabulary_since"], {"seq": after_seq, "limit": VOCABULARY_PAGE})
        return [(row["seq"], row["word"], row["term"]) for row in rows]

    def visible_words(self, words: Iterable[tuple[str, str]], acl_ids: Sequence[int]) -> frozenset[str]:
        given = list(words)
        row = {"words": [word for word, _ in given], "terms": [term for _, term in given]}
        found = self._seen("visible_words", ("word_seen_among_few", "word_seen_among_many"), row, tuple(acl_ids))
        return frozenset(item["word"] for item in found)

    def _seen(
        self, name: str, seen_among: tuple[str, str], row: Mapping[str, Any], acl_ids: tuple[int, ...]
    ) -> list[Row]:
        """What a statement finds that asks what the caller sees: among few assets, or among many."""
        open_to = {"acl_ids": id_array(acl_ids)}
        seen = self._counts.recall(acl_ids)
        if seen is None:
            (counted,) = self._database.read(QUERIES["seen_assets"], {**open_to, "count_limit": FEW_ASSETS + 1})
            seen = self._counts.keep(acl_ids, int(counted["seen"]))
        statement = _statement(name, *seen_among, are_few=seen <= FEW_ASSETS)
        return self._database.read(statement, {**row, **open_to, "seen": seen})


@lru_cache
def _statement(name: str, among_few: str, among_many: str, *, are_few: bool) -> bytes:
    open_assets = sql.SQL(QUERIES["open_assets"] if are_few else "")
    seen = sql.SQL(QUERIES[among_few if are_few else among_many])
    return sql.SQL(QUERIES[name]).format(open_assets=open_assets, seen=seen).as_bytes()
