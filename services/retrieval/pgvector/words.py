"""Words in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from services.index.pgvector.access_lists import id_array
from services.index.pgvector.database import PgDatabase
from services.retrieval.words import LookUp, TermFacts
from services.sql_files import load_queries

QUERIES = load_queries("pgvector/queries/words.sql")
GLOSSARY_LIMIT = 50  # glossary terms for one query
VOCABULARY_PAGE = 50_000  # words; a whole vocabulary in one statement might not come within the time limit, ever


class PgWordStore:
    """See `services.retrieval.words.WordStore`."""

    def __init__(self, database: PgDatabase) -> None:
        self._database = database

    def look_up(self, terms: Sequence[str], phrases: Sequence[str], acl_ids: Sequence[int]) -> LookUp:
        row = {
            "terms": list(terms),
            "phrases": list(phrases),
            "acl_ids": id_array(tuple(acl_ids)),
            "limit": GLOSSARY_LIMIT,
        }
        found = self._database.read(QUERIES["look_up"], row)
        return LookUp(
            terms={item["term"]: TermFacts(item["assets"], item["visible"]) for item in found if item["term"]},
            glossary=[item["names"] for item in found if item["names"]],
        )

    def vocabulary(self, after_seq: int) -> Sequence[tuple[int, str, str]]:
        rows = self._database.read(QUERIES["vocabulary_since"], {"seq": after_seq, "limit": VOCABULARY_PAGE})
        return [(row["seq"], row["word"], row["term"]) for row in rows]

    def visible_words(self, words: Iterable[tuple[str, str]], acl_ids: Sequence[int]) -> frozenset[str]:
        given = list(words)
        row = {
            "words": [word for word, _ in given],
            "terms": [term for _, term in given],
            "acl_ids": id_array(tuple(acl_ids)),
        }
        return frozenset(found["word"] for found in self._database.read(QUERIES["visible_words"], row))
