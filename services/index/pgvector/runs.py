"""Runs, their lease, and the sources they pull."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from psycopg import Connection

from services.errors import PermanentError, RefreshInProgress, RunFenced
from services.index.pgvector.database import Database, Row
from services.index.run_store import LeaseHolder, ListingEnd, Run, RunKind, SourceEntry
from services.sql_files import load_queries

QUERIES = load_queries("pgvector/queries/runs.sql")


@contextmanager
def fenced(database: Database, run_id: str) -> Iterator[Connection[Row]]:
    """One transaction that holds the lease to its end. Raises RunFenced when a newer run has it.

    A rehearsal only looks: it goes on for as long as a listing, and nobody shall wait for what will be undone.
    """
    with database.transaction() as connection:
        check = QUERIES["lease_look" if database.rehearsing else "lease_beat"]
        if connection.execute(check, {"run_id": run_id}).rowcount != 1:
            raise RunFenced(f"run {run_id} no longer holds the lease: a newer run took over; nothing was written")
        yield connection


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
        kind: RunKind = RunKind.REFRESH,
    ) -> str:
        asked = {"kind": kind.value, "sources": list(sources), "full": full, "dry_run": dry_run}
        row = {"run_id": run_id, "holder": holder, **asked}
        with self._database.transaction() as connection:
            # Looked at before it is locked, too: whoever writes holds the lease, and a refusal shall not wait for it.
            held = _living_run(connection, row, is_dead)
            if held is None:
                if connection.execute(QUERIES["lease_lock"]).rowcount != 1:
                    raise PermanentError("the table refresh_lease lost its row; migrate a fresh database")
                held = _living_run(connection, row, is_dead)
            if held is not None:
                return held
            abandoned = connection.execute(QUERIES["lease_held"]).fetchone()
            if abandoned is not None:
                _end(connection, abandoned["run_id"], "abandoned", "it fell silent; a newer run took over", None)
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
        with fenced(self._database, run_id) as connection:
            rows = [{"run_id": run_id, "source": source, "name": name, "value": counts[name]} for name in counts]
            connection.cursor().executemany(query, rows)

    def end_listing(self, run_id: str, source: str, outcome: str, detail: str) -> None:
        row = {"run_id": run_id, "source": source, "outcome": outcome, "detail": detail}
        with fenced(self._database, run_id) as connection:
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

    def forget(self, name: str) -> bool:
        with self._database.transaction() as connection:
            return connection.execute(QUERIES["source_forget"], {"name": name}).rowcount == 1

    def sources(self) -> tuple[Mapping[str, Any], ...]:
        with self._database.transaction() as connection:
            return tuple(connection.execute(QUERIES["sources_list"]).fetchall())


def _living_run(
    connection: Connection[Row], asked: Mapping[str, Any], is_dead: Callable[[LeaseHolder], bool]
) -> str | None:
    """The run that the asking holder has already; None when the lease is free or its holder dead.

    Raises RefreshInProgress for any other run, and for one of the same holder that is about something else.
    """
    held = connection.execute(QUERIES["lease_held"]).fetchone()
    if held is None:
        return None
    same = (held["holder"], held["kind"], held["sources"], held["full_listing"], held["dry_run"])
    if same == (asked["holder"], asked["kind"], asked["sources"], asked["full"], asked["dry_run"]):
        return str(held["run_id"])
    kind, silent_seconds = RunKind(held["kind"]), held["silent_seconds"]
    current = LeaseHolder(held["run_id"], kind, held["holder"], held["started_at"], silent_seconds)
    if is_dead(current):
        return None
    raise RefreshInProgress(
        f"{kind} {current.run_id} has been running since {current.started_at:%Y-%m-%d %H:%M:%S %Z}"
        f" ({current.holder}); wait for it, or stop it and try again"
    )


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
        kind=RunKind(row["kind"]),
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
