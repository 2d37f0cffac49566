"""The part of the wiring that measures quality."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from services.evaluation.check import QualityCheck
from services.evaluation.golden import as_administrator
from services.evaluation.pgvector.evaluations import PgEvaluationStore
from services.settings import Settings
from services.wiring import index_database, now, open_query_services


@contextmanager
def open_quality_check(settings: Settings) -> Iterator[QualityCheck]:
    """Golden queries asked of the active index version, and their trend."""
    with open_query_services(settings) as services, index_database(settings) as database:
        yield QualityCheck(as_administrator(services.search.search), PgEvaluationStore(database), now)
