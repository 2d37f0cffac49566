"""Vouch's own rows: a set published by the real refresh, and asked through the real search, in one process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from click.testing import CliRunner

from services.cli import main
from services.evaluation.golden import Ask, GoldenQuery, as_administrator, ask_all
from services.retrieval.abbreviations import load_abbreviations
from services.retrieval.pgvector.search import SESSION, PgSearchStore
from services.retrieval.pgvector.words import PgWordStore
from services.retrieval.ranking import Candidate
from services.retrieval.search import SearchService, SearchSettings
from services.retrieval.store import Question, Scope
from services.retrieval.visibility import Visibility
from services.retrieval.words import QueryReader
from services.settings import load_settings
from services.wiring import PgDatabase, database_uri, now, open_query_services, query_embedder, trust_rules
from tests.benchmarks.quality.peers import EmbedTexts, peer_rankings
from tests.benchmarks.quality.sets import QualitySet
from tests.benchmarks.quality.tables import KEYWORD_ALONE, RELEVANCE, VECTOR_ALONE, QualityTable, measured

DEPTH = 10


class KeywordAlone(PgSearchStore):
    """Candidates as the index gives them, their vectors taken away."""

    def candidates(self, version: int, question: Question, scope: Scope) -> list[Candidate]:
        return [replace(hit, best_cosine=None) for hit in super().candidates(version, question, scope)]


class VectorAlone(PgSearchStore):
    """Candidates as the index gives them, their words and names taken away."""

    def candidates(self, version: int, question: Question, scope: Scope) -> list[Candidate]:
        hits = super().candidates(version, question, scope)
        return [replace(hit, matched_idf=0.0, named=False, called=False) for hit in hits]


def measured_table(chosen: QualitySet, embed: EmbedTexts) -> QualityTable:
    """Publish the set into the configured index, and measure peers and Vouch on it."""
    refreshed(chosen)
    rows: dict[str, dict[str, float]] = {}
    questions = [query.question for query in chosen.queries]
    for kind, texts in chosen.texts.items():
        for method, rankings in peer_rankings(texts, questions, embed).items():
            rows[f"{method}, {kind}"] = measured(chosen.queries, rankings)
    with _asking() as ways:
        found: dict[str, list[tuple[str, ...]]] = {way: [] for way in ways}
        for query in chosen.queries:  # all ways before the next question: its vector is then remembered
            for way, ask in ways.items():
                found[way].append(_ranked(query, ask))
    rows.update({way: measured(chosen.queries, rankings) for way, rankings in found.items()})
    return QualityTable(chosen.name, len(chosen.queries), rows)


def refreshed(chosen: QualitySet) -> dict[str, Any]:
    """Publish the set; composed anew, because what an older checkout published may still be there."""
    arguments = ["refresh", "--jsonl", str(chosen.assets_file), "--name", chosen.name, "--full", "--json"]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    report: dict[str, Any] = json.loads(result.stdout)
    assert report["total"]["quarantined"] == 0
    return report


@contextmanager
def _asking() -> Iterator[dict[str, Ask]]:
    """The ways of asking, by the row that they fill."""
    settings = load_settings()
    database = PgDatabase(database_uri(settings), session=SESSION)
    embedder, rules = query_embedder(settings), trust_rules(settings)
    reader = QueryReader(PgWordStore(database), load_abbreviations())
    answers = SearchSettings(min_relevance=0.0, pin_exact_names=False)

    def alone(store: PgSearchStore) -> Ask:
        return as_administrator(SearchService(store, reader, Visibility(store), embedder, rules, answers, now).search)

    try:
        with open_query_services(settings) as services:
            yield {
                KEYWORD_ALONE: alone(KeywordAlone(database, exact_scan_rows=settings.exact_scan_rows)),
                VECTOR_ALONE: alone(VectorAlone(database, exact_scan_rows=settings.exact_scan_rows)),
                RELEVANCE: as_administrator(services.search.search),
            }
    finally:
        database.close()


def _ranked(query: GoldenQuery, ask: Ask) -> tuple[str, ...]:
    (judged,) = ask_all((query,), ask, sources=(), depth=DEPTH)
    return judged.ranked
