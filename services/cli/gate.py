"""Commands about the eligibility gate: evaluate, history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import click

from services.cli.common import console, print_json, print_table, settings_for_command, shown_progress
from services.index.lease import local_holder
from services.index.reevaluation import reevaluate
from services.wiring import index_stores, open_reevaluation

THRESHOLD = click.FloatRange(0, 100)


@click.group()
def gate() -> None:
    """The eligibility gate: evaluate, history."""


@gate.command("evaluate")
@click.option("--threshold", type=THRESHOLD, help="Instead of VOUCH_GATE_THRESHOLD, this once.")
@click.option("--dry-run", is_flag=True, help="Count who would leave and enter; change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def gate_evaluate(threshold: float | None, dry_run: bool, as_json: bool) -> None:
    """Score what is published by the rules of now, and ask the gate of each asset; no source is pulled."""
    settings = settings_for_command()
    if threshold is not None and threshold != settings.gate_threshold and not dry_run:
        click.echo(
            f"threshold {threshold:g} holds until the next refresh, which goes back to VOUCH_GATE_THRESHOLD ="
            f" {settings.gate_threshold:g}; set that to keep it",
            err=True,
        )
    with shown_progress() as progress, open_reevaluation(settings, progress, threshold=threshold) as steps:
        report = steps.preview() if dry_run else reevaluate(steps, local_holder())
    if as_json:
        print_json(report)
    else:
        _print_report(report)


@gate.command("history")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def gate_history(limit: int, as_json: bool) -> None:
    """List who passed the gate, when and why, newest first. What an asset was first published with is no passing."""
    with index_stores(settings_for_command()) as stores:
        passages = stores.history.passages(limit)
    if as_json:
        print_json([{**asdict(item), "happened_at": item.happened_at.isoformat()} for item in passages])
        return
    rows = [
        (
            f"{item.happened_at:%Y-%m-%d %H:%M:%S %Z}",
            "entered" if item.entered else "left",
            item.cause,
            f"{item.curation_score_before:.4g} -> {item.curation_score_after:.4g}",
            f"{item.threshold_before:.4g} -> {item.threshold_after:.4g}",
            item.object_type,
            item.id,
        )
        for item in passages
    ]
    print_table(("when", "passed", "cause", "curation score", "threshold", "type", "id"), rows)
    if not passages:
        console.print("no asset has passed the gate since it was first published")


def _print_report(report: Mapping[str, Any]) -> None:
    changes = report["changes"]
    if changes:
        columns = ("source", "object_type", "leaving", "entering")
        print_table(columns, [[change[column] for column in columns] for change in changes])
    if report["dry_run"]:
        console.print(
            f"dry run: of {report['assets']} assets {report['leaving']} would leave and {report['entering']} would"
            f" enter at threshold {report['thresholds']['default']:g} ({report['rescored']} scored by new rules)"
        )
        return
    waiting = f", {report['waiting']} wait for the next refresh" if report["waiting"] else ""
    console.print(
        f"run {report['run_id']} {report['status']} in {report['seconds']:.1f} s: {report['leaving']} left and"
        f" {report['entering']} entered at threshold {report['thresholds']['default']:g},"
        f" {report['rescored']} scored by new rules, {report['embedded']} texts embedded{waiting}"
    )
