"""Who holds the refresh lease, and how to tell that a holder is dead."""

from __future__ import annotations

import os
import socket

import psutil

from services.index.run_store import LeaseHolder

LOCAL = "process"


def local_holder() -> str:
    """The name of this process as a lease holder: kind, host, pid and start time, which together never recur."""
    return f"{LOCAL}:{socket.gethostname()}:{os.getpid()}:{psutil.Process().create_time():.2f}"


def is_dead(held: LeaseHolder, new_holder: str, lease_seconds: float) -> bool:
    """True when the holder cannot be at work any more.

    A process of this host is asked for by pid and start time. A workflow's holder is "scheduler:workflow:run"; the
    scheduler runs one at a time, so a new run of the same workflow says that the former is over. Whoever else stays
    silent for `lease_seconds` counts as dead.
    """
    kind, _, rest = held.holder.partition(":")
    if kind == LOCAL:
        host, pid, started = rest.rsplit(":", 2)
        if host == socket.gethostname():
            return not _lives(int(pid), started)
    elif held.holder.split(":")[:2] == new_holder.split(":")[:2]:
        return True
    return held.silent_seconds > lease_seconds


def _lives(pid: int, started: str) -> bool:
    try:
        process = psutil.Process(pid)
        # A process that was killed and that nobody reaped is listed still.
        return process.status() != psutil.STATUS_ZOMBIE and f"{process.create_time():.2f}" == started
    except psutil.NoSuchProcess:
        return False
