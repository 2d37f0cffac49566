"""Score what is published by the rules of now, and ask the gate of every asset, without pulling a catalog.

Each task is one step of `services.index.reevaluation`, the same that `vouch gate evaluate` takes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import Param, dag, get_current_context, task
from airflow.sdk.exceptions import AirflowSkipException
from vouch_tasks import BATCH_NAME, DEFAULTS, EMBEDDING_POOL, INDEX, lease_holder, left_open

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from services.index.reevaluation import Reevaluation

SUNDAYS_AT_SIX = "0 6 * * 0"  # after the refresh of that day
PARAMS = {
    "threshold": Param(
        None,
        type=["null", "number"],
        minimum=0,
        maximum=100,
        title="Threshold",
        description="Least curation score, this once: the next refresh goes back to the setting. Empty: the setting.",
    ),
    "dry_run": Param(
        False, type="boolean", title="Dry run", description="Count who would leave and enter; change nothing."
    ),
}


def reevaluation() -> AbstractContextManager[Reevaluation]:
    """The steps of a reevaluation under the settings of this process and the params of this run."""
    from services.settings import load_settings
    from services.wiring import open_reevaluation

    return open_reevaluation(load_settings(), threshold=get_current_context()["params"]["threshold"])


@task
def preview() -> dict[str, Any]:
    """Who would leave and enter, by source and type."""
    with reevaluation() as steps:
        return steps.preview()


@task
def begin() -> str:
    """Take the lease; the id of the reevaluation."""
    context = get_current_context()
    if context["params"]["dry_run"]:
        raise AirflowSkipException("dry run: preview has told what would change")
    with reevaluation() as steps:
        return steps.begin(lease_holder(context["ti"]))


@task
def rescore(reevaluation_id: str) -> dict[str, int]:
    with reevaluation() as steps:
        return steps.rescore(reevaluation_id)


@task
def plan(reevaluation_id: str) -> list[dict[str, Any]]:
    with reevaluation() as steps:
        return steps.plan(reevaluation_id)


@task(pool=EMBEDDING_POOL, map_index_template=BATCH_NAME)
def embed(reevaluation_id: str, batch: dict[str, Any]) -> dict[str, int]:
    with reevaluation() as steps:
        return steps.embed(reevaluation_id, batch)


# Nothing to embed skips `embed`, and the gate is asked all the same; a dry run skips `begin` too, and all after it.
@task(trigger_rule="none_failed_min_one_success")
def publish(reevaluation_id: str) -> dict[str, int]:
    with reevaluation() as steps:
        return steps.publish(reevaluation_id)


@task(outlets=[INDEX])
def verify(reevaluation_id: str) -> dict[str, Any]:
    with reevaluation() as steps:
        report = steps.verify(reevaluation_id)
    get_current_context()["outlet_events"][INDEX].extra = report
    return report


@task
def release() -> None:
    """Close the reevaluation when it did not come to its end, so that the next run need not wait for the lease."""
    ti = get_current_context()["ti"]
    reevaluation_id = ti.xcom_pull(task_ids="begin")
    why = left_open(ti, "verify")
    if reevaluation_id is None or why is None:
        return
    with reevaluation() as steps:
        steps.fail(reevaluation_id, why)


@dag(
    schedule=SUNDAYS_AT_SIX,
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULTS,
    params=PARAMS,
    doc_md=Path(__file__).with_suffix(".md").read_text(encoding="utf-8"),
    tags=["vouch"],
)
def curation_reevaluation() -> None:
    previewed = preview()
    reevaluation_id = begin()
    rescored = rescore(reevaluation_id)
    batches = plan(reevaluation_id)
    embedded = embed.partial(reevaluation_id=reevaluation_id).expand(batch=batches)
    published = publish(reevaluation_id)
    verified = verify(reevaluation_id)
    steps = [previewed, reevaluation_id, rescored, batches, embedded, published, verified]

    previewed >> reevaluation_id >> rescored >> batches >> embedded >> published >> verified
    # A teardown, so that its own end does not decide the colour of the run. It waits for every task: one may still
    # write when another has failed.
    steps >> release().as_teardown()


curation_reevaluation()
