"""The tables of an index version: their names, and statements about them."""

from __future__ import annotations

from psycopg import sql


def version_names(version: int) -> dict[str, sql.Identifier]:
    """The table names of one index version; they are made from an integer alone."""
    return {
        "embedding": sql.Identifier(f"embedding_{int(version)}"),
        "chunk": sql.Identifier(f"chunk_{int(version)}"),
        "ann_index": sql.Identifier(ann_index_name(version)),
    }


def version_query(text: str, version: int, dimension: int = 0) -> sql.Composed:
    """A statement with the names (and, where it asks, the dimension) of one index version filled in."""
    return sql.SQL(text).format(dimension=sql.Literal(int(dimension)), **version_names(version))


def ann_index_name(version: int) -> str:
    """The name of a version's graph index."""
    return f"embedding_{int(version)}_ann"
