"""Who passed the gate, and how scores drift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import Connection, sql

from services.index.pgvector.database import Database, Row
from services.index.pgvector.runs import fenced
from services.index.trust_store import Drift, Mover, Passage, PassageCause
from services.sql_files import load_queries
from services.trust.gate import GateChange

QUERIES = load_queries("pgvector/queries/history.sql")
MOVERS_KEPT = 20  # of a run, for each kind of score


def note_movers(
    connection: Connection[Row], run_id: str, cause: str, new_scores: sql.Composable, row: Mapping[str, Any]
) -> None:
    """Keep the largest changes that the new scores of a page will make: a query of (asset_key, curation_score,
    governance_score), with its parameters. Called before they are written."""
    row = {**row, "run_id": run_id, "cause": cause, "movers_kept": MOVERS_KEPT}
    if connection.execute(sql.SQL(QUERIES["note_movers"]).format(new_scores=new_scores), row).rowcount:
        connection.execute(QUERIES["trim_movers"], row)


def note_published_movers(connection: Connection[Row], run_id: str, keys: Sequence[int]) -> None:
    """The same for a page of drafts: what their records say has changed."""
    note_movers(connection, run_id, "data", sql.SQL(QUERIES["published_scores"]), {"keys": list(keys)})


class PgHistoryStore:
    """See `services.index.trust_store.HistoryStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def passages(self, limit: int) -> tuple[Passage, ...]:
        with self._database.transaction() as connection:
            found = connection.execute(QUERIES["gate_events"], {"limit": limit}).fetchall()
        return tuple(Passage(**{**row, "cause": PassageCause(row["cause"])}) for row in found)

    def changes(self, run_id: str) -> tuple[GateChange, ...]:
        with self._database.transaction() as connection:
            found = connection.execute(QUERIES["gate_changes"], {"run_id": run_id}).fetchall()
        return tuple(GateChange(**row) for row in found)

    def keep_histogram(self, run_id: str) -> None:
        parts = {name: sql.SQL(QUERIES[name]) for name in ("histogram_now", "histogram_latest")}
        with fenced(self._database, run_id) as connection:
            connection.execute(sql.SQL(QUERIES["add_histogram"]).format(**parts), {"run_id": run_id})

    def drift(self, acl_ids: Sequence[int]) -> Drift | None:
        with self._database.transaction() as connection:
            tenths = connection.execute(QUERIES["histogram_latest"]).fetchall()
            if not tenths:
                return None
            row = {"run_id": tenths[0]["run_id"], "acl_ids": list(acl_ids)}
            movers = connection.execute(QUERIES["movers"], row).fetchall()
        histograms: dict[str, list[int]] = {}
        for tenth in tenths:
            histograms.setdefault(tenth["score_kind"], []).append(tenth["assets"])
        return Drift(
            run_id=tenths[0]["run_id"],
            finished_at=tenths[0]["finished_at"],
            histograms={kind: tuple(counts) for kind, counts in histograms.items()},
            movers=tuple(Mover(**mover) for mover in movers),
        )
