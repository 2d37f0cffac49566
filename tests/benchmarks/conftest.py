"""Benchmarks run when asked for (`make bench`): they take minutes and print tables."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _only_when_asked(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--run-benchmarks"):
        pytest.skip("a benchmark: run it with make bench")
