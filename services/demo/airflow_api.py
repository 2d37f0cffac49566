"""The few calls of Airflow's REST API that the demo makes. Airflow itself is not imported."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from services.errors import PermanentError, TransientError

REQUEST_SECONDS = 30
PAGE_SIZE = 100  # Airflow's own upper limit of a page
POLL_SECONDS = 1.0
FINISHED = frozenset({"success", "failed"})


class AirflowUnavailable(TransientError):
    """Airflow does not answer, or not in time."""


class AirflowSlow(AirflowUnavailable):
    """Somebody listens and did not answer in time."""


class AirflowRefused(PermanentError):
    """Airflow answered with an error; the message holds its reason."""


@dataclass(frozen=True)
class TaskState:
    """One task of a DAG run as it stands. `label` names a mapped task as the UI does: "extract [shop]".

    `map_index` is -1 for a task that is not mapped; `seconds` is None before it starts.
    """

    task_id: str
    map_index: int
    label: str
    state: str
    seconds: float | None


@dataclass
class AirflowApi:
    """A client of one Airflow on loopback whose simple auth manager makes everybody an administrator."""

    url: str
    _token: str = ""

    def health(self) -> dict[str, str]:
        """The status of each component ("healthy", "unhealthy"). Raises AirflowUnavailable while nobody listens."""
        components = self._send("GET", "/api/v2/monitor/health")
        return {name: str(about["status"]) for name, about in components.items() if about and about["status"]}

    def set_pool(self, name: str, slots: int, description: str) -> None:
        """Create the pool or give it this size."""
        body = {"name": name, "slots": slots, "description": description, "include_deferred": False}
        try:
            self._call("POST", "/api/v2/pools", body)
        except AirflowRefused:
            self._call("PATCH", f"/api/v2/pools/{name}", body)

    def wait_for_dag(self, dag_id: str, *, seconds: float) -> None:
        """Return once the DAG is parsed; raises AirflowRefused with the import error when it cannot be."""
        deadline = time.monotonic() + seconds
        while True:
            errors = self._call("GET", "/api/v2/importErrors")["import_errors"]
            if errors:
                raise AirflowRefused(f"{errors[0]['filename']} cannot be imported: {errors[0]['stack_trace']}")
            known = self._call("GET", f"/api/v2/dags?dag_id_pattern={dag_id}")["dags"]
            if any(dag["dag_id"] == dag_id for dag in known):
                return
            if time.monotonic() > deadline:
                raise AirflowUnavailable(f"Airflow did not find the DAG {dag_id!r} in {seconds:.0f} s")
            time.sleep(POLL_SECONDS)

    def unpause(self, dag_id: str) -> None:
        """Let the schedule of the DAG start runs."""
        self._call("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": False})

    def trigger(self, dag_id: str, conf: Mapping[str, Any]) -> str:
        """Unpause the DAG, start a run with these params and return the run's id."""
        self.unpause(dag_id)
        body = {"logical_date": None, "conf": dict(conf)}
        return str(self._call("POST", f"/api/v2/dags/{dag_id}/dagRuns", body)["dag_run_id"])

    def watch(self, dag_id: str, dag_run_id: str, on_change: Callable[[TaskState], None], *, seconds: float) -> str:
        """Report each task state once as it changes, and return the run's final state: "success" or "failed".

        A busy machine may delay an answer: AirflowSlow is met with another try until `seconds` have passed.
        """
        deadline = time.monotonic() + seconds
        run = f"/api/v2/dags/{dag_id}/dagRuns/{quote(dag_run_id, safe='')}"  # it holds a time with colons and a plus
        seen: dict[tuple[str, int], str] = {}
        while True:
            try:
                # The run's state first: when it has ended, the tasks read after it are final too.
                state = str(self._call("GET", run)["state"])
                tasks = list(self._tasks(run))
            except AirflowSlow:
                if time.monotonic() > deadline:
                    raise
                continue
            for task in tasks:
                if seen.get((task.task_id, task.map_index)) != task.state:
                    seen[task.task_id, task.map_index] = task.state
                    on_change(task)
            if state in FINISHED:
                return state
            if time.monotonic() > deadline:
                raise AirflowUnavailable(f"run {dag_run_id} of {dag_id} is still {state!r} after {seconds:.0f} s")
            time.sleep(POLL_SECONDS)

    def _tasks(self, run: str) -> Iterator[TaskState]:
        """The task instances of a run that have a state, in the order in which they started."""
        offset = 0
        while True:
            query = f"limit={PAGE_SIZE}&offset={offset}&order_by=start_date"
            page = self._call("GET", f"{run}/taskInstances?{query}")
            yield from (_task_state(task) for task in page["task_instances"] if task["state"])
            offset += PAGE_SIZE
            if offset >= page["total_entries"]:
                return

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        if not self._token:
            self._token = str(self._send("GET", "/auth/token")["access_token"])
        return self._send(method, path, body)

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        try:
            # Loopback: a proxy of the environment must not see it.
            with httpx.Client(base_url=self.url, timeout=REQUEST_SECONDS, trust_env=False) as client:
                answer = client.request(method, path, json=body, headers=headers)
        except httpx.ReadTimeout as error:
            raise AirflowSlow(f"Airflow at {self.url} does not answer in {REQUEST_SECONDS} s; try again") from error
        except httpx.TransportError as error:
            raise AirflowUnavailable(f"Airflow at {self.url} does not answer: {error}") from error
        if answer.status_code >= 500:
            raise AirflowUnavailable(f"Airflow at {self.url} failed on {path}: {answer.status_code}")
        if answer.status_code >= 400:
            raise AirflowRefused(f"Airflow refused {method} {path}: {answer.status_code} {answer.text}")
        return answer.json()


def _task_state(task: Mapping[str, Any]) -> TaskState:
    name, map_index = str(task["task_id"]), int(task["map_index"])
    # The readable name of a mapped task is known once it runs.
    which = task["rendered_map_index"] or map_index
    label = name if map_index < 0 else f"{name} [{which}]"
    return TaskState(name, map_index, label, str(task["state"]), task["duration"])
