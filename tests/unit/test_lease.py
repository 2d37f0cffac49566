"""When a holder of the refresh lease counts as dead."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from services.index.lease import is_dead, local_holder

LEASE_SECONDS = 900


def dead(holder: str, *, silent_seconds: float = 0.0, asking: str = "process:elsewhere:1:1.00") -> bool:
    held: Any = SimpleNamespace(holder=holder, silent_seconds=silent_seconds)
    return is_dead(held, asking, LEASE_SECONDS)


def test_this_process_names_itself_so_that_the_name_never_recurs() -> None:
    assert re.fullmatch(rf"process:{re.escape(socket.gethostname())}:{os.getpid()}:\d+\.\d\d", local_holder())
    assert local_holder() == local_holder()


def test_a_living_process_of_this_host_is_never_dead_however_long_it_is_silent() -> None:
    assert not dead(local_holder(), silent_seconds=10 * LEASE_SECONDS)


def test_a_process_of_this_host_that_is_gone_is_dead_at_once() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert dead(f"process:{socket.gethostname()}:{process.pid}:1.00")


def test_another_process_that_got_the_same_pid_is_not_taken_for_the_holder() -> None:
    name, started = local_holder().rsplit(":", 1)
    assert dead(f"{name}:{float(started) - 1:.2f}")


def test_a_killed_process_that_nobody_has_reaped_is_dead() -> None:
    code = "from services.index.lease import local_holder; print(local_holder(), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        holder = process.stdout.readline().strip()
        assert not dead(holder)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and stays a zombie
        assert dead(holder)


@pytest.mark.parametrize("holder", ["process:elsewhere:1:1.00", "airflow:other_dag:manual__2026"])
def test_whoever_cannot_be_asked_for_is_dead_after_a_long_silence(holder: str) -> None:
    assert not dead(holder, silent_seconds=LEASE_SECONDS)
    assert dead(holder, silent_seconds=LEASE_SECONDS + 1)


def test_a_new_run_of_the_same_workflow_says_that_the_former_is_over() -> None:
    assert dead("airflow:catalog_refresh:run1", asking="airflow:catalog_refresh:run2")
    assert not dead("airflow:catalog_refresh:run1", asking="airflow:other_dag:run2")
    assert not dead("airflow:catalog_refresh:run1", asking="process:elsewhere:1:1.00")
