"""Named SQL: statements live in files under `sql/`, are found by name, and never put together from values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType

from services.errors import SchemaError

NAME_MARK = "-- name:"


@lru_cache(maxsize=32)
def load_queries(folder_or_file: str) -> Mapping[str, str]:
    """The statements of one .sql file, or of all in a folder, below `sql/`: name -> text.

    A statement starts at a line `-- name: its_name` and ends where the next one starts. Raises SchemaError for a name
    that stands twice or a file without any.
    """
    place = files("services") / "_sql" / folder_or_file
    scripts = [place] if place.is_file() else sorted(_sql_files(place), key=lambda item: item.name)
    queries: dict[str, str] = {}
    for script in scripts:
        for name, statement in _statements(script):
            if name in queries:
                raise SchemaError(f"the query {name!r} stands twice below sql/{folder_or_file}")
            queries[name] = statement
    return MappingProxyType(queries)


def _sql_files(folder: Traversable) -> list[Traversable]:
    return [item for item in folder.iterdir() if item.name.endswith(".sql")]


def _statements(script: Traversable) -> list[tuple[str, str]]:
    blocks = script.read_text(encoding="utf-8").split(NAME_MARK)
    if len(blocks) < 2:
        raise SchemaError(f"{script.name} has no statement: each starts with a line '{NAME_MARK} its_name'")
    named = [block.split("\n", 1) for block in blocks[1:]]
    return [(name.strip(), body.strip().removesuffix(";")) for name, body in named]
