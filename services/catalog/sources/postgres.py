"""A live PostgreSQL database as a source: schemas, tables and views with comments, keys, statistics and lineage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import class_row, dict_row
from pydantic import ValidationError

from services.catalog.model import CatalogRecord
from services.catalog.sources.base import PAGE_SIZE, Ending, Outcome, Page, Rejection
from services.catalog.sources.postgres_mapping import (
    VIEW_KINDS,
    ColumnRow,
    Details,
    ForeignKeyRow,
    KeyRow,
    LinkRow,
    Naming,
    RelationRow,
    SchemaRow,
    StatisticsRow,
    schema_record,
    table_record,
)
from services.errors import SourceError, SourceUnavailable
from services.sql_files import load_queries

COLUMNS_PER_PAGE = 20_000  # wide tables make shorter pages, so that a page's memory has a bound
LONGEST_TOP_VALUE = 100  # characters; a longer one is text, not a value to filter by
CONNECT_TIMEOUT_SECONDS = 10
STATEMENT_TIMEOUT_SECONDS = 120
LOCK_TIMEOUT_SECONDS = 2
# libpq gives no SQLSTATE for a refused connection, only the server's words. Anything else is worth a retry.
PERMANENT_REFUSALS = {
    "password authentication failed": "check user and password",
    "no password supplied": "give a password",
    "authentication failed": "check user and authentication method",
    "no pg_hba.conf entry": "let this host and user in, in the server's pg_hba.conf",
    "does not exist": "check the names of database and user",
    "permission denied for database": "grant CONNECT on the database",
    "is not permitted to log in": "grant LOGIN to the user",
    "connection is bad: invalid": "correct the DSN",
    "definition of service": "correct the service in the DSN",
}
Row = TypeVar("Row")
Connection = psycopg.Connection[Any]


@dataclass(frozen=True)
class PostgresSource:
    """One database, PostgreSQL 14 or later, read as of one moment (a repeatable-read transaction, read only).

    `schemas` is the scope of the source (empty: all but PostgreSQL's own): a listing of the scope is complete. Any
    user that may connect can read what exists; values and null ratios come only for columns it may select from.
    `top_values` False keeps every value in the database. `classification` is the access classification of all assets.
    Row counts and sizes are those of the last VACUUM or ANALYZE, indexes left out.
    """

    name: str
    dsn: str = field(repr=False)
    schemas: tuple[str, ...] = ()
    overlay: bool = False
    top_values: bool = True
    classification: str | None = None

    def listing(self) -> Iterator[Page | Ending]:
        """Schemas, then relations, each by name. See `Source.listing`."""
        with closing(self._connected()) as connection:
            try:
                crawl = _Crawl(self, connection)
                yield from crawl.schema_pages()
                yield from crawl.relation_pages()
            except (psycopg.Error, UnicodeDecodeError) as error:
                yield Ending(Outcome.FAILED, f"{type(error).__name__}: {self._without_password(error)}")
                return
        yield Ending(Outcome.COMPLETE)

    def probe(self) -> str:
        with closing(self._connected()) as connection:
            try:
                found = _Crawl(self, connection).scope
            except (psycopg.Error, UnicodeDecodeError) as error:
                raise SourceUnavailable(
                    f"source {self.name!r} does not answer: {self._without_password(error)}"
                ) from error
        return f"database {found['database']!r}: {found['schemas']} schemas, {found['relations']} tables and views"

    def _connected(self) -> Connection:
        settings = self._connection_settings()
        try:
            connection: Connection = psycopg.connect(**settings, prepare_threshold=None)
        except psycopg.ProgrammingError as error:
            raise SourceError(f"source {self.name!r}: correct the DSN: {self._without_password(error)}") from None
        except psycopg.OperationalError as error:
            told = self._without_password(error)
            for words, fix in PERMANENT_REFUSALS.items():
                if words in told:
                    raise SourceError(f"source {self.name!r} is refused, {fix}: {told}") from None
            raise SourceUnavailable(f"source {self.name!r} cannot be reached: {told}") from None
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        return connection

    def _connection_settings(self) -> dict[str, Any]:
        """The parts of the DSN. Its errors quote it, password and all, so none of them is passed on."""
        try:
            given = conninfo_to_dict(self.dsn)
        except psycopg.ProgrammingError:
            raise SourceError(
                f"source {self.name!r}: the DSN is neither 'key=value ...' nor a postgresql:// URI "
                "(special characters of a password in a URI are percent-encoded)"
            ) from None
        if "@" in str(given.get("host") or "").lstrip("@"):  # a leading one names an abstract socket
            raise SourceError(f"source {self.name!r}: percent-encode the '@' of the password in the DSN")
        return {"connect_timeout": CONNECT_TIMEOUT_SECONDS, "application_name": "vouch", **given}

    def _without_password(self, error: Exception) -> str:
        password = str(self._connection_settings().get("password") or "")
        told = " ".join(str(error).split())
        return told.replace(password, "***") if password else told


class _Crawl:
    """One walk through one open connection."""

    def __init__(self, source: PostgresSource, connection: Connection) -> None:
        self._source = source
        self._connection = connection
        self._queries = load_queries("sources/postgres.sql")
        self._scope = {"schemas": list(source.schemas)}
        timeouts = {"statement_timeout": STATEMENT_TIMEOUT_SECONDS, "lock_timeout": LOCK_TIMEOUT_SECONDS}
        self._connection.execute(self._query("session"), {key: f"{value}s" for key, value in timeouts.items()})
        missing = [row["name"] for row in self._dicts("missing_schemas", self._scope)]
        if missing:
            raise SourceError(f"source {source.name!r}: no schema {', '.join(map(repr, missing))}; correct `schemas`")
        (self.scope,) = self._dicts("database", self._scope)
        self._naming = Naming(self.scope["database"])

    def schema_pages(self) -> Iterator[Page]:
        after = ""
        while True:
            rows = self._rows(SchemaRow, "schemas", {**self._scope, "after": after, "page_size": PAGE_SIZE})
            if not rows:
                return
            yield Page(tuple(schema_record(row, self._naming, self._source.classification) for row in rows))
            after = rows[-1].schema_name

    def relation_pages(self) -> Iterator[Page]:
        after = ("", "")
        while True:
            place = {"after_schema": after[0], "after_table": after[1], "page_size": PAGE_SIZE}
            rows = self._rows(RelationRow, "relations", {**self._scope, **place})
            if not rows:
                return
            for batch in _narrow_batches(rows):
                yield self._page(batch)
            after = (rows[-1].schema_name, rows[-1].table_name)

    def _page(self, batch: Sequence[RelationRow]) -> Page:
        details, notices = self._details(batch)
        records: list[CatalogRecord] = []
        rejected: list[Rejection] = []
        for row in batch:
            try:
                records.append(table_record(row, details[row.oid], self._naming, self._source.classification))
            except ValidationError as error:
                record_id = self._naming.table_id(row.schema_name, row.table_name)
                rejected.append(Rejection(record_id, str(error), repr(row), asset_id=record_id))
        return Page(tuple(records), tuple(rejected), notices)

    def _details(self, batch: Sequence[RelationRow]) -> tuple[dict[int, Details], tuple[str, ...]]:
        oids = [row.oid for row in batch]
        some = {"oids": oids}
        columns = _by_oid(self._rows(ColumnRow, "columns", some))
        statistics = _by_oid(self._rows(StatisticsRow, "column_statistics", self._statistics_values(batch)))
        primary_keys = {row.oid: row.columns for row in self._rows(KeyRow, "primary_keys", some)}
        foreign_keys = _by_oid(self._rows(ForeignKeyRow, "foreign_keys", some))
        upstream = _by_oid(self._rows(LinkRow, "upstream", some))
        downstream = _by_oid(self._rows(LinkRow, "downstream", some))
        definitions, notices = self._definitions([row for row in batch if row.kind in VIEW_KINDS])
        details = {
            oid: Details(
                columns=columns.get(oid, []),
                statistics={row.column_name: row for row in statistics.get(oid, [])},
                primary_key=primary_keys.get(oid, []),
                foreign_keys=foreign_keys.get(oid, []),
                upstream=upstream.get(oid, []),
                downstream=downstream.get(oid, []),
                definition=definitions.get(oid),
            )
            for oid in oids
        }
        return details, notices

    def _statistics_values(self, batch: Sequence[RelationRow]) -> dict[str, Any]:
        return {
            "oids": [row.oid for row in batch],
            "schema_names": [row.schema_name for row in batch],
            "table_names": [row.table_name for row in batch],
            "partitioned": [row.kind == "p" for row in batch],
            "with_values": self._source.top_values,
            "longest_value": LONGEST_TOP_VALUE,
        }

    def _definitions(self, views: Sequence[RelationRow]) -> tuple[dict[int, str], tuple[str, ...]]:
        """The views' SELECTs; a view that is locked or being dropped costs its own definition and a notice, no more."""
        try:
            return self._view_definitions([view.oid for view in views]), ()
        except (psycopg.errors.LockNotAvailable, psycopg.InternalError, psycopg.ProgrammingError):
            pass  # one of them; find out which
        found: dict[int, str] = {}
        notices: list[str] = []
        for view in views:
            try:
                found |= self._view_definitions([view.oid])
            except (psycopg.errors.LockNotAvailable, psycopg.InternalError, psycopg.ProgrammingError) as error:
                view_id = self._naming.table_id(view.schema_name, view.table_name)
                notices.append(f"{view_id}: view definition not read: {type(error).__name__}")
        return found, tuple(notices)

    def _view_definitions(self, oids: Sequence[int]) -> dict[int, str]:
        with self._connection.transaction():  # a savepoint: a failure must not end the crawl's transaction
            rows = self._dicts("view_definitions", {"oids": list(oids)}) if oids else []
        return {row["oid"]: row["definition"] for row in rows if row["definition"] is not None}

    def _query(self, name: str) -> bytes:
        return self._queries[name].encode()

    def _dicts(self, name: str, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        with self._connection.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(self._query(name), values).fetchall()

    def _rows(self, kind: type[Row], name: str, values: Mapping[str, Any]) -> list[Row]:
        with self._connection.cursor(row_factory=class_row(kind)) as cursor:
            return cursor.execute(self._query(name), values).fetchall()


DetailRow = TypeVar("DetailRow", ColumnRow, StatisticsRow, ForeignKeyRow, LinkRow)


def _by_oid(rows: Iterable[DetailRow]) -> dict[int, list[DetailRow]]:
    grouped: dict[int, list[DetailRow]] = defaultdict(list)
    for row in rows:
        grouped[row.oid].append(row)
    return grouped


def _narrow_batches(rows: Sequence[RelationRow]) -> Iterator[list[RelationRow]]:
    """Consecutive rows together while their columns stay below `COLUMNS_PER_PAGE`; at least one row each."""
    batch: list[RelationRow] = []
    columns = 0
    for row in rows:
        if batch and columns + row.attribute_count > COLUMNS_PER_PAGE:
            yield batch
            batch, columns = [], 0
        batch.append(row)
        columns += row.attribute_count
    if batch:
        yield batch
