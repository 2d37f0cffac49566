"""Which way a search goes, and how long that is remembered."""

from __future__ import annotations

import pytest

from services.retrieval.pgvector.plans import (
    NARROW_FACTOR,
    REMEMBERED_SCOPES,
    REMEMBERED_SECONDS,
    CountMemory,
    SampledVectors,
    VisibleVectors,
)

ROWS = 100


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.mark.parametrize(
    ("visible", "stored", "few", "compared"),
    [
        pytest.param(ROWS, ROWS, True, True, id="few, and all of them"),
        pytest.param(ROWS + 1, ROWS + 1, False, False, id="all of some more"),
        pytest.param(ROWS + 1, 4 * ROWS, False, True, id="some more behind a filter that hides most"),
        pytest.param(2 * ROWS, 3 * ROWS, False, False, id="a filter that lets most through"),
        pytest.param(NARROW_FACTOR * ROWS, 1000 * ROWS, False, True, id="as many as are worth it"),
        pytest.param(NARROW_FACTOR * ROWS + 1, 1000 * ROWS, False, False, id="too many"),
        pytest.param(ROWS + 1, 0, False, False, id="no statistics yet"),
    ],
)
def test_few_vectors_and_narrow_filters_are_compared(visible: int, stored: int, few: bool, compared: bool) -> None:
    counted = VisibleVectors(visible, stored)
    assert (counted.are_few(ROWS), counted.are_compared(ROWS)) == (few, compared)


@pytest.mark.parametrize(
    ("sample", "exceed"),
    [
        pytest.param(SampledVectors(1000, 1000, 1000, 100_000), True, id="all of many"),
        pytest.param(SampledVectors(1000, 1000, 1000, 1000), False, id="all of a few"),
        pytest.param(SampledVectors(1000, 400, 400, 10_000), True, id="so many that chance cannot make up for it"),
        pytest.param(SampledVectors(1000, 400, 16, 10_000), False, id="as many, of a few assets that may be chance"),
        pytest.param(SampledVectors(1000, 100, 100, 10_000), False, id="just the limit"),
        pytest.param(SampledVectors(1000, 0, 0, 10**9), False, id="none in the sample"),
        pytest.param(SampledVectors(1000, 1000, 1000, 0), False, id="no statistics yet"),
        pytest.param(SampledVectors(0, 0, 0, 0), False, id="nothing stored"),
    ],
)
def test_a_sample_spares_counting_where_it_leaves_no_doubt(sample: SampledVectors, exceed: bool) -> None:
    assert sample.surely_exceed(1000) is exceed


def test_a_count_is_remembered_for_its_time_and_scope() -> None:
    clock = Clock()
    memory = CountMemory(clock)
    counted = VisibleVectors(7, 9)
    assert memory.keep("scope", counted) == counted
    clock.seconds += REMEMBERED_SECONDS - 1
    assert memory.recall("scope") == counted
    assert memory.recall("another scope") is None
    clock.seconds += 1
    assert memory.recall("scope") is None
    memory.keep("scope", VisibleVectors(8, 9))
    assert memory.recall("scope") == VisibleVectors(8, 9)


def test_the_oldest_scope_is_forgotten_first() -> None:
    memory = CountMemory(Clock())
    for scope in range(REMEMBERED_SCOPES):
        memory.keep(scope, VisibleVectors(scope, 0))
    memory.keep(0, VisibleVectors(0, 0))
    memory.keep("new", VisibleVectors(1, 1))
    assert memory.recall(0) is not None
    assert memory.recall(1) is None
    assert memory.recall(2) is not None
