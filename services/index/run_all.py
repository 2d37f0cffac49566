"""A whole refresh in one process: what the command line does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from services.errors import VouchError
from services.index.refresh import RefreshSteps


def run_all(
    steps: RefreshSteps, source_names: Sequence[str] | None, *, full: bool, dry_run: bool, holder: str
) -> dict[str, Any]:
    """Every step in order; the run's report. A source that fails does not hold up the others.

    Raises what a step raises, after the run was marked as failed; and when no source at all could be listed.
    """
    run_id = steps.begin(source_names, full=full, dry_run=dry_run, holder=holder)
    try:
        _extract_all(steps, run_id)
        steps.compose(run_id)
        for batch in steps.plan(run_id):
            steps.embed(run_id, batch)
        steps.publish(run_id)
        return steps.verify(run_id)
    except BaseException as error:
        # Also when interrupted from the keyboard: the next run must not wait for this one's lease.
        steps.fail(run_id, str(error) or type(error).__name__)
        raise


def _extract_all(steps: RefreshSteps, run_id: str) -> None:
    failures: list[VouchError] = []
    names = steps.source_names(run_id)
    for name in names:
        try:
            steps.extract(run_id, name)
        except VouchError as error:
            failures.append(error)
    if len(failures) == len(names):
        raise failures[0]
