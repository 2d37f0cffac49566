"""The floors hold, pure code is pure, and the package in use is the one in this checkout."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import services
from services.settings import Settings, SourceSettings

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = REPOSITORY / "services"

PURE = [
    *PACKAGE.glob("text/*.py"),
    *PACKAGE.glob("context/*.py"),
    *(file for file in PACKAGE.glob("trust/*.py") if file.name != "rules_file.py"),  # reads the shipped rules
    *(PACKAGE / "access" / name for name in ("principal.py", "rule.py")),
    *(PACKAGE / "catalog" / name for name in ("merge.py", "model.py", "parts.py")),
    *(PACKAGE / "index" / name for name in ("compose.py", "identity.py", "plan.py", "report.py", "scoring.py")),
    *(PACKAGE / "retrieval" / name for name in ("expansion.py", "grouping.py", "keyword.py", "ranking.py")),
    PACKAGE / "retrieval" / "spelling.py",
    *(PACKAGE / "evaluation" / name for name in ("metrics.py", "quality.py")),
]
IMPURE_MODULES = frozenset({"os", "random", "secrets", "socket", "subprocess", "sys", "time", "uuid"})
CLOCK_CALLS = frozenset({"now", "today", "utcnow"})
LINES_LIMIT = 300
FUNCTION_LINES_LIMIT = 45
NAMED = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def test_floors_hold() -> None:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    result = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("file", PURE, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_pure_code_asks_neither_system_nor_clock(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert not imported & IMPURE_MODULES
    clocks = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CLOCK_CALLS
    ]
    assert not clocks, f"asks a clock at lines {clocks}"


def test_services_is_this_checkout() -> None:
    # Airflow appends its folders to sys.path, and a plugin of that name would take its place.
    assert Path(services.__file__).resolve().parent == PACKAGE


def test_plugins_are_flat_and_uniquely_named() -> None:
    files = list((REPOSITORY / "plugins").rglob("*.py"))
    assert all(file.parent.name == "plugins" for file in files)
    assert all(file.name.startswith("vouch_") or file.name == "__init__.py" for file in files)


def test_every_room_says_what_lives_there() -> None:
    for folder in ("dags", "plugins", "services", "sql", "tests"):
        assert (REPOSITORY / folder / "README.md").is_file(), f"{folder} has no README.md"


def test_every_query_is_asked_and_every_setting_is_read() -> None:
    code = "\n".join(file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.py"))
    queries = {name for file in (REPOSITORY / "sql").rglob("*.sql") for name in NAMED.findall(file.read_text("utf-8"))}
    assert queries
    assert {name for name in queries if f'"{name}"' not in code} == set()
    settings = {*Settings.model_fields, *SourceSettings.model_fields}
    assert {name for name in settings if not re.search(rf"\.{name}\b", code)} == set()


def our_files() -> Iterator[Path]:
    for folder in ("services", "dags", "plugins"):
        yield from (REPOSITORY / folder).rglob("*.py")


def test_files_hold_one_thought() -> None:
    long = {
        str(file.relative_to(REPOSITORY)): lines
        for file in our_files()
        if (lines := len(file.read_text(encoding="utf-8").splitlines())) > LINES_LIMIT
    }
    assert not long


def test_functions_are_read_at_a_glance() -> None:
    long = {
        f"{file.relative_to(REPOSITORY)}: {node.name}": lines
        for file in our_files()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES_LIMIT
    }
    assert not long
