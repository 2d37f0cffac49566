"""Named statements: found by name, told apart, the same names wherever an engine reads them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from psycopg import sql

import services
from services import sql_files
from services.errors import SchemaError
from services.sql_files import load_queries

SQL = Path(services.__file__).parents[1] / "sql"
NAMED = sorted(str(path.relative_to(SQL)) for path in SQL.rglob("*.sql") if "-- name:" in path.read_text())


@pytest.fixture
def sql_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "_sql").mkdir()
    monkeypatch.setattr(sql_files, "files", lambda _package: tmp_path)
    load_queries.cache_clear()
    return tmp_path / "_sql"


def test_a_statement_runs_from_its_name_to_the_next(sql_folder: Path) -> None:
    text = "-- what this is\n\n-- name: one\n-- Why.\nSELECT 1;\n\n-- name: two\nSELECT 2\nFROM x;\n"
    (sql_folder / "a.sql").write_text(text)
    queries = load_queries("a.sql")
    assert dict(queries) == {"one": "-- Why.\nSELECT 1", "two": "SELECT 2\nFROM x"}
    with pytest.raises(KeyError):
        queries["three"]


def test_a_folder_is_read_as_one(sql_folder: Path) -> None:
    (sql_folder / "q").mkdir()
    (sql_folder / "q" / "a.sql").write_text("-- name: one\nSELECT 1;")
    (sql_folder / "q" / "b.sql").write_text("-- name: two\nSELECT 2;")
    (sql_folder / "q" / "README.md").write_text("-- name: no statement\n")
    assert sorted(load_queries("q")) == ["one", "two"]
    (sql_folder / "q" / "c.sql").write_text("-- name: one\nSELECT 3;")
    load_queries.cache_clear()
    with pytest.raises(SchemaError, match="'one' stands twice below sql/q"):
        load_queries("q")


def test_a_file_without_a_name_is_an_error(sql_folder: Path) -> None:
    (sql_folder / "a.sql").write_text("SELECT 1;")
    with pytest.raises(SchemaError, match=r"a\.sql has no statement"):
        load_queries("a.sql")


@pytest.mark.parametrize("file", NAMED)
def test_every_statement_says_what_it_does_and_takes_values_only_as_parameters(file: str) -> None:
    for name, statement in load_queries(file).items():
        assert re.fullmatch(r"[a-z_]+", name), name
        assert statement.startswith("-- "), f"{name} has no describing comment"
        # What stands in braces is filled with names of tables or parts of statements, never with values.
        names = {field for _, field, _, _ in sql.SQL(statement)._formatter.parse(statement) if field}
        assert all(re.fullmatch(r"[a-z_]+", field) for field in names), name
