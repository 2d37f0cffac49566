"""Commands for stewards: the work list, and what trust rules make of a catalog."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import click

from services.catalog.model import ObjectType
from services.cli.common import as_principal, console, principal_of, print_json, print_table, settings_for_command
from services.retrieval.worklist_view import (
    ENTRIES_MAX,
    NOBODY,
    WorklistItem,
    WorklistPage,
    WorklistRequest,
    WorklistSummary,
    asked,
    fewest_told,
)
from services.trust.check import FieldCheck
from services.wiring import check_trust_rules, open_query_services

ENTRIES_SHOWN = 50
CONTACTS_LISTED = 15
NOTHING_BELOW = (
    "nothing to mend: no asset asked for is below the threshold it was last held to; VOUCH_GATE_THRESHOLD sets one"
    " (default 0), and the next refresh or `vouch gate evaluate` holds the assets to it"
)
NO_INDEX = "there is no index yet; run: vouch refresh"


@click.command()
@click.option("--source", "sources", multiple=True, help="Only assets of this source; may stand more than once.")
@click.option("--type", "types", multiple=True, type=click.Choice([kind.value for kind in ObjectType]))
@click.option("--owner", "owners", multiple=True, help="Only what this owner, steward or custodian is named for.")
@click.option(
    "--limit", type=click.IntRange(1), help=f"At most so many entries; by default {ENTRIES_SHOWN}, or all with --csv."
)
@as_principal
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV that is safe to open in a spreadsheet.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def worklist(
    sources: tuple[str, ...],
    types: tuple[str, ...],
    owners: tuple[str, ...],
    limit: int | None,
    as_user: str | None,
    groups: str,
    clearance: str,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Show what stewards should mend: assets below their threshold, the fewest steps there, and whom to ask."""
    if as_csv and as_json:
        raise click.UsageError("--csv and --json exclude each other")
    if limit is None and not as_csv:
        limit = ENTRIES_SHOWN
    request = WorklistRequest(
        source=sources,
        type=tuple(map(ObjectType, types)),
        owner=owners,
        limit=min(limit or ENTRIES_MAX, ENTRIES_MAX),
        summary=not as_csv,
    )
    principal = principal_of(as_user, groups, clearance)
    with open_query_services(settings_for_command()) as services:
        pages = _at_most(limit, services.worklist.pages(request, principal))
        if as_csv:
            _print_csv(pages)
        elif as_json:
            _print_json(pages)
        else:
            _print_worklist(pages)


def _at_most(limit: int | None, pages: Iterator[WorklistPage]) -> Iterator[WorklistPage]:
    """The pages up to that many entries; the last one is cut, and then leads no further."""
    left = limit
    for page in pages:
        if left is None or len(page.entries) < left:
            yield page
            left = None if left is None else left - len(page.entries)
            continue
        yield page.model_copy(update={"entries": page.entries[:left]})
        return


def _print_csv(pages: Iterator[WorklistPage]) -> None:
    # pandas takes half a second to import, and no other command needs it.
    from services.retrieval.worklist_table import worklist_csv, worklist_table

    for number, page in enumerate(pages):
        click.echo(worklist_csv(worklist_table(page.entries), header=number == 0), nl=False)


def _print_json(pages: Iterator[WorklistPage]) -> None:
    first = next(pages)
    entries = [*first.entries, *(item for page in pages for item in page.entries)]
    document = first.model_copy(update={"entries": tuple(entries)}).model_dump(mode="json", exclude={"next_cursor"})
    print_json(document)


def _print_worklist(pages: Iterator[WorklistPage]) -> None:
    def row(item: WorklistItem) -> tuple[object, ...]:
        score = f"{item.curation_score:.4g} of {item.threshold:.4g}"
        return (score, item.object_type.value, item.id, asked(item), fewest_told(item))

    first = next(pages)
    shown = [*first.entries, *(item for page in pages for item in page.entries)]
    if first.summary is None or not first.summary.assets:
        console.print(NOTHING_BELOW if first.index_version else NO_INDEX)
        return
    print_table(("curation", "type", "id", "ask", "fewest steps"), [row(item) for item in shown])
    console.print()
    _print_summary(first.summary, len(shown))


def _print_summary(summary: WorklistSummary, shown: int) -> None:
    rows = [
        (NOBODY if work.name is None else work.name, work.assets, f"{work.points_missing:.1f}")
        for work in islice(summary.by_contact, CONTACTS_LISTED)
    ]
    print_table(("ask", "assets", "points missing"), rows)
    more = f", {shown} of them shown" if shown < summary.assets else ""
    console.print(
        f"{summary.assets} assets are below their threshold{more}; {summary.points_missing:.1f} points missing"
    )


@click.group()
def trust() -> None:
    """The trust rules: check."""


@trust.command("check")
@click.argument("rules", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--source", required=True, metavar="NAME", help="The source whose assets are read, as last refreshed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def trust_check(rules: Path, source: str, as_json: bool) -> None:
    """Show what a rules file, laid over the shipped one, would make of a source's assets. Nothing is changed."""
    report = check_trust_rules(settings_for_command(), rules, source)
    if as_json:
        fields = [_field(field) for field in report.fields]
        print_json({"rules": str(rules), "source": source, "assets": report.assets, "fields": fields})
        return
    rows = [
        (field.signal, field.kind, field.name, field.seen, _fates(field), "; ".join(field.unreadable_values))
        for field in report.fields
    ]
    print_table(("signal", "kind", "name", "seen", "what became of it", "unreadable values"), rows)
    console.print(f"{report.assets} assets of {source}, as last refreshed", markup=False)


def _field(field: FieldCheck) -> dict[str, Any]:
    fates = {fate.value: count for fate, count in field.fates.items()}
    return {**vars(field), "seen": field.seen, "fates": fates, "unreadable_values": list(field.unreadable_values)}


def _fates(field: FieldCheck) -> str:
    most_first = sorted(field.fates.items(), key=lambda item: (-item[1], item[0].value))
    return ", ".join(f"{fate.value} {count}" for fate, count in most_first)
