"""The command group, and what every command does with errors and logs."""

from __future__ import annotations

import sys
from typing import Any

import click

from services.cli.catalog import refresh, search, show
from services.cli.demo import demo
from services.cli.evaluation import evaluate
from services.cli.gate import gate
from services.cli.operations import config, db, keys, quarantine, schema, sources, status
from services.cli.server import serve
from services.cli.stewards import trust, worklist
from services.errors import VouchError

EXIT_FAILED = 1


class VouchGroup(click.Group):
    """Turns errors raised on purpose into one line on standard error and exit code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except VouchError as error:
            click.echo(f"vouch: {error}", err=True)
            sys.exit(EXIT_FAILED)


@click.group(cls=VouchGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="vouch", prog_name="vouch")
def main() -> None:
    """Vouch makes a data catalog answer questions that people can trust.

    Settings are environment variables VOUCH_*; `vouch config check` lists and checks them.
    """


COMMANDS = (
    demo, refresh, show, search, status, worklist, trust, gate, evaluate, sources, config, schema, keys, quarantine, db,
    serve,
)  # fmt: skip
for command in COMMANDS:
    main.add_command(command)
