"""`vouch demo`: from nothing to a ranked, explained answer."""

from __future__ import annotations

import click

from services.access.keys import create_key
from services.access.principal import Permission
from services.access.rule import Level
from services.cli.common import console, settings_for_command
from services.cli.render import print_answer
from services.demo.catalog import DEMO_QUESTION
from services.demo.run import DemoPlan, run_demo, stop_demo
from services.errors import PermanentError
from services.settings import Settings
from services.wiring import database_uri, key_store, now

DEMO_USER = "demo-analyst"


@click.command()
@click.option("--stop", is_flag=True, help="Stop what an earlier demo left running.")
def demo(stop: bool) -> None:
    """Refresh a sample catalog through Airflow, serve it, ask it a question, and say where to look."""
    settings = settings_for_command()
    if settings.database_url is not None:
        raise PermanentError("the demo brings its own database; unset VOUCH_DATABASE_URL for it")
    if stop:
        stop_demo(settings.home, _say)
        return
    database_uri(settings)  # starts the embedded server
    plan = DemoPlan(
        home=settings.home,
        airflow_port=settings.airflow_port,
        api_port=settings.api_port,
        new_token=lambda: _new_token(settings),
    )
    outcome = run_demo(plan, _say)
    console.print(f"\n[bold]{DEMO_QUESTION}[/bold]\n")
    print_answer(outcome.answer)
    console.print("\nOpen:")
    for name, url in outcome.urls.items():
        console.print(f"  {name}: {url}", highlight=False)
    console.print(f"  API key of {DEMO_USER}: {outcome.token}", highlight=False, soft_wrap=True)
    console.print("\nAsk more: .venv/bin/vouch search --explain 'your question'    Stop everything: make stop")


def _new_token(settings: Settings) -> str:
    token, record = create_key(
        DEMO_USER,
        clearance=Level.CONFIDENTIAL,
        permissions=[Permission.SEARCH, Permission.EXPLAIN, Permission.OPERATE],
        now=now(),
    )
    with key_store(settings) as store:
        store.add(record)
    return token


def _say(line: str) -> None:
    click.echo(line)
