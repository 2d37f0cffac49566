"""`vouch evaluate`: how well the ranking answers questions with known answers, and whether it once did better."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from services.cli.common import (
    console,
    print_json,
    print_table,
    settings_for_command,
    shown_progress,
    split_list,
)
from services.errors import SettingsError
from services.evaluation.check import Asked, Checked, QualityCheck, describe_unreachable
from services.evaluation.golden import GoldenQuery, read_queries
from services.evaluation.metrics import NDCG_DEPTH, Judged, ndcg_at, summary
from services.evaluation.quality import RANKS_KEPT
from services.evaluation.store import PastEvaluation
from services.retrieval.model import LIMIT_MAX
from services.settings import PREFIX, Settings
from services.wiring_evaluation import open_quality_check

EXIT_REFUSED = 3
QUERIES_SHOWN = 10
TREND_SHOWN = 20
QIDS_SHOWN = 5


@click.command()
@click.option(
    "--queries",
    type=click.Path(path_type=Path, dir_okay=False),
    help=f"Lines of {{qid, question, gold}}; {PREFIX}GOLDEN_QUERIES_FILE when left out.",
)
@click.option("--source", "sources", multiple=True, help="Only assets of this source; may stand more than once.")
@click.option("--k", "depths", default="1,5,10", show_default=True, help="Depths of recall.")
@click.option("--record", is_flag=True, help="Keep the run, and refuse (exit 3) what fell, as the DAG does.")
@click.option("--accept", is_flag=True, help="Keep the run as the new baseline, whatever came out.")
@click.option("--trend", is_flag=True, help="Ask nothing; show the runs that are kept.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, with the ranks per query.")
def evaluate(
    queries: Path | None,
    sources: tuple[str, ...],
    depths: str,
    record: bool,
    accept: bool,
    trend: bool,
    as_json: bool,
) -> None:
    """Measure the ranking on questions with known answers."""
    wanted = _depths(depths)
    settings = settings_for_command()
    if trend:
        if queries or sources or record or accept:
            raise click.UsageError("--trend asks nothing: it goes with --json alone")
        _show_trend(settings, as_json=as_json)
        return
    if (record or accept) and (sources or wanted[-1] > RANKS_KEPT):
        raise click.UsageError(f"a run that is kept asks the whole index, {RANKS_KEPT} ranks deep")
    golden = read_queries(_file(queries, settings))
    with open_quality_check(settings) as check:
        asked = _ask(check, golden, sources, max(*wanted, RANKS_KEPT))
        checked = check.keep(asked, accept=accept) if record or accept else None
    has_fallen = checked is not None and checked.fell
    if asked.unreachable and not has_fallen:  # the explanation of a fall lists them too
        click.echo(f"{len(asked.unreachable)} gold ids cannot be found:", err=True)
        for line in describe_unreachable(asked.unreachable):
            click.echo(f"  {line}", err=True)
    _print(asked, checked, wanted, as_json=as_json)
    if checked is not None and checked.fell:
        click.echo(checked.explanation(), err=True)
        sys.exit(EXIT_REFUSED)


def _file(given: Path | None, settings: Settings) -> Path:
    file = given or settings.golden_queries_file
    if file is None:
        raise SettingsError(f"there are no queries to ask; give --queries FILE, or set {PREFIX}GOLDEN_QUERIES_FILE")
    return file


def _depths(text: str) -> list[int]:
    try:
        depths = sorted({int(part) for part in split_list(text)})
    except ValueError:
        depths = []
    if not depths or depths[0] < 1 or depths[-1] > LIMIT_MAX:
        raise click.BadParameter(f"give whole numbers from 1 to {LIMIT_MAX}, as in 1,5,10", param_hint="--k")
    return depths


def _ask(check: QualityCheck, golden: Sequence[GoldenQuery], sources: Sequence[str], depth: int) -> Asked:
    with shown_progress() as progress:
        return check.ask(
            golden,
            sources=sources,
            depth=depth,
            progress=lambda done, total: progress("evaluate", "", done, total),
        )


def _print(asked: Asked, checked: Checked | None, depths: Sequence[int], *, as_json: bool) -> None:
    measured = [item.first(max(*depths, NDCG_DEPTH)) for item in asked.judged]
    measures = summary(measured, depths)
    if as_json:
        per_query = [{"qid": item.qid, "gold_ranks": dict(item.gold_ranks)} for item in measured]
        kept = {} if checked is None else {"recorded": checked.report()}
        print_json({**measures, "per_query": per_query, **kept})
        return
    rows = [(name, f"{value:.4f}" if name != "queries" else int(value)) for name, value in measures.items()]
    print_table(("measure", "value"), rows)
    _print_worst(asked)
    if checked is not None:
        reasons = "; ".join(checked.decision.verdict.reasons)
        console.print(f"\nkept as {checked.decision.status}: {reasons}", highlight=False, soft_wrap=True)


def _print_worst(asked: Asked) -> None:
    """The queries that are not answered in full, the worst first."""
    of_query = {item.qid: ndcg_at(item.ranked, item.gold, NDCG_DEPTH) for item in asked.judged}
    questions = {query.qid: query.question for query in asked.queries}
    failing = sorted((item for item in asked.judged if of_query[item.qid] < 1), key=lambda item: of_query[item.qid])
    if not failing:
        return
    console.print(f"\n{len(failing)} of {len(asked.judged)} queries do not have all their gold on top, worst first:")
    rows = [
        (
            item.qid,
            questions[item.qid],
            f"{of_query[item.qid]:.3f}",
            _ranks(item),
            item.ranked[0] if item.ranked else "",
        )
        for item in failing[:QUERIES_SHOWN]
    ]
    print_table(("query", "question", f"ndcg@{NDCG_DEPTH}", "gold, rank", "first is"), rows)
    if len(failing) > QUERIES_SHOWN:
        console.print(f"and {len(failing) - QUERIES_SHOWN} more; --json lists the ranks of all")


def _ranks(item: Judged) -> str:
    return ", ".join(f"{gold} {'-' if rank is None else rank}" for gold, rank in item.gold_ranks.items())


def _show_trend(settings: Settings, *, as_json: bool) -> None:
    with open_quality_check(settings) as check:
        runs = check.recent(TREND_SHOWN)
    if as_json:
        print_json([_past(run) for run in runs])
        return
    headings = ("evaluated", "version", "after run", "queries", "ndcg@10", "recall@5", "against baseline", "is", "fell")
    print_table(headings, [_trend_row(run) for run in runs])
    if not runs:
        console.print("no run is kept yet: vouch evaluate --record, or the DAG retrieval_evaluation, keeps one")


def _trend_row(run: PastEvaluation) -> tuple[object, ...]:
    against = ""
    if run.ndcg_before is not None and run.ndcg_after is not None:
        against = f"{run.ndcg_after - run.ndcg_before:+.4f} on {run.compared}"
    more = f" and {len(run.fallen) - QIDS_SHOWN} more" if len(run.fallen) > QIDS_SHOWN else ""
    return (
        f"{run.evaluated_at:%Y-%m-%d %H:%M:%S %Z}",
        run.index_version,
        run.run_id or "",
        int(run.measures["queries"]),
        f"{run.measures['ndcg@10']:.4f}",
        f"{run.measures['recall@5']:.4f}",
        against,
        run.status.value,
        ", ".join(run.fallen[:QIDS_SHOWN]) + more,
    )


def _past(run: PastEvaluation) -> dict[str, Any]:
    return {
        "evaluation_id": run.evaluation_id,
        "evaluated_at": run.evaluated_at.isoformat(),
        "index_version": run.index_version,
        "model": run.model_id,
        "run_id": run.run_id,
        "question_set": run.question_set,
        "status": run.status.value,
        "measures": dict(run.measures),
        "compared": run.compared,
        "ndcg_before": run.ndcg_before,
        "ndcg_after": run.ndcg_after,
        "fallen": list(run.fallen),
        "per_query": [
            {"qid": query.qid, "ndcg@10": query.ndcg, "gold_ranks": dict(query.gold_ranks)} for query in run.queries
        ],
    }
