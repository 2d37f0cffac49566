"""`airflow standalone` for one machine: started in a process session of its own, watched over REST, stopped for good.

Airflow itself is not imported: it runs as a command, with all its configuration in the environment.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from services.demo.airflow_api import AirflowApi, AirflowUnavailable
from services.demo.processes import ProcessSession, RunningSession, free_port
from services.errors import PermanentError

COMPONENTS = frozenset({"metadatabase", "scheduler", "triggerer", "dag_processor"})
HEALTHY_SECONDS = 300
STOP_SECONDS = 20
POLL_SECONDS = 1.0
LOG_TAIL_LINES = 15

# The log servers of scheduler and triggerer listen on every interface, and no option tells them not to. Nobody needs
# them here: the API server reads the same files. `airflow standalone` starts its parts by the bare name `airflow`, so
# a command of that name that stands first in PATH can leave them out.
COMMAND = """#!/bin/sh
case "$1" in
    scheduler | triggerer) exec {python} -m airflow "$@" --skip-serve-logs ;;
    *) exec {python} -m airflow "$@" ;;
esac
"""


class AirflowFailed(PermanentError):
    """Airflow ended while it was waited for; the message holds the end of its log."""


@dataclass(frozen=True)
class AirflowStandalone:
    """One Airflow on loopback that makes everybody an administrator: for a demonstration, never for a network.

    `home` becomes AIRFLOW_HOME and holds log and pid file; `metadata_uri` is a libpq URI of an existing database;
    `preferred_port` gives way when it is taken; `environment` is added to what the tasks see. Airflow outlives the
    process that started it.
    """

    home: Path
    metadata_uri: str
    dags_folder: Path
    plugins_folder: Path
    preferred_port: int = 8080
    parallelism: int = 2
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        return self.home / "standalone.log"

    @property
    def session(self) -> ProcessSession:
        return airflow_session(self.home)

    def start(self, say: Callable[[str], None]) -> AirflowApi:
        """Start Airflow unless ours runs already; says which port it took. Returns at once, before it is healthy."""
        running = self.session.running()
        if running is not None:
            say(f"Airflow runs already: {_url(running.port)}")
            return AirflowApi(_url(running.port))
        # Parts of a crashed one would serve the same database beside the new one.
        self.session.stop(patience_seconds=0)
        self.home.mkdir(parents=True, exist_ok=True)
        port = free_port(self.preferred_port)
        if port != self.preferred_port:
            say(f"port {self.preferred_port} is taken, Airflow uses {port}")
        started = self._launch(port)
        say(f"Airflow is starting at {_url(started.port)} (log: {self.log})")
        return AirflowApi(_url(started.port))

    def wait_until_healthy(self, api: AirflowApi, say: Callable[[str], None]) -> None:
        """Return when every component is healthy, saying each as it becomes so.

        Raises AirflowFailed when Airflow ends meanwhile, AirflowUnavailable after five minutes.
        """
        deadline = time.monotonic() + HEALTHY_SECONDS
        healthy: frozenset[str] = frozenset()
        while COMPONENTS - healthy:
            if self.session.running() is None:
                raise AirflowFailed(f"Airflow ended while starting; the end of {self.log}:\n{self._log_tail()}")
            if time.monotonic() > deadline:
                missing = ", ".join(sorted(COMPONENTS - healthy))
                raise AirflowUnavailable(
                    f"Airflow is not healthy after {HEALTHY_SECONDS} s ({missing}); see {self.log}"
                )
            now = _healthy_components(api)
            for component in sorted(now - healthy):
                say(f"Airflow: {component.replace('_', ' ')} is healthy")
            healthy |= now
            time.sleep(POLL_SECONDS)

    def _launch(self, port: int) -> RunningSession:
        commands = self.home / "bin"
        commands.mkdir(exist_ok=True)
        command = commands / "airflow"
        command.write_text(COMMAND.format(python=shlex.quote(sys.executable)), encoding="utf-8")
        command.chmod(0o755)
        inherited = {
            name: value
            for name, value in os.environ.items()
            # Another Airflow's configuration must not reach ours; connections are the user's and stay.
            if not name.startswith("AIRFLOW_") or name.startswith("AIRFLOW_CONN_")
        }
        environment = {**inherited, **self.environment, **self._configuration(port)}
        environment["PATH"] = f"{commands}{os.pathsep}{environment.get('PATH', os.defpath)}"
        return self.session.start(
            [command, "standalone"], port=port, environment=environment, folder=self.home, log=self.log
        )

    def _configuration(self, port: int) -> dict[str, str]:
        """Airflow's configuration as environment variables."""
        database = sqlalchemy_uri(self.metadata_uri)
        options = {
            "CORE__EXECUTOR": "LocalExecutor",
            "CORE__PARALLELISM": str(self.parallelism),
            "CORE__LOAD_EXAMPLES": "False",
            "CORE__DAGS_FOLDER": str(self.dags_folder),
            "CORE__PLUGINS_FOLDER": str(self.plugins_folder),
            "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "CORE__EXECUTION_API_SERVER_URL": f"{_url(port)}/execution/",
            "API__HOST": "127.0.0.1",
            "API__PORT": str(port),
            "API__BASE_URL": _url(port),
            "DATABASE__SQL_ALCHEMY_CONN": database,
            "DATABASE__SQL_ALCHEMY_CONN_ASYNC": database,
            "DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
            "DAG_PROCESSOR__PARSING_PROCESSES": "1",
            # A task that loads a model on a small machine makes the default of 5 s too short.
            "WORKERS__EXECUTION_API_TIMEOUT": "30",
        }
        configuration = {f"AIRFLOW__{option}": value for option, value in options.items()}
        return {"AIRFLOW_HOME": str(self.home), "PYTHONUNBUFFERED": "1", "NO_COLOR": "1", **configuration}

    def _log_tail(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-LOG_TAIL_LINES:])


def airflow_session(home: Path) -> ProcessSession:
    """The processes of the Airflow whose home this is."""
    return ProcessSession(home / "standalone.pid.json")


def stop_airflow(home: Path) -> bool:
    """Stop the Airflow of this home and wait until none of its processes lives; False when none did."""
    return airflow_session(home).stop(patience_seconds=STOP_SECONDS)


def sqlalchemy_uri(libpq_uri: str) -> str:
    """The same database in SQLAlchemy's spelling, with psycopg 3 as the driver.

    Slashes stay unescaped: a percent sign would be taken for an interpolation where the URI is written to a file.
    """
    parts = urlsplit(libpq_uri)
    query = urlencode(parse_qsl(parts.query), safe="/", quote_via=quote)
    return (
        f"postgresql+psycopg://{parts.netloc}{parts.path}?{query}"
        if query
        else (f"postgresql+psycopg://{parts.netloc}{parts.path}")
    )


def _url(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def _healthy_components(api: AirflowApi) -> frozenset[str]:
    try:
        return frozenset(name for name, status in api.health().items() if status == "healthy")
    except AirflowUnavailable:
        return frozenset()  # nobody listens yet
