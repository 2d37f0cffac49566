"""Keep the semantic index fresh: pull every source, score and compose, embed what changed, publish, verify.

Each task is one step of `services.index.refresh`, the same that `vouch refresh` takes. A task imports what it needs
when it runs: this file is parsed every few seconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import Param, dag, get_current_context, task
from airflow.sdk.exceptions import AirflowSkipException
from vouch_tasks import BATCH_NAME, DEFAULTS, EMBEDDING_POOL, INDEX, lease_holder, left_open

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from services.index.refresh import RefreshSteps

DAILY_AT_FOUR = "0 4 * * *"
PARAMS = {
    "source": Param(
        None, type=["null", "string"], title="Source", description="Name of one source; empty refreshes all."
    ),
    "mode": Param(
        "incremental",
        type="string",
        enum=["incremental", "full"],
        title="Mode",
        description="incremental takes what changed; full composes every asset again (unchanged texts stay embedded).",
    ),
    "dry_run": Param(False, type="boolean", title="Dry run", description="Count what would be done, publish nothing."),
}


def refresh_steps() -> AbstractContextManager[RefreshSteps]:
    """The steps of a refresh under the settings of this process."""
    from services.settings import load_settings
    from services.wiring import open_refresh

    return open_refresh(load_settings())


@task
def begin() -> list[str]:
    """Take the lease; the sources to extract. The id of the refresh goes beside it, as XCom `refresh_id`."""
    context = get_current_context()
    params, ti = context["params"], context["ti"]
    with refresh_steps() as steps:
        refresh_id = steps.begin(
            [params["source"]] if params["source"] else None,
            full=params["mode"] == "full",
            dry_run=params["dry_run"],
            holder=lease_holder(ti),
        )
        ti.xcom_push("refresh_id", refresh_id)
        return steps.source_names(refresh_id)


# One source after the other, in the order of `begin`: of two that claim an id, the first owns it.
@task(map_index_template="{{ task.op_kwargs['source_name'] }}", max_active_tis_per_dagrun=1)
def extract(refresh_id: str, source_name: str) -> dict[str, Any]:
    with refresh_steps() as steps:
        return steps.extract(refresh_id, source_name)


# A source that failed does not hold up the others.
@task(trigger_rule="all_done_min_one_success")
def compose(refresh_id: str) -> dict[str, int]:
    with refresh_steps() as steps:
        return steps.compose(refresh_id)


@task
def plan(refresh_id: str) -> list[dict[str, Any]]:
    with refresh_steps() as steps:
        return steps.plan(refresh_id)


@task(pool=EMBEDDING_POOL, map_index_template=BATCH_NAME)
def embed(refresh_id: str, batch: dict[str, Any]) -> dict[str, int]:
    with refresh_steps() as steps:
        return steps.embed(refresh_id, batch)


# Nothing to embed skips `embed`, and publishing goes on all the same.
@task(trigger_rule="none_failed")
def publish(refresh_id: str) -> dict[str, int]:
    with refresh_steps() as steps:
        return steps.publish(refresh_id)


@task(outlets=[INDEX])
def verify(refresh_id: str) -> dict[str, Any]:
    with refresh_steps() as steps:
        report = steps.verify(refresh_id)
    if report["dry_run"]:
        # Skipped, so that no event tells the readers of the index to look.
        raise AirflowSkipException(f"dry run, nothing was published: {report['total']}")
    get_current_context()["outlet_events"][INDEX].extra = {
        "run_id": report["run_id"],
        "index_version": report["index_version"],
        "status": report["status"],
        **report["total"],
    }
    return report


@task
def release() -> None:
    """Close the refresh when it did not come to its end, so that the next one need not wait for the lease."""
    ti = get_current_context()["ti"]
    refresh_id = ti.xcom_pull(task_ids="begin", key="refresh_id")
    why = left_open(ti, "verify")
    if refresh_id is None or why is None:
        return
    with refresh_steps() as steps:
        steps.fail(refresh_id, why)


@dag(
    # Without a start date, switching the DAG on starts nothing by itself: the first run is the next four o'clock.
    schedule=DAILY_AT_FOUR,
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULTS,
    params=PARAMS,
    doc_md=Path(__file__).with_suffix(".md").read_text(encoding="utf-8"),
    tags=["vouch"],
)
def catalog_refresh() -> None:
    sources = begin()
    refresh_id = sources["refresh_id"]
    extracted = extract.partial(refresh_id=refresh_id).expand(source_name=sources)
    composed = compose(refresh_id)
    batches = plan(refresh_id)
    embedded = embed.partial(refresh_id=refresh_id).expand(batch=batches)
    published = publish(refresh_id)
    verified = verify(refresh_id)
    steps = [sources, extracted, composed, batches, embedded, published, verified]

    extracted >> composed >> batches >> embedded >> published >> verified
    # A run with a source that failed ends red, although the others were published.
    extracted >> EmptyOperator(task_id="every_source_listed")
    # A teardown, so that its own end does not decide the colour of the run. It waits for every task: one may still
    # write when another has failed.
    steps >> release().as_teardown()


catalog_refresh()
