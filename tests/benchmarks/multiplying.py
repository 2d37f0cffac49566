"""A filled catalog made larger in the database: further copies of its rows, each copy's assets somewhere of their own.

Composing half a million assets takes hours; copying them takes as long as their indexes. A copy has the words and the
access of its original, another key, id, name and shape (it is no near-duplicate), and vectors moved along differences
of other assets' vectors: noise that is spread as the vectors themselves are.
"""

from __future__ import annotations

import numpy as np
import psycopg
from psycopg import Connection, sql

from services.embedded import EmbeddedServer
from tests.benchmarks.filling import LOADED, VERSION, Told, build_graph, table_columns, without_indexes
from tests.benchmarks.synthetic import DIMENSION

# Beside what Vouch keeps, what the plain hybrid does (`subjects.prepare_plain`).
TABLES = (*LOADED, "document")
EMBEDDING = f"embedding_{VERSION}"
# Of the difference of two vectors: a vector and its copy have a cosine of about 0.83.
MOVED_SHARE = 0.4
# What differs in a copy, by column, wherever it stands; its texts and scores are those of the original.
CHANGED = {
    "asset_key": "asset_key # (copy << 40)",
    "id": "id || '#' || copy",
    "name": "name || '_' || copy",
    "whole_names": "ARRAY(SELECT spelled || ' ' || copy FROM unnest(whole_names) AS spelled)",
    "shape": "shape # copy",
}
COPY_ROWS = "INSERT INTO {table} ({columns}) SELECT {values} FROM {table}, generate_series(1, {copies}::bigint) AS copy"
MOVE_VECTORS = f"""
    WITH placed AS MATERIALIZED (
        SELECT *, row_number() OVER (ORDER BY asset_key, number) AS place, count(*) OVER () AS places FROM {EMBEDDING}
    )
    INSERT INTO {EMBEDDING} (asset_key, number, embedding)
    SELECT own.asset_key # (copy << 40), own.number,
           l2_normalize(own.embedding + array_fill({MOVED_SHARE}::real, ARRAY[{DIMENSION}])::vector
                                        * (one.embedding - other.embedding))
    FROM unnest(%(copies)s::bigint[], %(ones)s::bigint[], %(others)s::bigint[]) AS shifted (copy, to_one, to_other)
    CROSS JOIN placed own
    JOIN placed one ON one.place = 1 + (own.place + to_one) %% own.places
    JOIN placed other ON other.place = 1 + (own.place + to_other) %% own.places
"""


def multiplied_database(server: EmbeddedServer, original: str, name: str, copies: int, told: Told = print) -> None:
    """A database with the catalog of `original` and `copies` copies of it; one that exists is left alone.

    It is made under another name: what a killed run leaves is not taken for whole, and made again.
    """
    unfinished, wanted = sql.Identifier(f"{name}_unfinished"), sql.Identifier(name)
    with psycopg.connect(server.uri("postgres"), autocommit=True) as connection:
        if connection.execute("SELECT FROM pg_database WHERE datname = %s", [name]).fetchone() is not None:
            return
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(unfinished))
        template = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
        connection.execute(template.format(unfinished, sql.Identifier(original)))
        multiply(server.uri(f"{name}_unfinished"), copies, told)
        connection.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(unfinished, wanted))


def multiply(uri: str, copies: int, told: Told = print, seed: int = 1) -> None:
    """Add `copies` copies to a catalog that `fill` and `prepare_plain` have left; its graph index is built anew."""
    with psycopg.connect(uri, autocommit=True, options="-c search_path=vouch,plain,public") as connection:
        # As in `fill`: the foreign keys hold by construction.
        connection.execute("SET session_replication_role = replica")
        connection.execute("SET work_mem = '1GB'")
        connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(f"{EMBEDDING}_ann")))
        with without_indexes(connection, TABLES, told):
            _move_vectors(connection, copies, seed)
            for table in TABLES:
                if table != EMBEDDING:
                    _copy_rows(connection, table, copies)
                told(f"{table} copied")
        connection.execute("UPDATE term_stat SET assets = assets * %s", [1 + copies])
        connection.execute("UPDATE corpus_stat SET assets = assets * %(n)s, total_length = total_length * %(n)s",
                           {"n": 1 + copies})  # fmt: skip
        build_graph(connection, told)


def _copy_rows(connection: Connection[object], table: str, copies: int) -> None:
    names = [column.name for column in table_columns(connection, table)]
    values = [sql.SQL(CHANGED[name]) if name in CHANGED else sql.Identifier(name) for name in names]
    connection.execute(
        sql.SQL(COPY_ROWS).format(
            table=sql.Identifier(table),
            columns=sql.SQL(", ").join(map(sql.Identifier, names)),
            values=sql.SQL(", ").join(values),
            copies=sql.Literal(copies),
        )
    )


def _move_vectors(connection: Connection[object], copies: int, seed: int) -> None:
    """Each copy by differences of other pairs, which stand as far away in the order of keys as the seed says."""
    ones, others = np.random.default_rng((seed, 6)).integers(1, 2**31, size=(2, copies)).tolist()
    connection.execute(MOVE_VECTORS, {"copies": list(range(1, copies + 1)), "ones": ones, "others": others})
