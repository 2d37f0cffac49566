"""A detached process with all it starts: remembered in a file, found again by another process, stopped without rest."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from services.errors import SettingsError

POLL_SECONDS = 0.1
KILL_SECONDS = 10
CLOCK_TOLERANCE_SECONDS = 5  # start times are derived from the boot time, which moves when the clock is set


@dataclass(frozen=True)
class RunningSession:
    """What is remembered of a started session: its leader's pid and start time, and the port it serves."""

    pid: int
    started: float
    port: int


@dataclass(frozen=True)
class ProcessSession:
    """A process session of its own, remembered in the file `record`. Calls may come from different processes."""

    record: Path

    def running(self) -> RunningSession | None:
        """The remembered session when its leader still lives; a reused pid does not count."""
        remembered = self._remembered()
        if remembered is None:
            return None
        return remembered if _is_alive(remembered) else None

    def start(
        self, command: Sequence[str | Path], *, port: int, environment: Mapping[str, str], folder: Path, log: Path
    ) -> RunningSession:
        """Start `command` as the leader of a new session; its output is appended to `log`.

        The environment is taken as it is, nothing is inherited. Call it only when nothing is `running`.
        """
        with log.open("ab") as output:
            process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                cwd=folder,
                start_new_session=True,
            )
        process.returncode = 0  # it is meant to outlive us; without this Popen would warn that it does
        started = RunningSession(process.pid, psutil.Process(process.pid).create_time(), port)
        draft = self.record.with_suffix(".new")
        draft.write_text(json.dumps(asdict(started)), encoding="utf-8")
        draft.replace(self.record)
        return started

    def members(self) -> list[psutil.Process]:
        """Every live process of the session, also when the leader is gone; in no particular order."""
        remembered = self._remembered()
        if remembered is None:
            return []
        earliest = remembered.started - CLOCK_TOLERANCE_SECONDS
        return [process for process in psutil.process_iter() if _belongs(process, remembered.pid, earliest)]

    def stop(self, *, patience_seconds: float) -> bool:
        """Interrupt the leader, wait, then kill whatever is left of the session. False when nothing ran.

        Returns only when no process of the session lives.
        """
        members = self.members()
        remembered = self._remembered()
        for process in members:
            if remembered is not None and process.pid == remembered.pid:
                _signal(process, signal.SIGINT)
                self._wait_until_gone(patience_seconds)
        deadline = time.monotonic() + KILL_SECONDS
        while left := self.members():
            if time.monotonic() > deadline:
                pids = ", ".join(str(process.pid) for process in left)
                raise SettingsError(f"processes {pids} cannot be ended; they may belong to another user")
            for process in left:
                _signal(process, signal.SIGKILL)
            time.sleep(POLL_SECONDS)
        self.record.unlink(missing_ok=True)
        return bool(members)

    def _wait_until_gone(self, patience_seconds: float) -> None:
        deadline = time.monotonic() + patience_seconds
        while self.members() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)

    def _remembered(self) -> RunningSession | None:
        try:
            return RunningSession(**json.loads(self.record.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise SettingsError(f"{self.record} is damaged; end the processes it was for and delete it") from error


def free_port(preferred: int) -> int:
    """`preferred` when nothing on loopback listens there, else a free port that the system chooses."""
    for port in (preferred, 0):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("127.0.0.1", port))
                return int(listener.getsockname()[1])
            except OSError:
                continue
    raise SettingsError("no port on 127.0.0.1 is free")


def _is_alive(remembered: RunningSession) -> bool:
    try:
        process = psutil.Process(remembered.pid)
        same = abs(process.create_time() - remembered.started) < CLOCK_TOLERANCE_SECONDS
        return same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _belongs(process: psutil.Process, session: int, earliest: float) -> bool:
    try:
        if os.getsid(process.pid) != session:
            return False
        return process.create_time() >= earliest and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.NoSuchProcess, ProcessLookupError, PermissionError):
        return False


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return  # it ended by itself meanwhile
