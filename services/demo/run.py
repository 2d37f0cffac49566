"""The demonstration: a catalog pulled by a real Airflow run, a question answered by the real query API."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

import services
from services.demo.airflow import AirflowStandalone, stop_airflow
from services.demo.airflow_api import TaskState
from services.demo.catalog import DEMO_QUESTION, QUESTIONS, SHOP_DATABASE, write_demo_sources
from services.demo.database import create_demo_database
from services.demo.processes import ProcessSession, free_port
from services.embedded import EmbeddedServer
from services.errors import PermanentError, SettingsError, TransientError
from services.retrieval.model import SearchAnswer

Say = Callable[[str], None]

AIRFLOW_DATABASE = "airflow"
DAG_ID = "catalog_refresh"
EVALUATION_DAG_ID = "retrieval_evaluation"
EMBEDDING_POOL = "vouch_embedding"
DAG_FOUND_SECONDS = 120
REFRESH_SECONDS = 900
API_READY_SECONDS = 180
API_STOP_SECONDS = 15
POLL_SECONDS = 0.5
TOKEN_FILE = "demo-token"


@dataclass(frozen=True)
class DemoPlan:
    """What the demonstration needs to know; `new_token` makes an API key that may explain and operate."""

    home: Path
    airflow_port: int
    api_port: int
    new_token: Callable[[], str]


@dataclass(frozen=True)
class DemoOutcome:
    answer: SearchAnswer
    token: str
    urls: dict[str, str]


def run_demo(plan: DemoPlan, say: Say) -> DemoOutcome:
    """Everything from the catalog to the answer; Airflow, API and database go on running until `stop_demo`.

    Raises PermanentError when the refresh did not succeed, with the address where to look.
    """
    server = EmbeddedServer(plan.home)
    for database in (SHOP_DATABASE, AIRFLOW_DATABASE):
        server.ensure_database(database)
    say("the demo shop's database is being built")
    create_demo_database(server.uri(SHOP_DATABASE))
    write_demo_sources(plan.home, server.uri(SHOP_DATABASE))
    airflow_url = _refresh_through_airflow(plan, server, say)
    api_url = _serve(plan, say)
    token = _token(plan, api_url)
    answer = _ask(api_url, token)
    urls = {
        "Airflow (runs, logs, retries)": f"{airflow_url}/dags/{DAG_ID}",
        "Golden questions, asked after each refresh": f"{airflow_url}/dags/{EVALUATION_DAG_ID}",
        "Query API (documentation, try it out)": f"{api_url}/docs",
        "Freshness": f"{api_url}/v1/status",
    }
    return DemoOutcome(answer, token, urls)


def stop_demo(home: Path, say: Say) -> None:
    """Stop API, Airflow and database of this home and wait until none of their processes lives."""
    for name, stopped in (
        ("query API", _api_session(home).stop(patience_seconds=API_STOP_SECONDS)),
        ("Airflow", stop_airflow(home / "airflow")),
        ("database", EmbeddedServer(home).stop()),
    ):
        say(f"{name} {'stopped' if stopped else 'was not running'}")


def _refresh_through_airflow(plan: DemoPlan, server: EmbeddedServer, say: Say) -> str:
    checkout = Path(services.__file__).resolve().parents[1]
    if not (checkout / "dags").is_dir():
        raise SettingsError("the demo needs a checkout of Vouch with its folder dags; this is an installed package")
    airflow = AirflowStandalone(
        home=plan.home / "airflow",
        metadata_uri=server.uri(AIRFLOW_DATABASE),
        dags_folder=checkout / "dags",
        plugins_folder=checkout / "plugins",
        preferred_port=plan.airflow_port,
        environment={"VOUCH_HOME": str(plan.home), "VOUCH_GOLDEN_QUERIES_FILE": str(QUESTIONS)},
    )
    api = airflow.start(say)
    airflow.wait_until_healthy(api, say)
    api.set_pool(EMBEDDING_POOL, 1, "Embedding tasks at a time: each holds the model and wants a processor")
    for dag_id in (DAG_ID, EVALUATION_DAG_ID):
        api.wait_for_dag(dag_id, seconds=DAG_FOUND_SECONDS)
    # Before the refresh, whose event starts it. Nobody waits for it: it runs while the query API starts.
    api.unpause(EVALUATION_DAG_ID)
    run_id = api.trigger(DAG_ID, {})
    say(f"the DAG {DAG_ID} is triggered: {run_id}")
    state = api.watch(DAG_ID, run_id, lambda task: say(_task_line(task)), seconds=REFRESH_SECONDS)
    if state != "success":
        raise PermanentError(f"the refresh ended {state}; see why at {api.url}/dags/{DAG_ID}")
    say("the refresh succeeded")
    return api.url


def _task_line(task: TaskState) -> str:
    seconds = f" ({task.seconds:.0f} s)" if task.seconds is not None else ""
    return f"  {task.label}: {task.state}{seconds}"


def _api_session(home: Path) -> ProcessSession:
    return ProcessSession(home / "api.pid.json")


def _serve(plan: DemoPlan, say: Say) -> str:
    session = _api_session(plan.home)
    running = session.running()
    if running is None:
        session.stop(patience_seconds=0)
        port = free_port(plan.api_port)
        running = session.start(
            [sys.executable, "-m", "services.cli", "serve", "--port", str(port)],
            port=port,
            environment={**os.environ, "VOUCH_HOME": str(plan.home)},
            folder=plan.home,
            log=plan.home / "api.log",
        )
    url = f"http://127.0.0.1:{running.port}"
    say(f"the query API is starting at {url} (log: {plan.home / 'api.log'})")
    deadline = time.monotonic() + API_READY_SECONDS
    while not _is_ready(url):
        if session.running() is None:
            raise PermanentError(f"the query API ended while starting; see {plan.home / 'api.log'}")
        if time.monotonic() > deadline:
            raise TransientError(f"the query API is not ready after {API_READY_SECONDS} s; see {url}/readyz")
        time.sleep(POLL_SECONDS)
    return url


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=API_READY_SECONDS).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


def _token(plan: DemoPlan, api_url: str) -> str:
    """The demo's own token, made once per home."""
    file = plan.home / TOKEN_FILE
    if file.is_file():
        token = file.read_text(encoding="utf-8").strip()
        if _call(api_url, token, "GET", "/v1/status").status_code == httpx.codes.OK:
            return token
    token = plan.new_token()
    file.touch(mode=0o600)
    file.write_text(token + "\n", encoding="utf-8")
    return token


def _ask(api_url: str, token: str) -> SearchAnswer:
    body = {"query": DEMO_QUESTION, "limit": 5, "explain": True}
    response = _call(api_url, token, "POST", "/v1/search", body)
    if response.status_code != httpx.codes.OK:
        raise PermanentError(f"the query API answered {response.status_code}: {response.text}")
    return SearchAnswer.model_validate_json(response.text)


def _call(url: str, token: str, method: str, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.request(method, f"{url}{path}", json=body, headers=headers, timeout=60)
