"""Run by test_dags.py as a process of its own: Airflow reconfigures logging and warnings of whoever imports it.

    python airflow_probe.py describe DAGS_FOLDER            what the DAG files define
    python airflow_probe.py run DAGS_FOLDER DAG_ID CONFS    run a DAG to its end, once for each conf of a JSON list

The environment (AIRFLOW_HOME and the rest) is set by the caller. Prints one JSON document after the line "RESULT".
"""

from __future__ import annotations

import importlib
import json
import runpy
import sys
from pathlib import Path
from typing import Any


def describe(dags_folder: str) -> dict[str, Any]:
    loaded = modules_of(dags_folder)

    from airflow.dag_processing.dagbag import DagBag
    from airflow.serialization.serialized_objects import DagSerialization

    first, second = DagBag(dags_folder), DagBag(dags_folder)
    return {
        "package": importlib.import_module("services").__file__,
        "import_errors": first.import_errors,
        "modules": loaded,
        "dags": {name: DagSerialization.to_dict(dag) for name, dag in first.dags.items()},
        "again": {name: DagSerialization.to_dict(dag) for name, dag in second.dags.items()},
        "files": {name: Path(dag.fileloc).name for name, dag in first.dags.items()},
        "edges": {
            name: sorted((task.task_id, below) for task in dag.tasks for below in task.downstream_task_ids)
            for name, dag in first.dags.items()
        },
        "tasks": {name: {task.task_id: about(task) for task in dag.tasks} for name, dag in first.dags.items()},
    }


def modules_of(dags_folder: str) -> list[str]:
    """Every module in this process after it ran the DAG files and nothing else."""
    for file in sorted(Path(dags_folder).glob("*.py")):
        runpy.run_path(str(file))
    return sorted(sys.modules)


def about(task: Any) -> dict[str, Any]:
    """What the scheduler will make of the task, and what its retry policy decides for each kind of error."""
    errors = importlib.import_module("services.errors")
    kinds = {
        "permanent": errors.SourceError("wrong"),
        "transient": errors.StoreUnavailable("gone"),
        "unknown": ValueError("a bug"),
    }
    return {
        "pool": task.pool,
        "mapped": task.is_mapped,
        "map_index_template": task.map_index_template,
        "trigger_rule": task.trigger_rule.value,
        "teardown": task.is_teardown,
        "outlets": [asset.name for asset in task.outlets],
        "retries": task.retries,
        "decisions": {
            kind: task.retry_policy.evaluate(error, try_number=1, max_tries=task.retries).action.value
            for kind, error in kinds.items()
        },
    }


def run(dags_folder: str, dag_id: str, confs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One DAG run after another, each with its `conf`; a task that fails is not tried again."""
    from airflow.dag_processing.dagbag import DagBag
    from airflow.utils.db import initdb

    initdb()
    # Parsed anew for each: `test` leaves the conf of one run in the params of the DAG.
    return [outcome(DagBag(dags_folder).dags[dag_id].test(run_conf=conf)) for conf in confs]


def outcome(run: Any) -> dict[str, Any]:
    """The end of a DAG run: its state, the state of each task by its readable name, what unmapped tasks returned, and
    the asset events it sent."""
    from airflow.models.asset import AssetEvent
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        events = session.scalars(select(AssetEvent).where(AssetEvent.source_run_id == run.run_id))
        return {
            "state": run.state.value,
            "tasks": {
                f"{task.task_id} [{task.rendered_map_index}]" if task.map_index >= 0 else task.task_id: str(task.state)
                for task in run.get_task_instances(session=session)
            },
            "returned": {
                row.task_id: XComModel.deserialize_value(row)
                for row in session.scalars(
                    select(XComModel).where(XComModel.run_id == run.run_id, XComModel.key == "return_value")
                )
                if row.map_index < 0
            },
            "events": [{"asset": event.asset.name, "extra": event.extra} for event in events],
        }


if __name__ == "__main__":
    action, folder, *rest = sys.argv[1:]
    sys.path.append(folder)  # as Airflow's own processes do
    result = describe(folder) if action == "describe" else run(folder, rest[0], json.loads(rest[1]))
    print("RESULT")
    print(json.dumps(result))
