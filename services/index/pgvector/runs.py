"""Runs, their lease, and the sources they pull."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from psycopg import Connection

from services.errors import PermanentError, RefreshInProgress, RunFenced
from services.index.pgvector.database import Database, Row
from services.index.store import LeaseHolder, ListingEnd, Run, SourceEntry
from services.sql_files import load_queries

QUERIES = load_queries("pgvector/queries/runs.sql")


def fence(connection: Connection[Row], run_id: str) -> None:
    """Hold the lease until this transaction ends. Raises RunFenced when a newer run has it."""
    if connection.execute(QUERIES["lease_beat"], {"run_id": run_id}).rowcount != 1:
        raise RunFenced(f"run {run_id} no longer holds the lease: a newer refresh took over; nothing was written")


class PgRunStore:
    """See `services.index.store.RunStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(
        self,
        run_id: str,
        holder: str,
        sources: Sequence[str],
        *,
        full: bool,
        dry_run: bool,
        is_dead: Callable[[LeaseHolder], bool],
    ) -> str:
        with self._database.transaction() as connection:
            held = connection.execute(QUERIES["lease_lock"]).fetchone()
            if held is None:
                raise PermanentError("the table refresh_lease lost its row; run: vouch db migrate on a fresh database")
            if held["run_id"] is not None:
                current = LeaseHolder(held["run_id"], held["holder"], held["started_at"], held["silent_seconds"])
                if current.holder == holder:
                    return current.run_id
                if not is_dead(current):
                    raise RefreshInProgress(
                        f"refresh {current.run_id} has been running since {current.started_at:%Y-%m-%d %H:%M:%S %Z}"
                        f" ({current.holder}); wait for it, or stop it and try again"
                    )
                _end(connection, current.run_id, "abandoned", "it fell silent; a newer run took over", None)
            row = {"run_id": run_id, "holder": holder, "sources": list(sources), "full": full, "dry_run": dry_run}
            connection.execute(QUERIES["run_add"], row)
            connection.execute(QUERIES["lease_take"], {"run_id": run_id, "holder": holder})
            return run_id

    def run(self, run_id: str) -> Run:
        with self._database.transaction() as connection:
            row = connection.execute(QUERIES["run_get"], {"run_id": run_id}).fetchone()
            if row is None:
                raise PermanentError(f"there is no run {run_id!r}; vouch status lists the latest")
            return _run(connection, row)

    def recent(self, limit: int) -> tuple[Run, ...]:
        with self._database.transaction() as connection:
            rows = connection.execute(QUERIES["runs_recent"], {"limit": limit}).fetchall()
            return tuple(_run(connection, row) for row in rows)

    def count(self, run_id: str, source: str, counts: Mapping[str, float], *, add: bool = False) -> None:
        query = QUERIES["run_count_add" if add else "run_count_put"]
        with self._database.transaction() as connection:
            for name, value in counts.items():
                connection.execute(query, {"run_id": run_id, "source": source, "name": name, "value": value})

    def end_listing(self, run_id: str, source: str, outcome: str, detail: str) -> None:
        row = {"run_id": run_id, "source": source, "outcome": outcome, "detail": detail}
        with self._database.transaction() as connection:
            fence(connection, run_id)
            connection.execute(QUERIES["run_source_put"], row)

    def end(self, run_id: str, status: str, *, error: str | None, version: int | None) -> None:
        with self._database.transaction() as connection:
            connection.execute(QUERIES["lease_give_back"], {"run_id": run_id})
            _end(connection, run_id, status, error, version)


class PgSourceStore:
    """See `services.index.store.SourceStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put_sources(self, entries: Sequence[SourceEntry]) -> None:
        with self._database.transaction() as connection:
            for entry in entries:
                connection.execute(QUERIES["source_put"], vars(entry))

    def sources(self) -> tuple[Mapping[str, Any], ...]:
        with self._database.transaction() as connection:
            return tuple(connection.execute(QUERIES["sources_list"]).fetchall())


def _end(connection: Connection[Row], run_id: str, status: str, error: str | None, version: int | None) -> None:
    row = {"run_id": run_id, "status": status, "error": error, "index_version": version}
    connection.execute(QUERIES["run_end"], row)


def _run(connection: Connection[Row], row: Row) -> Run:
    of_run = {"run_id": row["run_id"]}
    listings = connection.execute(QUERIES["run_sources"], of_run).fetchall()
    counts: dict[str, dict[str, float]] = {}
    for counted in connection.execute(QUERIES["run_counts"], of_run):
        counts.setdefault(counted["source"], {})[counted["name"]] = counted["value"]
    return Run(
        run_id=row["run_id"],
        holder=row["holder"],
        status=row["status"],
        sources=tuple(row["sources"]),
        full=row["full_listing"],
        dry_run=row["dry_run"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        index_version=row["index_version"],
        error=row["error"],
        seconds=row["seconds"],
        listings={listing["source"]: ListingEnd(listing["outcome"], listing["detail"]) for listing in listings},
        counts=counts,
    )
