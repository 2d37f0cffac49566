"""Killed anywhere, the next refresh converges to the index that an undisturbed one makes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from services.errors import RefreshInProgress, RunFenced
from services.index import refresh, stages
from services.index.lease import local_holder
from services.index.run_all import run_all
from tests.integration.refresh_kit import Killed, World, new_world, table

BEFORE = [
    table(
        f"shop.t{number}",
        title=f"Title {number}",
        descriptions={"business": f"about thing{number}"},
        lineage={"upstream": [f"shop.t{number - 1}"]},
    )
    for number in range(6)
]
# Renamed (its neighbour tells so), reworded, rescored, hidden, new; the last two are left alone but for the overlay.
AFTER = [
    {**BEFORE[0], "title": "Renamed"},
    {**BEFORE[1], "descriptions": {"business": "quite another thing"}},
    {**BEFORE[2], "data_quality_score": 90},
    {**BEFORE[3], "access": {"classification": "Restricted"}},
    *BEFORE[4:],
    table("shop.new", descriptions={"business": "was not there before"}),
]
TEAM = [{"id": "shop.t4", "synonyms": ["fourth"]}]


class MortalSteps:
    """The steps of a refresh as a process takes them that dies at its n-th breath, and then does nothing more."""

    def __init__(self, steps: refresh.RefreshSteps, breathe: Callable[[], None]) -> None:
        self._steps = steps
        self._breathe = breathe

    def __getattr__(self, name: str) -> Any:
        step = getattr(self._steps, name)

        def breathing(*arguments: Any, **named: Any) -> Any:
            self._breathe()
            return step(*arguments, **named)

        return (lambda *_: None) if name == "fail" else breathing


class Saved:
    """The tables of a world as they are now, to be brought back as often as needed."""

    def __init__(self, world: World) -> None:
        self._uri = world.uri
        self._tables = world.tables()
        self._run(
            "DROP SCHEMA IF EXISTS saved CASCADE",
            "CREATE SCHEMA saved",
            *(f"CREATE TABLE saved.{name} AS TABLE {name}" for name in self._tables),
        )

    def restore(self) -> None:
        self._run(
            "SET session_replication_role = replica",  # no foreign keys while tables are filled one by one
            f"TRUNCATE {', '.join(self._tables)}",
            *(f"INSERT INTO {name} OVERRIDING SYSTEM VALUE TABLE saved.{name}" for name in self._tables),
        )

    def _run(self, *statements: str) -> None:
        with psycopg.connect(self._uri, options="-c search_path=vouch") as connection:
            connection.execute("; ".join(statements))


def die_at(world: World, breath: int, holder: str) -> bool:
    """Refresh until the given breath; True when the refresh came to its end before."""
    left = breath

    def breathe(*_: object) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed

    world.progress = breathe
    try:
        with world.steps() as steps:
            mortal: Any = MortalSteps(steps, breathe)
            run_all(mortal, None, full=False, dry_run=False, holder=holder)
    except Killed:
        return False
    finally:
        world.progress = lambda *_: None
    return True


def test_killed_at_any_breath_the_next_run_makes_the_same_index(
    database_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "COMPOSE_PAGE", 3)
    monkeypatch.setattr(stages, "PUBLISH_PAGE", 2)
    monkeypatch.setattr(stages, "EMBED_ROUND_TEXTS", 2)
    world = new_world(database_uri, tmp_path)
    world.put("shop", BEFORE)
    world.refresh()
    before = Saved(world)
    world.put("shop", AFTER)
    world.put("team", TEAM, overlay=True)
    world.refresh()
    undisturbed = world.index()
    breaths = 0
    while True:
        before.restore()
        came_to_its_end = die_at(world, breaths, "airflow:dag:1")
        # By turns the killed run is gone on with, or another one takes over.
        report = world.refresh(holder=f"airflow:dag:{1 + breaths % 2}")
        assert report["status"] == "succeeded"
        assert world.index() == undisturbed, f"killed at breath {breaths}"
        if came_to_its_end:
            break
        breaths += 1
    # Listing, composing, embedding and publishing were all cut in their middle, not only between each other.
    assert breaths >= 20
    again = world.refresh()
    assert (again["total"]["written"], again["total"]["embedded"]) == (0, 0)


SLOW_REFRESH = """
    import sys, time
    from pathlib import Path
    from services.index.lease import local_holder
    from tests.integration.refresh_kit import World

    def dawdle(texts):
        if world.embedder.calls == 1:
            print("embedding", flush=True)
            time.sleep(60)

    world = World(sys.argv[1], Path(sys.argv[2]))
    world.embedder.before_documents = dawdle
    world.put("shop", __import__("json").loads(sys.argv[3]))
    world.refresh(holder=local_holder())
"""


def test_a_process_that_is_killed_outright_is_taken_over_at_once(database_uri: str, tmp_path: Path) -> None:
    undisturbed = new_world(database_uri, tmp_path)
    command = [sys.executable, "-c", textwrap.dedent(SLOW_REFRESH), database_uri, str(tmp_path), json.dumps(AFTER)]
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        assert any("embedding" in line for line in process.stdout)
        undisturbed.put("shop", AFTER)
        with pytest.raises(RefreshInProgress, match=rf"process:.*:{process.pid}:"):
            undisturbed.refresh(holder=local_holder())
        os.kill(process.pid, signal.SIGKILL)
        # Nobody has reaped it: it is dead all the same.
        report = undisturbed.refresh(holder=local_holder())
    assert report["status"] == "succeeded"
    assert report["total"]["changed"] == 0
    assert 0 < report["total"]["embedded"] < len(AFTER)
    runs = undisturbed.rows("SELECT status FROM refresh_run ORDER BY started_at")
    assert [run["status"] for run in runs] == ["abandoned", "succeeded"]


def test_a_run_that_lost_its_lease_stops_at_its_next_write(database_uri: str, tmp_path: Path) -> None:
    world = new_world(database_uri, tmp_path)
    world.put("shop", BEFORE)
    with world.steps() as steps:
        old = steps.begin(None, full=False, dry_run=False, holder="airflow:dag:1")
        steps.extract(old, "shop")
        steps.compose(old)
        batches = steps.plan(old)
        steps.embed(old, batches[0])
        assert world.refresh(holder="airflow:dag:2")["status"] == "succeeded"
        index = world.index()
        stages: list[Callable[[], object]] = [
            lambda: steps.extract(old, "shop"),
            lambda: steps.compose(old),
            lambda: steps.verify(old),
        ]
        world.put("shop", AFTER)
        for stage in stages:
            with pytest.raises(RunFenced):
                stage()
        steps.fail(old, "fenced")
    assert world.index() == index
    assert [run["status"] for run in world.rows("SELECT status FROM refresh_run ORDER BY started_at")] == [
        "abandoned",
        "succeeded",
    ]
