"""Scores of published assets, and the gate."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from psycopg import sql
from psycopg.types.json import Jsonb

from services.index.identity import ModelIdentity
from services.index.pgvector.database import Database
from services.index.pgvector.history import note_movers
from services.index.pgvector.runs import fenced
from services.index.pgvector.tables import version_names, version_query
from services.index.scoring import Scores
from services.index.trust_store import DueAsset, PublishedAsset, StandingVerdict
from services.sql_files import load_queries
from services.trust.gate import GateThresholds, Verdict

QUERIES = load_queries("pgvector/queries/scores.sql")


def threshold_row(thresholds: GateThresholds) -> dict[str, Any]:
    """The parameters of the fragment `threshold`."""
    return {
        "threshold_default": float(thresholds.default),
        "threshold_by_type": Jsonb(dict(thresholds.by_object_type)),
        "threshold_by_source": Jsonb(dict(thresholds.by_source)),
    }


def with_threshold(text: str, version: int = 0) -> sql.Composed:
    """A statement with the threshold of asset a and the tables of an index version filled in where it asks."""
    return sql.SQL(text).format(threshold=sql.SQL(QUERIES["threshold"]), **version_names(version))


class PgScoreStore:
    """See `services.index.trust_store.ScoreStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def active_version(self) -> tuple[int, ModelIdentity] | None:
        with self._database.transaction() as connection:
            row = connection.execute(QUERIES["active_version"]).fetchone()
        if row is None:
            return None
        return int(row["version"]), ModelIdentity(row["model_id"], row["model_revision"], row["dimension"])

    def outdated(self, rules_digest: str, after_key: int, limit: int) -> tuple[PublishedAsset, ...]:
        row = {"rules_digest": rules_digest, "after_key": after_key, "limit": limit}
        with self._database.transaction() as connection:
            found = connection.execute(QUERIES["outdated_scores"], row).fetchall()
        return tuple(PublishedAsset(**item) for item in found)

    def set_scores(self, run_id: str, scores: Mapping[int, Scores], retold: Sequence[int]) -> int:
        row = {
            "keys": list(scores),
            "curation_scores": [item.curation_score for item in scores.values()],
            "governance_scores": [item.governance_score for item in scores.values()],
            "scores": [Jsonb(vars(item)) for item in scores.values()],
        }
        with fenced(self._database, run_id) as connection:
            note_movers(connection, run_id, "rules", sql.SQL(QUERIES["rescored"]), row)
            written = connection.execute(QUERIES["set_scores"], row).rowcount
            connection.execute(QUERIES["redraft"], {"keys": list(retold)})
        return written

    def recompose_drafts(self, run_id: str, rules_digest: str, thresholds: GateThresholds) -> int:
        row = {"rules_digest": rules_digest, **threshold_row(thresholds)}
        with fenced(self._database, run_id) as connection:
            return connection.execute(with_threshold(QUERIES["recompose_drafts"]), row).rowcount

    def standing(self, rules_digest: str, page_size: int) -> Generator[tuple[StandingVerdict, ...], None, None]:
        with self._database.transaction() as connection, connection.cursor(name="standing_verdicts") as cursor:
            cursor.itersize = page_size
            cursor.execute(QUERIES["standing_verdicts"], {"rules_digest": rules_digest})
            while rows := cursor.fetchmany(page_size):
                yield tuple(StandingVerdict(**row) for row in rows)

    def due(self, version: int, thresholds: GateThresholds, after_key: int, limit: int) -> tuple[DueAsset, ...]:
        row = {"after_key": after_key, "limit": limit, **threshold_row(thresholds)}
        with self._database.transaction() as connection:
            found = connection.execute(with_threshold(QUERIES["due_verdicts"], version), row).fetchall()
        return tuple(DueAsset(**item) for item in found)

    def set_verdicts(self, run_id: str, version: int, verdicts: Mapping[int, Verdict]) -> int:
        row = {
            "run_id": run_id,
            "keys": list(verdicts),
            "thresholds": [verdict.threshold for verdict in verdicts.values()],
            "eligible": [verdict.eligible for verdict in verdicts.values()],
            "reasons": [Jsonb(list(verdict.reasons)) for verdict in verdicts.values()],
            "leaving": [key for key, verdict in verdicts.items() if not verdict.eligible],
            "entering": [key for key, verdict in verdicts.items() if verdict.eligible],
        }
        with fenced(self._database, run_id) as connection:
            connection.execute(QUERIES["note_passages"], row)
            steps = ("drop_vectors", "restore_vectors", "set_verdicts")
            return sum(connection.execute(version_query(QUERIES[step], version), row).rowcount for step in steps)
