"""Runs of the golden queries, and their baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import Connection
from psycopg.types.json import Json, Jsonb

from services.catalog.model import asset_key
from services.evaluation.quality import Decision, EvaluationStatus, QueryOutcome
from services.evaluation.store import Decide, Evaluation, PastEvaluation, PastQuery
from services.index.pgvector.database import PgDatabase, Row
from services.sql_files import load_queries

QUERIES = load_queries("pgvector/queries/evaluation.sql")


class PgEvaluationStore:
    """See `services.evaluation.store.EvaluationStore`."""

    def __init__(self, database: PgDatabase) -> None:
        self._database = database

    def eligible(self, asset_ids: Sequence[str]) -> Mapping[str, bool]:
        with self._database.transaction() as connection:
            row = {"keys": [asset_key(asset_id) for asset_id in asset_ids]}
            return {found["id"]: found["eligible"] for found in connection.execute(QUERIES["golden_eligible"], row)}

    def record(self, evaluation: Evaluation, decide: Decide, kept: int) -> Decision:
        row = _outcome_row(evaluation)
        with self._database.transaction() as connection:
            # Who decides by the baseline must be the only one to move it until this ends.
            connection.execute("LOCK golden_baseline IN SHARE ROW EXCLUSIVE MODE")
            decision = decide(_baselines(connection, row))
            connection.execute(QUERIES["golden_add"], _evaluation_row(evaluation, decision))
            connection.execute(QUERIES["golden_add_outcomes"], row)
            connection.execute(QUERIES["golden_set_baselines"], {**row, "raised": list(decision.raised)})
            connection.execute(QUERIES["golden_trim"], {"kept": kept})
            connection.execute(QUERIES["golden_trim_baselines"])
        return decision

    def recent(self, limit: int) -> tuple[PastEvaluation, ...]:
        with self._database.snapshot() as connection:
            runs = connection.execute(QUERIES["golden_recent"], {"limit": limit}).fetchall()
            wanted = {"evaluation_ids": [run["evaluation_id"] for run in runs]}
            queries: dict[str, list[PastQuery]] = {}
            for row in connection.execute(QUERIES["golden_outcomes"], wanted):
                queries.setdefault(row.pop("evaluation_id"), []).append(PastQuery(**row))
        return tuple(
            PastEvaluation(
                **{
                    **run,
                    "status": EvaluationStatus(run["status"]),
                    "fallen": tuple(run["fallen"]),
                    "queries": tuple(queries.get(run["evaluation_id"], ())),
                }
            )
            for run in runs
        )


def _baselines(connection: Connection[Row], row: Mapping[str, Any]) -> dict[str, QueryOutcome]:
    found = connection.execute(QUERIES["golden_baselines"], row).fetchall()
    return {item["query_digest"]: QueryOutcome(item["ndcg"], item["gold_ranks"], tuple(item["top"])) for item in found}


def _evaluation_row(evaluation: Evaluation, decision: Decision) -> dict[str, Any]:
    verdict = decision.verdict
    return {
        "evaluation_id": evaluation.evaluation_id,
        "evaluated_at": evaluation.evaluated_at,
        "index_version": evaluation.index_version,
        "question_set": evaluation.question_set,
        "status": decision.status.value,
        "measures": Json(dict(evaluation.measures)),
        "compared": verdict.compared,
        "ndcg_before": verdict.ndcg_before,
        "ndcg_after": verdict.ndcg_after,
        "fallen": [query.qid for query in verdict.fallen],
    }


def _outcome_row(evaluation: Evaluation) -> dict[str, Any]:
    answered = evaluation.answered
    return {
        "evaluation_id": evaluation.evaluation_id,
        "digests": [query.digest for query in answered],
        "qids": [query.qid for query in answered],
        "ndcgs": [query.outcome.ndcg for query in answered],
        "gold_ranks": [Json(dict(query.outcome.gold_ranks)) for query in answered],
        "tops": [Jsonb(list(query.outcome.top)) for query in answered],
    }
