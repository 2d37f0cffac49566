"""What the tasks of all our DAGs have in common; no DAG itself (see .airflowignore)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import Asset, ExceptionRetryPolicy, RetryAction, RetryRule

from services.errors import PermanentError, TransientError

EMBEDDING_POOL = "vouch_embedding"
BATCH_NAME = (
    "{{ task.op_kwargs['batch']['source'] }}: "
    "batch {{ task.op_kwargs['batch']['number'] }}, {{ task.op_kwargs['batch']['texts'] }} texts"
)
INDEX = Asset("vouch_index")

RETRY_POLICY = ExceptionRetryPolicy(
    rules=[
        RetryRule(PermanentError, RetryAction.FAIL, reason="fails again until somebody changes something"),
        RetryRule(TransientError, RetryAction.RETRY, reason="may succeed when tried again"),
    ]
)
DEFAULTS = {
    "retries": 4,
    "retry_delay": timedelta(seconds=15),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=10),
    "retry_policy": RETRY_POLICY,
}


def lease_holder(ti: Any) -> str:
    """This DAG run as the holder of the lease.

    A later run of the same DAG may take over from a dead one: it knows it by what stands before the last colon.
    """
    return f"airflow:{ti.dag_id}:{ti.run_id.replace(':', '')}"


def left_open(ti: Any, last_step: str) -> str | None:
    """Why the DAG run stopped before `last_step` was done; None when it was done, or skipped on purpose."""
    states = ti.get_task_states(dag_id=ti.dag_id, run_ids=[ti.run_id])[ti.run_id]
    if states.get(last_step) in {"success", "skipped"}:
        return None
    failed = ", ".join(sorted(name for name, state in states.items() if state == "failed"))
    return f"Airflow run {ti.run_id} ended early; failed: {failed or 'nothing, it was stopped'}"
