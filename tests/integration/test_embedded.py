"""The embedded server: starts once, survives its starter, heals after a crash, stops only itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import psycopg
import pytest

from services import embedded
from services.embedded import EmbeddedServer
from services.errors import SettingsError, StoreUnavailable

START = """
import pathlib, sys
from services.embedded import EmbeddedServer
EmbeddedServer(pathlib.Path(sys.argv[1])).start()
"""


@pytest.fixture
def own_server() -> Iterator[EmbeddedServer]:
    """A server of the test's own, not started: it may be killed without taking the others' away."""
    with TemporaryDirectory(prefix="vouch-own-") as folder:
        server = EmbeddedServer(Path(folder) / "a 'quoted' home")
        yield server
        server.stop()


def answer(server: EmbeddedServer, query: str, database: str = "postgres") -> object:
    with psycopg.connect(server.uri(database)) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


def postmaster_pid(server: EmbeddedServer) -> int:
    return int((server.data_folder / "postmaster.pid").read_text().splitlines()[0])


def test_is_tuned_and_durable(postgres_server: EmbeddedServer) -> None:
    found = {
        name: answer(postgres_server, f"SHOW {name}")
        for name in ("shared_buffers", "max_connections", "random_page_cost", "synchronous_commit", "fsync")
    }
    assert found == {
        "shared_buffers": "256MB",
        "max_connections": "200",
        "random_page_cost": "1.1",
        "synchronous_commit": "on",
        "fsync": "on",
    }


def test_listens_on_no_network_address(postgres_server: EmbeddedServer) -> None:
    assert answer(postgres_server, "SHOW listen_addresses") == ""


def test_has_pgvector(database_uri: str) -> None:
    with psycopg.connect(database_uri) as connection:
        connection.execute("CREATE EXTENSION vector")
        assert connection.execute("SELECT '[3,4]'::vector <-> '[0,0]'").fetchone() == (5.0,)


def test_start_is_idempotent(postgres_server: EmbeddedServer) -> None:
    before = postmaster_pid(postgres_server)
    postgres_server.start()
    assert postmaster_pid(postgres_server) == before


def test_client_environment_does_not_redirect_the_uri(
    postgres_server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPORT", "6543")
    monkeypatch.setenv("PGUSER", "nobody")
    assert answer(postgres_server, "SELECT current_user") == "postgres"


@pytest.mark.parametrize("name", ["plain", 'Odd "name" with / ? and ü'])
def test_ensure_database_is_idempotent_and_takes_any_name(postgres_server: EmbeddedServer, name: str) -> None:
    postgres_server.ensure_database(name)
    postgres_server.ensure_database(name)
    assert answer(postgres_server, "SELECT current_database()", name) == name


def test_two_processes_may_make_the_first_start_together_and_it_outlives_them(own_server: EmbeddedServer) -> None:
    starters = [subprocess.Popen([sys.executable, "-c", START, str(own_server.home)]) for _ in range(2)]
    assert [starter.wait(90) for starter in starters] == [0, 0]
    assert own_server.running()
    assert answer(own_server, "SELECT 1") == 1


def test_restarts_after_a_crash_with_its_data(own_server: EmbeddedServer) -> None:
    own_server.start()
    own_server.ensure_database("kept")
    crash(own_server)
    assert not own_server.running()
    own_server.start()
    assert answer(own_server, "SELECT current_database()", "kept") == "kept"


def test_a_stale_pid_file_that_names_a_living_stranger_is_no_server(own_server: EmbeddedServer) -> None:
    own_server.start()
    crash(own_server)
    pid_file = own_server.data_folder / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    assert not own_server.running()
    assert own_server.stop() is False
    own_server.start()
    assert answer(own_server, "SELECT 1") == 1


def crash(server: EmbeddedServer) -> None:
    """Kill the postmaster as an out-of-memory killer would, and wait until its children have gone too."""
    postmaster = psutil.Process(postmaster_pid(server))
    children = postmaster.children()
    postmaster.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(children, timeout=30)
    assert all(child.status() == psutil.STATUS_ZOMBIE for child in alive)


def test_stop_says_whether_there_was_something_to_stop(own_server: EmbeddedServer) -> None:
    assert own_server.stop() is False
    own_server.start()
    assert own_server.stop() is True
    assert not own_server.running()
    assert own_server.stop() is False


def test_stopping_a_server_does_not_wait_for_open_sessions(own_server: EmbeddedServer) -> None:
    own_server.start()
    connection = psycopg.connect(own_server.uri("postgres"))
    connection.execute("SELECT 1")
    assert own_server.stop() is True
    connection.close()


def test_a_long_path_gets_a_short_private_socket_folder() -> None:
    with TemporaryDirectory(prefix="vouch-long-") as folder:
        server = EmbeddedServer(Path(folder) / ("deep" * 15) / ("er" * 20))
        server.start()
        try:
            assert answer(server, "SELECT 1") == 1
            assert server.socket_folder.stat().st_mode & 0o077 == 0
        finally:
            server.stop()
            server.socket_folder.rmdir()


def test_somebody_elses_socket_folder_is_refused() -> None:
    with TemporaryDirectory(prefix="vouch-long-") as folder:
        server = EmbeddedServer(Path(folder) / ("deep" * 15) / ("er" * 20))
        server.socket_folder.mkdir()
        server.socket_folder.chmod(0o777)
        try:
            with pytest.raises(SettingsError, match="not private"):
                server.start()
        finally:
            server.socket_folder.rmdir()


def test_a_folder_with_other_contents_is_left_alone(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path)
    server.data_folder.mkdir()
    (server.data_folder / "letter.txt").write_text("dear reader")
    with pytest.raises(SettingsError, match="not a PostgreSQL data folder"):
        server.start()
    assert (server.data_folder / "letter.txt").read_text() == "dear reader"


def test_data_of_another_major_version_names_the_fix(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path)
    server.data_folder.mkdir()
    (server.data_folder / "PG_VERSION").write_text("12\n")
    with pytest.raises(SettingsError, match="made by PostgreSQL 12"):
        server.start()


def test_a_home_that_is_a_file_names_the_setting(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match="VOUCH_HOME"):
        EmbeddedServer(tmp_path / "file").start()


def test_binaries_that_cannot_be_run_name_the_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "initdb").touch(mode=0o600)
    monkeypatch.setattr(embedded, "_binaries", lambda: tmp_path)
    with pytest.raises(SettingsError, match="VOUCH_DATABASE_URL"):
        EmbeddedServer(tmp_path / "home").start()


def test_a_stopped_server_cannot_be_given_databases(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="db start"):
        EmbeddedServer(tmp_path).ensure_database("any")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_ordinary_user_runs_it_as_themselves() -> None:
    with TemporaryDirectory(prefix="vouch-user-") as folder:
        os.chown(folder, 65534, 65534)
        server = EmbeddedServer(Path(folder))
        child = os.fork()  # not a new interpreter: the other user may be unable to read this one
        if child == 0:
            try:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                server.start()
                os._exit(0)
            finally:
                os._exit(1)
        try:
            assert os.waitpid(child, 0)[1] == 0
            assert server.data_folder.stat().st_uid == 65534
            assert answer(server, "SELECT 1") == 1
        finally:
            server.stop()


@pytest.mark.parametrize("name", ['a "home"', "a $HOME", "a `home`", "a \\home"])
def test_a_home_that_a_shell_would_read_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="VOUCH_HOME"):
        EmbeddedServer(tmp_path / name).start()
