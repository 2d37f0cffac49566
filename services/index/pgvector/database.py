"""The one edge to PostgreSQL: pool, transactions, and the translation of driver errors into ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Any

import psycopg
from pgvector.psycopg import register_vector
from psycopg import Connection
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool, PoolTimeout

from services.errors import PermanentError, SchemaError, StoreUnavailable

Row = DictRow
CONNECT_TIMEOUT_SECONDS = 5
PATIENCE_SECONDS = 1  # without a connection for so long, it is asked whether there is a server at all
POOL_TIMEOUT_SECONDS = 10
# Then the pool begins anew instead of doubling its pauses: a server that is back is found within seconds.
RECONNECT_TIMEOUT_SECONDS = 5


class PgDatabase:
    """Connections to one database. `transaction` commits as a whole or not at all, `read` takes one statement.

    A connection that died, as all do when the server restarts, is replaced. Errors are ours: StoreUnavailable for what
    may pass (server down, timeout, deadlock), SchemaError where a table is missing.
    """

    def __init__(self, uri: str, *, pool_size: int = 4, session: Mapping[str, str] = MappingProxyType({})) -> None:
        settings = {"search_path": "vouch,public", **session}
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        self._uri = uri
        self._pool: ConnectionPool[Connection[Row]] = ConnectionPool(
            uri,
            min_size=1,
            max_size=pool_size,
            timeout=POOL_TIMEOUT_SECONDS,
            reconnect_timeout=RECONNECT_TIMEOUT_SECONDS,
            kwargs={
                "row_factory": dict_row,
                "options": options,
                "connect_timeout": CONNECT_TIMEOUT_SECONDS,
                "autocommit": True,  # a read is one statement; a transaction says so itself
            },
            configure=_learn_vectors,
            open=False,
        )

    @property
    def rehearsing(self) -> bool:
        return False

    def close(self) -> None:
        self._pool.close()

    @contextmanager
    def transaction(self) -> Iterator[Connection[Row]]:
        """One transaction on a pooled connection."""
        with translated_errors():
            connection = self._living_connection()
            try:
                with connection.transaction():
                    yield connection
            finally:
                self._pool.putconn(connection)

    def read(self, query: str | bytes, row: Mapping[str, Any] | None = None) -> list[Row]:
        """The rows of one statement that only reads; it sees one moment.

        Nothing else is asked of the server: no question whether it lives, no BEGIN, no COMMIT, which together cost as
        much as a small statement. Where the connection turns out dead, the statement is asked once more.
        """
        with translated_errors():
            connection = self._connection()
            try:
                return _rows(connection, query, row)
            except psycopg.OperationalError:
                if not connection.closed:
                    raise
            finally:
                self._pool.putconn(connection)
            self._pool.check()
            connection = self._connection()
            try:
                return _rows(connection, query, row)
            finally:
                self._pool.putconn(connection)

    def _living_connection(self) -> Connection[Row]:
        connection = self._connection()
        try:
            ConnectionPool.check_connection(connection)
            _learn_vectors(connection)
        except psycopg.OperationalError:
            self._pool.putconn(connection)
            self._pool.check()
            connection = self._connection()
        return connection

    def _connection(self) -> Connection[Row]:
        self._pool.open()
        try:
            return self._pool.getconn(PATIENCE_SECONDS)
        except PoolTimeout:
            # All in use, or nobody there? The pool tries on in silence; a connection of our own says why not.
            psycopg.connect(self._uri, connect_timeout=CONNECT_TIMEOUT_SECONDS).close()
            return self._pool.getconn(POOL_TIMEOUT_SECONDS)

    @contextmanager
    def snapshot(self) -> Iterator[Connection[Row]]:
        """One transaction that only reads, all of whose statements see the same moment."""
        with self.transaction() as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield connection

    @contextmanager
    def rehearsal(self) -> Iterator[Rehearsal]:
        """A database whose every write is undone at the end: what a dry run works on."""
        with self.transaction() as connection, connection.transaction(force_rollback=True):
            yield Rehearsal(connection)


class Rehearsal:
    """A `PgDatabase` on one connection inside one transaction that will be rolled back."""

    def __init__(self, connection: Connection[Row]) -> None:
        self._connection = connection

    @property
    def rehearsing(self) -> bool:
        return True

    @contextmanager
    def transaction(self) -> Iterator[Connection[Row]]:
        with self._connection.transaction():
            yield self._connection


Database = PgDatabase | Rehearsal


def _learn_vectors(connection: Connection[Row]) -> None:
    """Teach the connection the vector type, unless it knows it. It does not in a database that is not migrated yet."""
    if connection.adapters.types.get("vector") is None:
        with suppress(psycopg.ProgrammingError):
            register_vector(connection)


def _rows(connection: Connection[Row], query: str | bytes, row: Mapping[str, Any] | None) -> list[Row]:
    _learn_vectors(connection)
    return connection.execute(query, row).fetchall()


@contextmanager
def translated_errors() -> Iterator[None]:
    """The one table from driver errors to ours."""
    try:
        yield
    except PoolTimeout as error:
        raise StoreUnavailable(
            "all connections to the index database stayed in use; try again, or raise VOUCH_POOL_SIZE"
        ) from error
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn) as error:
        raise SchemaError("the database has no Vouch schema or an older one; run: vouch db migrate") from error
    except psycopg.errors.QueryCanceled as error:
        raise StoreUnavailable("the index database was too slow: a statement ran into its time limit") from error
    except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure) as error:
        raise StoreUnavailable(f"the index database gave way to another: {_first_line(error)}; try again") from error
    except psycopg.errors.ProgramLimitExceeded as error:
        raise PermanentError(f"the index database cannot hold this: {_first_line(error)}") from error
    except psycopg.OperationalError as error:
        raise StoreUnavailable(
            f"the index database is not reachable: {_first_line(error)}; start it (vouch db start) or correct"
            " VOUCH_DATABASE_URL"
        ) from error
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidCatalogName) as error:
        raise PermanentError(f"the index database refuses: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
