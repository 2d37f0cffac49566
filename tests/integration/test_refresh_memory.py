"""Memory of a refresh is that of a page, not of the catalog."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from services.catalog.model import CatalogRecord, asset_key
from services.catalog.sources.base import PAGE_SIZE, Ending, Outcome, Page
from services.index import stages
from services.index.extract import extract
from services.index.store import IncomingRecord, QuarantineEntry, RecordStore, StoredRecord
from tests.integration.refresh_kit import ListedSource, new_world, table

BULK = "Nothing that is worth to be kept in memory. " * 500


def pages(count: int) -> Iterator[Page | Ending]:
    for start in range(0, count, PAGE_SIZE):
        numbers = range(start, min(start + PAGE_SIZE, count))
        lines = (table(f"shop.t{n}", descriptions={"business": f"About {n}."}, bulk=BULK) for n in numbers)
        records = tuple(map(CatalogRecord.model_validate, lines))
        yield Page(records, notices=tuple(f"unknown key 'k{n}' kept in extra" for n in numbers))
    yield Ending(Outcome.COMPLETE)


class Listing(ListedSource):
    def __init__(self, count: int) -> None:
        super().__init__("shop", ())
        self.count = count

    def listing(self) -> Iterator[Page | Ending]:
        return pages(self.count)


class ForgetfulRecords:
    """A record store that takes everything and keeps nothing."""

    def stored(self, keys: Sequence[int]) -> tuple[StoredRecord, ...]:
        return tuple(StoredRecord("shop", key, "", False, b"") for key in keys[:0])

    def merge(self, _run_id: str, _source: str, *, overlay: bool, records: Sequence[IncomingRecord]) -> int:
        assert not overlay
        return len(records)

    def keys(self, _source: str) -> npt.NDArray[np.int64]:
        return np.array([asset_key("gone")], dtype=np.int64)

    def quarantine(self, run_id: str, entries: Sequence[QuarantineEntry]) -> None:
        raise AssertionError(f"{run_id} rejected {entries}")

    def resolve_quarantine(self, run_id: str, stage: str, source: str | None) -> None: ...


def peak_bytes(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_listing_four_times_the_catalog_takes_no_more_memory() -> None:
    store: Any = ForgetfulRecords()
    records: RecordStore = store

    def listing(count: int) -> None:
        found = extract(Listing(count), records, "run", lambda _listing: None)
        assert (found.seen, found.changed, found.missing) == (count, count, 1)

    listing(PAGE_SIZE)  # what is loaded once is not counted
    small, large = peak_bytes(lambda: listing(2_000)), peak_bytes(lambda: listing(8_000))
    assert large < 1.5 * small


def test_composing_five_times_the_catalog_takes_no_more_memory(
    database_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "COMPOSE_PAGE", 50)
    world = new_world(database_uri, tmp_path)

    def peak(count: int, composed_before: int) -> int:
        world.open_as(Listing(count))
        with world.steps() as steps:
            run_id = steps.begin(None, full=False, dry_run=False, holder="process:here:1:1")
            steps.extract(run_id, "shop")

            def composing() -> None:
                assert steps.compose(run_id)["composed"] == count - composed_before
                assert sum(batch["texts"] for batch in steps.plan(run_id)) == count

            return peak_bytes(composing)

    small, large = peak(150, 0), peak(750, 150)
    assert large < 1.5 * small
