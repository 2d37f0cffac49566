"""What stewards should mend, and what a source's assets say, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from psycopg import sql

from services.catalog.parts import GovernanceRole
from services.index.pgvector.database import PgDatabase, Row
from services.retrieval.store import RolesWork, StoredWork, WorkPosition, WorkScope
from services.sql_files import load_queries
from services.text.clean import scrub
from services.trust.curation import CurationItem, CurationScore

QUERIES = load_queries("pgvector/queries/worklist.sql")
STREAM_ROWS = 500
# Reads a document of every asset on the list, so it may take longer than a search: 1.5 s for 100,000 assets.
ADDING_UP = "SET LOCAL statement_timeout = '20s'"


class PgWorklistStore:
    """See `services.retrieval.store.WorklistStore`."""

    def __init__(self, database: PgDatabase) -> None:
        self._database = database

    def page(self, scope: WorkScope, after: WorkPosition | None, limit: int) -> Sequence[StoredWork]:
        row = {
            **_scope_row(scope),
            "after_points": after.points_missing if after else None,
            "after_id": after.id if after else None,
            "limit": limit,
        }
        with self._database.transaction() as connection:
            return [_work(item) for item in connection.execute(_statement("worklist_page"), row)]

    def by_roles(self, scope: WorkScope) -> Sequence[RolesWork]:
        with self._database.transaction() as connection:
            connection.execute(ADDING_UP)
            found = connection.execute(_statement("worklist_by_roles"), _scope_row(scope)).fetchall()
        return [RolesWork(_roles(item["roles"]), item["assets"], item["points_missing"]) for item in found]


class PgPayloadStore:
    """See `services.retrieval.store.PayloadStore`."""

    def __init__(self, database: PgDatabase) -> None:
        self._database = database

    @contextmanager
    def payloads(self, source: str) -> Iterator[Iterator[Mapping[str, Any]]]:
        with self._database.transaction() as connection, connection.cursor(name="payloads_of_source") as cursor:
            cursor.itersize = STREAM_ROWS
            cursor.execute(QUERIES["payloads_of_source"], {"source": source})
            yield (row["payload"] for row in cursor)


def _statement(name: str) -> sql.Composed:
    return sql.SQL(QUERIES[name]).format(below_threshold=sql.SQL(QUERIES["below_threshold"]))


def _work(row: Row) -> StoredWork:
    items = tuple(CurationItem(**item) for item in row["curation"])
    return StoredWork(
        id=row["id"],
        source=row["source"],
        object_type=row["object_type"],
        name=row["name"],
        title=row["title"],
        url=row["url"],
        roles=_roles(row["roles"]),
        signals=row["signals"],
        curation=CurationScore(row["curation_score"], items, row["curation_native"]),
        threshold=row["threshold"],
        position=WorkPosition(row["points_missing"], row["id"]),
    )


def _scope_row(scope: WorkScope) -> dict[str, Any]:
    return {
        "acl_ids": list(scope.acl_ids),
        "sources": _folded(scope.sources),
        "object_types": list(scope.object_types) or None,
        "owners": _folded(scope.owners),
    }


def _folded(words: Sequence[str]) -> list[str] | None:
    return [scrub(word)[0].casefold() for word in words] or None


def _roles(stored: Sequence[Mapping[str, Any]] | None) -> tuple[GovernanceRole, ...]:
    return tuple(GovernanceRole.model_validate(role) for role in stored or ())
