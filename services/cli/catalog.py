"""Commands about the catalog's content: refresh, show, search."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from services.cli.common import (
    as_principal,
    console,
    principal_of,
    print_json,
    print_table,
    settings_for_command,
    shown_progress,
)
from services.cli.render import print_answer, print_asset
from services.errors import SourceError
from services.index.lease import local_holder
from services.index.run_all import run_all
from services.retrieval.model import LIMIT_MAX, Mode, SearchRequest
from services.text.clean import scrub
from services.wiring import jsonl_source, open_query_services, open_refresh


@click.command()
@click.option("--source", "source_name", help="Refresh this source only.")
@click.option(
    "--jsonl",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Register this file of JSON Lines as a source, and refresh it.",
)
@click.option("--name", help="The name of the --jsonl source; folder and file name when left out.")
@click.option("--full", is_flag=True, help="Compose every asset again, not only what changed.")
@click.option("--dry-run", is_flag=True, help="Count what would be done; change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def refresh(
    source_name: str | None, jsonl: Path | None, name: str | None, full: bool, dry_run: bool, as_json: bool
) -> None:
    """Pull the sources and bring the index up to date."""
    if source_name and jsonl:
        raise click.UsageError("--source and --jsonl exclude each other")
    if name and not jsonl:
        raise click.UsageError("--name goes with --jsonl")
    settings = settings_for_command()
    if jsonl is not None and not jsonl.is_file():  # a slip of the pen must not become a source that fails from now on
        raise SourceError(f"{jsonl} is no file; name one with an asset per line")
    file = None if jsonl is None else jsonl_source(settings, jsonl, name)
    source_name = source_name if file is None else file.name
    with shown_progress() as progress, open_refresh(settings, progress, file) as steps:
        report = run_all(
            steps, [source_name] if source_name else None, full=full, dry_run=dry_run, holder=local_holder()
        )
    if as_json:
        print_json(report)
    else:
        _print_report(report)
    if report["status"] != "succeeded":
        sys.exit(1)


@click.command()
@click.argument("asset_id", metavar="ID")
@as_principal
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def show(asset_id: str, as_user: str | None, groups: str, clearance: str | None, as_json: bool) -> None:
    """Show one asset: attributes, narrative, chunks, every score with its components."""
    settings = settings_for_command()
    with open_query_services(settings) as services:
        view = services.assets.get(asset_id, principal_of(as_user, groups, clearance))
    if as_json:
        document = view.model_dump(mode="json")
        print_json({**document.pop("attributes"), **document})
    else:
        print_asset(view)


@click.command()
@click.argument("query", metavar="QUESTION")
@click.option("--mode", type=click.Choice([mode.value for mode in Mode]), default=Mode.ANALYSIS.value)
@click.option("--limit", type=click.IntRange(1, LIMIT_MAX), default=10, show_default=True)
@click.option("--explain", is_flag=True, help="Show the numbers that ranked each result.")
@as_principal
@click.option("--json", "as_json", is_flag=True, help="Print the answer of the query API.")
def search(
    query: str,
    mode: str,
    limit: int,
    explain: bool,
    as_user: str | None,
    groups: str,
    clearance: str | None,
    as_json: bool,
) -> None:
    """Ask which governed assets answer a question."""
    settings = settings_for_command()
    # An argument that is not UTF-8 arrives with lone surrogates in it.
    request = SearchRequest(query=scrub(query)[0], mode=Mode(mode), limit=limit, explain=explain)
    with open_query_services(settings) as services:
        answer = services.search.search(request, principal_of(as_user, groups, clearance), "vouch-search")
    if as_json:
        print_json(answer.model_dump(mode="json"))
    else:
        print_answer(answer)


SHOWN_COUNTS = (
    "seen", "changed", "unchanged", "quarantined", "missing", "embedded", "cached", "written",
    "would_publish", "would_embed", "rescored", "entered", "left",
)  # fmt: skip


def _print_report(report: Mapping[str, Any]) -> None:
    names = [name for name in SHOWN_COUNTS if name in report["total"]]
    rows = [(source, *(counts.get(name, 0) for name in names)) for source, counts in report["sources"].items()]
    rows.append(("total", *(report["total"][name] for name in names)))
    print_table(("source", *names), rows)
    version = f", index version {report['index_version']}" if report["index_version"] else ""
    dry = " (dry run, nothing was changed)" if report["dry_run"] else ""
    console.print(f"run {report['run_id']} {report['status']} in {report['total']['seconds']:.1f} s{version}{dry}")
    if report["total"]["quarantined"]:
        console.print("why records are in quarantine: vouch quarantine list")
    if report["error"]:
        console.print(report["error"], style="red", markup=False)
