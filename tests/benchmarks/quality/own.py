"""Vouch's own rows: a set published by the real refresh, and asked through the real search, in one process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from click.testing import CliRunner

from services import wiring
from services.cli import main
from services.evaluation.golden import Ask, GoldenQuery, as_administrator, ask_all
from services.retrieval.pgvector.search import PgSearchStore
from services.retrieval.ranking import Candidate
from services.retrieval.store import Question, Scope
from services.settings import load_settings
from tests.benchmarks.quality.peers import EmbedTexts, peer_rankings
from tests.benchmarks.quality.sets import QualitySet
from tests.benchmarks.quality.tables import KEYWORD_ALONE, RELEVANCE, VECTOR_ALONE, QualityTable, measured

DEPTH = 10


class KeywordAlone(PgSearchStore):
    """Candidates as the index gives them, their vectors taken away."""

    def candidates(self, version: int, question: Question, scope: Scope) -> list[Candidate]:
        hits = super().candidates(version, question, scope)
        return [replace(hit, best_cosine=None, mean_cosine=None) for hit in hits]


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
    """The ways of asking, by the row that they fill: each wired as always, but for the store of the lone signals."""
    settings = load_settings()
    embedder = wiring.query_embedder(settings)  # one for all, so that each question is embedded once
    stores = {KEYWORD_ALONE: KeywordAlone, VECTOR_ALONE: VectorAlone, RELEVANCE: PgSearchStore}
    with ExitStack() as opened:
        ways: dict[str, Ask] = {}
        for way, store in stores.items():
            with (
                patch.object(wiring, "PgSearchStore", store),
                patch.object(wiring, "query_embedder", return_value=embedder),
            ):
                services = opened.enter_context(wiring.open_query_services(settings))
            ways[way] = as_administrator(services.search.search)
        yield ways


def _ranked(query: GoldenQuery, ask: Ask) -> tuple[str, ...]:
    (judged,) = ask_all((query,), ask, sources=(), depth=DEPTH)
    return judged.ranked
