"""Benchmarks run when asked for (`make bench`): they take minutes and print tables."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--accept-quality", action="store_true", help="write the measured tables as the accepted ones")


@pytest.fixture(autouse=True)
def _only_when_asked(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--run-benchmarks"):
        pytest.skip("a benchmark: run it with make bench")


@pytest.fixture
def accept_quality(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--accept-quality", default=False))
