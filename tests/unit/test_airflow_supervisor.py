"""Starting, finding and ending a process session; the calls of Airflow's REST API against a small stand-in."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import psutil
import pytest
from sqlalchemy.engine import make_url

from services.demo.airflow import AirflowFailed, AirflowStandalone, sqlalchemy_uri, stop_airflow
from services.demo.airflow_api import AirflowApi, AirflowRefused, AirflowUnavailable, TaskState
from services.demo.processes import ProcessSession, RunningSession, free_port

# Starts a child, says both are up, then sleeps; "stubborn" ignores the interrupt in leader and child.
LEADER = """
import signal, subprocess, sys, time
if sys.argv[1] == "stubborn":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("child", child.pid, flush=True)
try:
    time.sleep(600)
except KeyboardInterrupt:
    child.terminate()
    child.wait()
    print("clean end", flush=True)
"""


@pytest.fixture
def session(tmp_path: Path) -> Iterator[ProcessSession]:
    session = ProcessSession(tmp_path / "it.pid.json")
    yield session
    session.stop(patience_seconds=0)


def start(session: ProcessSession, manner: str = "polite") -> RunningSession:
    """A leader and its child, both known to be up."""
    log = session.record.parent / "log"
    command = [sys.executable, "-c", LEADER, manner]
    started = session.start(command, port=1234, environment=dict(os.environ), folder=log.parent, log=log)
    wait_for(lambda: "child" in log.read_text())
    return started


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


class TestProcessSession:
    def test_a_started_session_is_found_again_by_another_object(self, session: ProcessSession) -> None:
        started = start(session)
        assert ProcessSession(session.record).running() == started
        assert started.port == 1234
        assert len(session.members()) == 2

    def test_an_interrupt_lets_the_leader_end_by_itself(self, session: ProcessSession) -> None:
        start(session)
        assert session.stop(patience_seconds=20) is True
        assert "clean end" in (session.record.parent / "log").read_text()
        assert session.running() is None
        assert session.stop(patience_seconds=20) is False

    def test_who_ignores_the_interrupt_is_killed_with_its_children(self, session: ProcessSession) -> None:
        start(session, "stubborn")
        pids = [process.pid for process in session.members()]
        assert session.stop(patience_seconds=0.3) is True
        assert not [pid for pid in pids if is_running(pid)]

    def test_children_are_ended_when_the_leader_was_killed(self, session: ProcessSession) -> None:
        leader = start(session)
        os.kill(leader.pid, signal.SIGKILL)
        wait_for(lambda: session.running() is None)
        (orphan,) = session.members()
        assert session.stop(patience_seconds=20) is True
        assert not is_running(orphan.pid)

    def test_a_stranger_with_the_remembered_pid_is_left_alone(self, session: ProcessSession) -> None:
        started = start(session)
        remembered = session.record.read_text()
        later = replace(started, started=started.started + 1000)
        session.record.write_text(json.dumps(vars(later)))
        assert session.running() is None
        assert session.stop(patience_seconds=0) is False
        assert is_running(started.pid)
        session.record.write_text(remembered)


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_taken_port_gives_way_to_a_free_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert free_port(port) != port
    assert free_port(port) == port


@pytest.mark.parametrize(
    ("libpq", "database", "host"),
    [
        ("postgresql://postgres@/airflow?host=%2Fvar%2Fsome%20where&port=5432", "airflow", "/var/some where"),
        ("postgresql://airflow:secret@db.example:5433/meta", "meta", "db.example"),
    ],
)
def test_the_metadata_uri_is_spelled_for_sqlalchemy(libpq: str, database: str, host: str) -> None:
    url = make_url(sqlalchemy_uri(libpq))
    assert url.drivername == "postgresql+psycopg"
    assert url.database == database
    assert (url.host or url.query["host"]) == host


class StandIn:
    """Answers like Airflow's API server: what `answers` holds under "METHOD path", else 404. Remembers the calls.

    A number is a status; an event is waited for, then it is a 504; of a list each is given once, the last for ever.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {"GET /auth/token": {"access_token": "t0ken"}}
        self.calls: list[tuple[str, Any, str | None]] = []
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                call = f"{self.command} {unquote(self.path)}"
                stand_in.calls.append((call, json.loads(body or "null"), self.headers.get("Authorization")))
                found = stand_in.answers.get(call, 404)
                if isinstance(found, list):
                    found = found.pop(0) if len(found) > 1 else found[0]
                if isinstance(found, threading.Event):
                    found.wait(20)
                    found = 504
                self.send_response(found if isinstance(found, int) else 200)
                self.end_headers()
                self.wfile.write(b"{}" if isinstance(found, int) else json.dumps(found).encode())

            do_GET = do_POST = do_PATCH = answer

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing on stderr."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.api = AirflowApi(f"http://127.0.0.1:{self.server.server_port}")

    def calls_of(self, call: str) -> list[Any]:
        return [body for made, body, _ in self.calls if made == call]


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    stand_in = StandIn()
    thread = threading.Thread(target=stand_in.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield stand_in
    stand_in.server.shutdown()
    stand_in.server.server_close()
    thread.join()


def task(task_id: str, state: str | None, map_index: int = -1, name: str | None = None) -> dict[str, Any]:
    return {"task_id": task_id, "state": state, "map_index": map_index, "rendered_map_index": name, "duration": 1.5}


def test_nobody_listening_is_unavailable() -> None:
    with pytest.raises(AirflowUnavailable, match="does not answer"):
        AirflowApi(f"http://127.0.0.1:{free_port(0)}").health()


def test_an_existing_pool_is_resized(stand_in: StandIn) -> None:
    stand_in.answers |= {"POST /api/v2/pools": 409, "PATCH /api/v2/pools/embedding": {}}
    stand_in.api.set_pool("embedding", 2, "texts")
    assert [body["slots"] for body in stand_in.calls_of("PATCH /api/v2/pools/embedding")] == [2]
    assert {token for call, _, token in stand_in.calls if "pools" in call} == {"Bearer t0ken"}


def test_a_dag_that_cannot_be_imported_is_told_with_its_error(stand_in: StandIn) -> None:
    broken = {"filename": "refresh.py", "stack_trace": "SyntaxError: line 3"}
    stand_in.answers["GET /api/v2/importErrors"] = {"import_errors": [broken]}
    with pytest.raises(AirflowRefused, match=r"refresh\.py cannot be imported: SyntaxError"):
        stand_in.api.wait_for_dag("refresh", seconds=5)


def test_triggering_unpauses_and_passes_the_params(stand_in: StandIn) -> None:
    stand_in.answers |= {
        "PATCH /api/v2/dags/refresh": {},
        "POST /api/v2/dags/refresh/dagRuns": {"dag_run_id": "manual__1"},
    }
    assert stand_in.api.trigger("refresh", {"mode": "full"}) == "manual__1"
    assert stand_in.calls_of("PATCH /api/v2/dags/refresh") == [{"is_paused": False}]
    run = {"logical_date": None, "conf": {"mode": "full"}}
    assert stand_in.calls_of("POST /api/v2/dags/refresh/dagRuns") == [run]


def test_watching_reports_each_change_once_over_all_pages(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.demo.airflow_api.POLL_SECONDS", 0.01)
    run = "GET /api/v2/dags/refresh/dagRuns/manual__2026-11-30T19:28:45+00:00"
    tasks = run + "/taskInstances?limit=100&offset={}&order_by=start_date"
    first = {"total_entries": 101, "task_instances": [task("begin", "success"), task("extract", "running", 0)]}
    second = {"total_entries": 101, "task_instances": [task("verify", None)]}
    done = {"total_entries": 101, "task_instances": [task("begin", "success"), task("extract", "success", 0, "shop")]}
    stand_in.answers |= {
        run: [{"state": "running"}, {"state": "running"}, {"state": "success"}],
        tasks.format(0): [first, first, done],
        tasks.format(100): second,
    }
    changes: list[TaskState] = []
    state = stand_in.api.watch("refresh", "manual__2026-11-30T19:28:45+00:00", changes.append, seconds=20)
    assert state == "success"
    assert [(change.label, change.state) for change in changes] == [
        ("begin", "success"),
        ("extract [0]", "running"),
        ("extract [shop]", "success"),
    ]


def test_a_slow_answer_does_not_end_the_watch(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.demo.airflow_api.REQUEST_SECONDS", 0.5)
    released = threading.Event()
    run = "GET /api/v2/dags/d/dagRuns/r"
    stand_in.answers |= {
        run: [released, {"state": "success"}],
        f"{run}/taskInstances?limit=100&offset=0&order_by=start_date": {"total_entries": 0, "task_instances": []},
    }
    try:
        assert stand_in.api.watch("d", "r", [].append, seconds=20) == "success"
        assert len(stand_in.calls_of(run)) == 2
    finally:
        released.set()


def test_a_run_that_does_not_end_is_given_up(stand_in: StandIn) -> None:
    stand_in.answers |= {
        "GET /api/v2/dags/d/dagRuns/r": {"state": "queued"},
        "GET /api/v2/dags/d/dagRuns/r/taskInstances?limit=100&offset=0&order_by=start_date": {
            "total_entries": 0,
            "task_instances": [],
        },
    }
    with pytest.raises(AirflowUnavailable, match="still 'queued'"):
        stand_in.api.watch("d", "r", [].append, seconds=0)


def test_an_airflow_that_ends_while_starting_is_told_with_its_log(tmp_path: Path) -> None:
    # A metadata database that nobody serves: `airflow standalone` ends by itself.
    nowhere = f"postgresql://nobody@127.0.0.1:{free_port(0)}/airflow"
    airflow = AirflowStandalone(tmp_path / "airflow", nowhere, tmp_path / "dags", tmp_path / "plugins")
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        airflow = replace(airflow, preferred_port=taken.getsockname()[1])
        api = airflow.start(said.append)
        try:
            with pytest.raises(AirflowFailed, match="refused"):
                airflow.wait_until_healthy(api, said.append)
        finally:
            stop_airflow(airflow.home)
    assert "is taken" in said[0]
    assert airflow.session.running() is None
