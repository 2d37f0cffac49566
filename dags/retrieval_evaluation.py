"""Ask the golden queries after each change of the index, keep the trend, and turn red when quality fell.

The task is one call into `services.evaluation.check`, the same that `vouch evaluate --record` makes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.sdk import Param, dag, get_current_context, task
from airflow.sdk.exceptions import AirflowSkipException
from vouch_tasks import DEFAULTS, INDEX

NOTHING_TO_ASK = (
    "there are no golden queries to ask; set VOUCH_GOLDEN_QUERIES_FILE to a file with lines of"
    ' {"qid": "...", "question": "...", "gold": ["asset id"]}'
)
PARAMS = {
    "accept": Param(
        False,
        type="boolean",
        title="Accept",
        description="Take the level of this run for the new baseline, whatever comes out.",
    ),
}


@task
def evaluate() -> dict[str, Any]:
    from services.evaluation.golden import read_queries
    from services.settings import load_settings
    from services.wiring_evaluation import open_quality_check

    settings = load_settings()
    if settings.golden_queries_file is None:
        raise AirflowSkipException(NOTHING_TO_ASK)
    queries = read_queries(settings.golden_queries_file)
    with open_quality_check(settings) as check:
        return check.run(queries, accept=get_current_context()["params"]["accept"])


@dag(
    # Each event of the index: catalog_refresh and curation_reevaluation send one. Those that come while a run is on
    # are answered by one run after it.
    schedule=INDEX,
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULTS,
    params=PARAMS,
    doc_md=Path(__file__).with_suffix(".md").read_text(encoding="utf-8"),
    tags=["vouch"],
)
def retrieval_evaluation() -> None:
    evaluate()


retrieval_evaluation()
