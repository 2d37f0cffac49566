"""What a request costs: latency in this process, processor time of every process that worked for it, and a table."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil

RESULTS = Path(__file__).resolve().parents[2] / "build" / "benchmarks"

ListPids = Callable[[], Sequence[int]]


class Work:
    """Processor time of processes that serve one subject alone, whichever of them `pids` names at either look.

    The counters tick in hundredths of a second, so only many requests together say something.
    """

    def __init__(self, pids: ListPids) -> None:
        self._pids = pids
        self._before = self._look()

    def cpu_seconds(self) -> float:
        """Since this was made."""
        return sum(spent - self._before.get(pid, 0.0) for pid, spent in self._look().items())

    def _look(self) -> dict[int, float]:
        spent: dict[int, float] = {}
        for pid in self._pids():
            times = psutil.Process(pid).cpu_times()
            spent[pid] = times.user + times.system
        return spent


@dataclass
class Subject:
    """One way to answer a question. `pids`: who works for it beside this process, which is measured by call."""

    name: str
    answer: Callable[[str], Any]
    pids: ListPids = tuple
    recall: float | None = None
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: float = 0.0

    def ask(self, question: str) -> None:
        cpu, started = time.process_time(), time.perf_counter()
        self.answer(question)
        self.seconds.append(time.perf_counter() - started)
        self.cpu_seconds += time.process_time() - cpu


def ask_all(subjects: Sequence[Subject], warm_up: Sequence[str], questions: Sequence[str]) -> None:
    """Every question to every subject in turn, after a warm-up that does not count."""
    for question in warm_up:
        for subject in subjects:
            subject.answer(question)
    work = [Work(subject.pids) for subject in subjects]
    for place, question in enumerate(questions):
        for step in range(len(subjects)):
            # Another one begins each time: who comes first finds colder caches.
            subjects[(place + step) % len(subjects)].ask(question)
    for subject, others in zip(subjects, work, strict=True):
        subject.cpu_seconds += others.cpu_seconds()


def table(subjects: Sequence[Subject], base: Subject) -> list[dict[str, Any]]:
    """One row for each subject; `ratio` is of CPU to that of `base`."""
    return [
        {
            "subject": subject.name,
            "p50_ms": 1000 * float(np.percentile(subject.seconds, 50)),
            "p95_ms": 1000 * float(np.percentile(subject.seconds, 95)),
            "cpu_ms": 1000 * subject.cpu_seconds / len(subject.seconds),
            "ratio": (subject.cpu_seconds / len(subject.seconds)) / (base.cpu_seconds / len(base.seconds)),
            "recall_at_30": subject.recall,
        }
        for subject in subjects
    ]


def printed(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as a table for people."""
    head = f"{'':<38}{'p50 ms':>8}{'p95 ms':>8}{'CPU ms':>8}{'ratio':>7}{'recall@30':>11}"
    lines = [
        f"{row['subject']:<38}{row['p50_ms']:8.1f}{row['p95_ms']:8.1f}{row['cpu_ms']:8.1f}{row['ratio']:7.2f}"
        + (f"{row['recall_at_30']:11.3f}" if row["recall_at_30"] is not None else f"{'':>11}")
        for row in rows
    ]
    return "\n".join([head, *lines])


def keep(name: str, document: Any) -> Path:
    """Write a result as JSON beside the others."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return path
