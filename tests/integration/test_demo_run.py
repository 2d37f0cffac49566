"""`make demo` and `make stop`, on ports and in a home of their own: real Airflow, real API, real answer."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from services.demo.catalog import DEMO_QUESTION
from services.demo.processes import free_port

DEMO_SECONDS = 600
CERTIFIED = "postgres:table:shop.finance.customer_revenue_monthly"


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="vouch-demo-") as folder:
        try:
            yield Path(folder)
        finally:
            _vouch(Path(folder), "demo", "--stop")


@pytest.fixture(scope="module")
def said(home: Path) -> str:
    """What the demo printed."""
    return _vouch(home, "demo")


def _vouch(home: Path, *arguments: str) -> str:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("VOUCH_", "AIRFLOW_"))},
        "VOUCH_HOME": str(home),
        "VOUCH_AIRFLOW_PORT": str(free_port(0)),
        "VOUCH_API_PORT": str(free_port(0)),
    }
    command = [sys.executable, "-m", "services.cli", *arguments]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=DEMO_SECONDS, check=False)
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-5000:]
    return result.stdout


def test_ends_with_a_ranked_explained_answer_and_where_to_look(said: str) -> None:
    answer = said[said.index(DEMO_QUESTION) :]
    assert re.search(rf"1\. customer_revenue_monthly .*\n.*{re.escape(CERTIFIED)}", answer)
    assert "critical_data_element 0.4 x 1 x 1 = 0.400  native" in answer
    assert all(place in answer for place in ("/dags/catalog_refresh", "/docs", "/v1/status"))


def test_the_airflow_run_is_green(said: str) -> None:
    assert "the refresh succeeded" in said
    assert "verify: success" in said
    assert "failed" not in said


def test_asking_twice_gives_the_same_order(said: str, home: Path) -> None:
    found = re.search(r"(http://127\.0\.0\.1:\d+)/docs", said)
    assert found is not None
    headers = {"Authorization": f"Bearer {(home / 'demo-token').read_text(encoding='utf-8').strip()}"}
    answers = [
        httpx.post(f"{found[1]}/v1/search", json={"query": DEMO_QUESTION}, headers=headers, timeout=60).json()
        for _ in range(2)
    ]
    orders = [[result["id"] for result in answer["results"]] for answer in answers]
    assert orders[0] == orders[1]
    assert orders[0][0] == CERTIFIED


def test_the_golden_questions_are_asked_after_the_refresh_by_themselves(said: str, home: Path) -> None:
    assert "/dags/retrieval_evaluation" in said
    deadline = time.monotonic() + DEMO_SECONDS
    while not (runs := json.loads(_vouch(home, "evaluate", "--trend", "--json"))) and time.monotonic() < deadline:
        time.sleep(1)  # nobody waits for that DAG
    assert [(run["status"], run["measures"]["queries"]) for run in runs] == [("first", 32)]


def test_stopping_leaves_no_process(said: str, home: Path) -> None:
    assert said
    assert _processes_of(home)
    _vouch(home, "demo", "--stop")
    assert _processes_of(home) == []


def _processes_of(home: Path) -> list[str]:
    found = []
    for process in psutil.process_iter():
        try:
            about = " ".join([*process.cmdline(), *process.environ().values()])
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        if str(home) in about and process.pid != os.getpid():
            found.append(f"{process.pid} {process.name()}")
    return found
