"""services.api.server: the app under gunicorn, as `vouch serve` runs it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import structlog

from services.api.server import warm
from services.errors import StoreUnavailable

from .conftest import Api, FakeSearch

PROGRAM = """
import os, sys
from conftest import Api
from services.logs import configure_logging
from services.api.server import serve

def load():
    configure_logging("info")
    api = Api()
    print(os.getpid(), api.token(), file=sys.stdout, flush=True)
    return api.app

print(os.getpid(), "started", flush=True)
serve(load, port=int(sys.argv[1]), threads=3)
"""


@dataclass
class Running:
    process: subprocess.Popen[str]
    url: str
    token: str
    parent_pid: int
    worker_pid: int


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    port = _free_port()
    home = tmp_path_factory.mktemp("home")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "HOME": str(home), "XDG_RUNTIME_DIR": ""}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(port)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    parent_pid = int(process.stdout.readline().split()[0])
    worker_pid, token = process.stdout.readline().split()
    try:
        yield Running(process, f"http://127.0.0.1:{port}", token, parent_pid, int(worker_pid))
    finally:
        process.kill()
        process.communicate()
    assert list(home.iterdir()) == []  # no control socket, no pid file


def test_the_app_is_loaded_in_the_worker(server: Running) -> None:
    assert server.worker_pid != server.parent_pid


def test_it_answers_over_http(server: Running) -> None:
    headers = {"Authorization": f"Bearer {server.token}"}
    answer = httpx.post(f"{server.url}/v1/search", json={"query": "orders"}, headers=headers)
    assert answer.status_code == 200
    assert answer.json()["index_version"] == 7


def test_a_body_too_large_is_refused_with_and_without_its_length(server: Running) -> None:
    headers = {"X-API-Key": server.token, "Content-Type": "application/json"}
    body = json.dumps({"query": "q" * 100_000}).encode()
    announced = httpx.post(f"{server.url}/v1/search", content=body, headers=headers)
    chunked = httpx.post(f"{server.url}/v1/search", content=iter([body[:50_000], body[50_000:]]), headers=headers)
    for answer in (announced, chunked):
        assert answer.status_code == 413
        assert answer.headers["Content-Type"] == "application/problem+json"


def test_the_longest_id_fits_in_a_request_line(server: Running) -> None:
    headers = {"X-API-Key": server.token}
    path = "%C3%BC" * 1024
    answer = httpx.get(f"{server.url}/v1/assets/{path}", headers=headers)
    assert answer.status_code == 404
    assert answer.json()["type"] == "urn:vouch:problem:asset-not-found"


def test_it_ends_on_a_signal_and_has_logged_only_json(server: Running) -> None:
    httpx.get(f"{server.url}/healthz", headers={"X-Request-ID": "last"})
    started = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    _, logged = server.process.communicate(timeout=20)
    assert time.monotonic() - started < 15
    assert server.process.returncode == 0
    lines = [json.loads(line) for line in logged.splitlines()]
    assert lines[-1]["request_id"] == "last"
    assert server.token not in logged


def test_warming_searches_once_as_a_caller_who_may_see_least() -> None:
    search = FakeSearch()
    warm(Api(search=search).services)
    [(_, caller, _)] = search.asked
    assert (caller.clearance, caller.groups, caller.administrator) == (0, (), False)


def test_an_index_that_is_not_there_yet_does_not_stop_the_server() -> None:
    with structlog.testing.capture_logs() as lines:
        warm(Api(search=FakeSearch(fails_with=lambda _: StoreUnavailable("no index yet"))).services)
    assert [line["event"] for line in lines] == ["warm-up failed"]
