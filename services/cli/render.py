"""Answers and assets for a person at a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape as without_markup

from services.cli.common import console, print_table, printable
from services.retrieval.asset_view import AssetView
from services.retrieval.model import Explanation, GovernancePart, Result, SearchAnswer

MATCH_CHARACTERS = 160


def escape(text: str) -> str:
    """Text of the catalog as it is: neither markup for the console nor commands for the terminal."""
    return without_markup("\n".join(map(printable, text.split("\n"))))


def print_answer(answer: SearchAnswer) -> None:
    """The ranked results, or the refusal with its question."""
    if answer.understood:
        read = (f"{item.word} as {', '.join(item.alternatives)} ({item.why})" for item in answer.understood)
        console.print(f"[dim]understood {escape('; '.join(read))}[/dim]", highlight=False, soft_wrap=True)
    if answer.refusal is not None:
        console.print(f"[bold]{answer.refusal.code}[/bold]: {escape(answer.refusal.ask)}")
    elif not answer.results:
        console.print("nothing found")
    for result in answer.results:
        _print_result(result)
    age = "" if answer.data_age_seconds is None else f", data {age_in_words(answer.data_age_seconds)} old"
    console.print(f"[dim]index version {answer.index_version}{age}, {answer.took_ms:.0f} ms[/dim]")


def print_asset(view: AssetView) -> None:
    """One asset with its narrative and scores."""
    attributes = view.attributes
    console.print(
        f"[bold]{escape(attributes['name'])}[/bold] ({attributes['object_type']})  {escape(attributes['id'])}"
    )
    _print_attributes(attributes)
    console.print(escape(view.narrative), highlight=False, soft_wrap=True)
    console.print(f"\n[bold]governance score {view.governance_score:.3f}[/bold]")
    _print_governance(view.governance)
    verdict = "eligible" if view.eligible else "not eligible"
    console.print(f"\n[bold]curation score {view.curation_score:.1f}[/bold], {verdict}")
    rows = [(part.item, f"{part.weight:g}", f"{part.achieved:.2f}", f"{part.points:.1f}") for part in view.curation]
    print_table(("item", "weight", "achieved", "points"), rows)
    console.print(f"\n[bold]{len(view.chunks)} chunks[/bold]")
    for chunk in view.chunks:
        console.print(
            f"[dim]{chunk.number} {escape(chunk.section)}[/dim] {escape(chunk.text)}", highlight=False, soft_wrap=True
        )


def _print_attributes(attributes: Mapping[str, Any]) -> None:
    """What a person asks for first; `--json` has all of it."""
    roles = (f"{role['name']} ({role['role']})" for role in attributes.get("governance_roles", ()))
    shown = {
        "url": attributes.get("url"),
        "location": " / ".join(attributes.get("location", ())),
        "responsible": ", ".join(roles),
        "access": attributes.get("access", {}).get("classification"),
        "tags": ", ".join("/".join(path) for path in attributes.get("tags", ())),
    }
    for name, value in shown.items():
        if value:
            console.print(f"[dim]{name:<12}[/dim]{escape(str(value))}", highlight=False, soft_wrap=True)
    columns = [(item["name"], item.get("data_type"), item.get("title")) for item in attributes.get("columns", ())]
    if columns:
        print_table(("column", "type", "title"), columns)
    console.print()


def _print_result(result: Result) -> None:
    title = f" · {escape(result.title)}" if result.title else ""
    place = escape(" / ".join(result.location))
    notes = "".join(f" [yellow]{escape(warning)}[/yellow]" for warning in result.warnings)
    pinned = f" [cyan]{escape(result.pinned)}[/cyan]" if result.pinned else ""
    console.print(
        f"[bold]{result.rank:>2}. {escape(result.name)}[/bold]{title}  {result.object_type}"
        f"  [green]{result.final_score:.3f}[/green]{pinned}{notes}",
        highlight=False,
        soft_wrap=True,
    )
    console.print(f"    {place}  [dim]{escape(result.id)}[/dim]", highlight=False, soft_wrap=True)
    if result.url:
        console.print(f"    {escape(result.url)}", highlight=False, soft_wrap=True)
    if result.matched:
        console.print(f"    [dim]{escape(_shortened(result.matched.text))}[/dim]", highlight=False, soft_wrap=True)
    if result.siblings:
        ids = escape(", ".join(result.siblings.ids))
        console.print(f"    and {result.siblings.count} like it: {ids}", highlight=False, soft_wrap=True)
    if result.explain:
        _print_explanation(result.explain)


def _print_explanation(explain: Explanation) -> None:
    similarity = "none" if explain.vector_similarity is None else f"{explain.vector_similarity:.3f}"
    vector_rank, keyword_rank = explain.vector_rank or "-", explain.keyword_rank or "-"
    console.print(
        f"    relevance {explain.relevance_score:.3f} = (vector similarity {similarity} #{vector_rank}"
        f" + keyword score {explain.keyword_score:.3f} #{keyword_rank}) / 2"
        f"    governance {explain.governance_score:.3f}    curation {explain.curation_score:.0f}"
        f" ({'eligible' if explain.eligible else 'not eligible'})",
        highlight=False,
        soft_wrap=True,
    )
    for part in explain.governance:
        if part.contribution:
            console.print(
                f"      {part.signal} {part.weight:g} x {part.value:g} x {part.confidence:g}"
                f" = {part.contribution:.3f}  [dim]{escape(part.origin)}[/dim]",
                highlight=False,
                soft_wrap=True,
            )


def _print_governance(parts: Sequence[GovernancePart]) -> None:
    rows = [
        (
            part.signal,
            f"{part.value:g}",
            f"{part.confidence:g}",
            f"{part.weight:g}",
            f"{part.contribution:.3f}",
            part.origin,
        )
        for part in parts
    ]
    print_table(("signal", "value", "confidence", "weight", "contribution", "origin"), rows)


def _shortened(text: str) -> str:
    return text if len(text) <= MATCH_CHARACTERS else text[: MATCH_CHARACTERS - 1].rstrip() + "…"


def age_in_words(seconds: float) -> str:
    """A duration in its largest whole unit: "3 h"."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
