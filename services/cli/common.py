"""What commands share: settings, the principal they look with, progress, output."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from services.access.principal import LOCAL_ADMINISTRATOR, Permission, Principal
from services.access.rule import Level
from services.logs import configure_logging
from services.settings import Settings, load_settings

LEVELS = click.Choice([level.label for level in Level], case_sensitive=False)
AS_USER_CLEARANCE = Level.INTERNAL
PLAIN_SECONDS = 5.0  # until the second plain progress line of a stage; then twice as long each time, up to ...
PLAIN_SECONDS_MOST = 60.0

PLAIN_WIDTH = 160  # where no terminal says how wide it is
console = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH)
notes = Console(stderr=True)

Command = TypeVar("Command", bound=Callable[..., Any])


def settings_for_command() -> Settings:
    """The settings; logs go to standard error, from warnings upwards unless VOUCH_LOG_LEVEL asks for more."""
    settings = load_settings()
    configure_logging(settings.log_level if "log_level" in settings.model_fields_set else "warning")
    return settings


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def as_principal(command: Command) -> Command:
    """Adds --as-user, --groups and --clearance: what somebody else would see."""
    options = [
        click.option("--as-user", metavar="USER", help="Look with the eyes of this user instead of an administrator."),
        click.option("--groups", default="", metavar="A,B", help="The groups of --as-user."),
        click.option(
            "--clearance", type=LEVELS, help=f"The clearance of --as-user; {AS_USER_CLEARANCE.label} if absent."
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def principal_of(as_user: str | None, groups: str, clearance: str | None) -> Principal:
    """The caller that the options describe; a local administrator without them."""
    if as_user is None:
        # Who narrows the view must not be shown everything.
        if groups or clearance:
            raise click.UsageError(f"{'--groups' if groups else '--clearance'} needs --as-user")
        return LOCAL_ADMINISTRATOR
    return Principal(
        user=as_user,
        groups=split_list(groups),
        clearance=Level[clearance.upper()] if clearance else AS_USER_CLEARANCE,
        permissions=frozenset({Permission.SEARCH, Permission.EXPLAIN}),
    )


def split_list(text: str) -> tuple[str, ...]:
    """The parts of a comma-separated option."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def print_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table of plain cells: what a catalog holds is neither markup nor a command to the terminal."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if cell is None else printable(str(cell))) for cell in row))
    console.print(table)


def printable(text: str) -> str:
    """The text with a space for each control character."""
    return "".join(char if char.isprintable() else " " for char in text)


@contextmanager
def shown_progress() -> Iterator[Callable[[str, str, int, int | None], None]]:
    """Where a refresh tells how far it is: bars on a terminal, plain lines elsewhere; both on standard error."""
    if not sys.stderr.isatty():
        yield _PlainProgress()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=notes, transient=True) as bars:
        yield _BarProgress(bars)


class _BarProgress:
    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[tuple[str, str], TaskID] = {}

    def __call__(self, stage: str, source: str, done: int, total: int | None) -> None:
        key = (stage, source)
        if key not in self._tasks:
            self._tasks[key] = self._bars.add_task(f"{stage} {source}".strip(), total=total)
        self._bars.update(self._tasks[key], completed=done, total=total)


class _PlainProgress:
    def __init__(self) -> None:
        self._next: dict[tuple[str, str], tuple[float, float]] = {}  # when the next line is due, and the pause after it

    def __call__(self, stage: str, source: str, done: int, total: int | None) -> None:
        key, now = (stage, source), time.monotonic()
        due, pause = self._next.get(key, (0.0, PLAIN_SECONDS))
        if now < due and done != total:
            return
        self._next[key] = (now + pause, min(2 * pause, PLAIN_SECONDS_MOST))
        of_total = f" of {total}" if total is not None else ""
        click.echo(f"{stage} {source}".rstrip() + f": {done}{of_total}", err=True)
