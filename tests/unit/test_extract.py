"""Pulling a listing: what is kept, what is refused, what is counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.catalog.model import CatalogRecord, asset_key
from services.catalog.sources.base import Ending, Outcome, Page, Rejection
from services.errors import KeyCollision, SourceUnavailable
from services.index import extract as extracting
from services.index.extract import KeySet, Listing, extract
from services.index.store import IncomingRecord, QuarantineEntry, StoredRecord


@dataclass
class FakeRecords:
    """A record store in memory. `rival` takes an id for itself between a look-up and the merge after it."""

    rows: dict[tuple[str, int], StoredRecord] = field(default_factory=dict)
    quarantined: list[QuarantineEntry] = field(default_factory=list)
    resolved: list[tuple[str, str | None]] = field(default_factory=list)
    rival: str | None = None

    def stored(self, keys: Sequence[int]) -> tuple[StoredRecord, ...]:
        return tuple(row for row in self.rows.values() if row.asset_key in keys)

    def put(self, source: str, asset_id: str, digest: bytes = b"", *, overlay: bool = False) -> None:
        key = asset_key(asset_id)
        self.rows[source, key] = StoredRecord(source, key, asset_id, overlay, digest)

    def merge(self, _run_id: str, source: str, *, overlay: bool, records: Sequence[IncomingRecord]) -> int:
        if self.rival is not None:
            self.put("rival", self.rival)
        written = 0
        for record in records:
            rows = self.stored([record.asset_key])
            if overlay or not any(row.source != source and not row.overlay for row in rows):
                self.put(source, record.id, record.payload_hash, overlay=overlay)
                written += 1
        return written

    def keys(self, source: str) -> npt.NDArray[np.int64]:
        return np.array([key for owner, key in self.rows if owner == source], dtype=np.int64)

    def quarantine(self, _run_id: str, entries: Sequence[QuarantineEntry]) -> None:
        self.quarantined += entries

    def resolve_quarantine(self, _run_id: str, stage: str, source: str | None) -> None:
        self.resolved.append((stage, source))


@dataclass(frozen=True)
class Told:
    """A source that says what it is told to."""

    parts: tuple[Page | Ending | Exception, ...]
    name: str = "shop"
    overlay: bool = False

    def listing(self) -> Iterator[Page | Ending]:
        for part in self.parts:
            if isinstance(part, Exception):
                raise part
            yield part

    def probe(self) -> str:
        return ""


COMPLETE = Ending(Outcome.COMPLETE)


def page(*ids: str, **fields: Any) -> Page:
    return Page(tuple(CatalogRecord(id=asset_id, **fields) for asset_id in ids))


def pull(records: Any, *parts: Page | Ending | Exception, overlay: bool = False) -> Listing:
    return extract(Told(parts, overlay=overlay), records, "run", lambda _listing: None)


def test_what_is_new_or_changed_is_kept_and_the_rest_is_left_alone() -> None:
    records = FakeRecords()
    first = pull(records, page("a", "b"), page("c"), COMPLETE)
    assert first.counts() == {"seen": 3, "changed": 3, "unchanged": 0, "quarantined": 0, "missing": 0}
    second = pull(records, page("a"), page("b", title="new"), COMPLETE)
    assert second.counts() == {"seen": 2, "changed": 1, "unchanged": 1, "quarantined": 0, "missing": 1}


@pytest.mark.parametrize(
    ("ending", "outcome"),
    [(Ending(Outcome.PARTIAL), Outcome.PARTIAL), (Ending(Outcome.FAILED, "x"), Outcome.FAILED), (None, Outcome.FAILED)],
)
def test_only_a_complete_listing_tells_what_is_missing_and_heals(ending: Ending | None, outcome: Outcome) -> None:
    records = FakeRecords()
    pull(records, page("a", "b"), COMPLETE)
    assert records.resolved == [("extract", "shop")]
    listing = pull(records, page("a"), *([ending] if ending else []))
    assert (listing.outcome, listing.missing) == (outcome, 0)
    assert records.resolved == [("extract", "shop")]


@pytest.mark.parametrize(
    ("rejected", "missing"),
    [([], 2), ([Rejection("b", "bad", asset_id="b")], 1), ([Rejection("line 2", "bad")], 0)],
    ids=["nothing", "a known id", "who knows what"],
)
def test_what_was_rejected_is_not_missing(rejected: list[Rejection], missing: int) -> None:
    records = FakeRecords()
    pull(records, page("a", "b", "c"), COMPLETE)
    assert pull(records, Page((), tuple(rejected)), page("a"), COMPLETE).missing == missing


def test_a_rejected_record_does_not_stand_in_the_way_of_a_good_one_of_its_id() -> None:
    bad = Page((), (Rejection("a", "bad", asset_id="a"),))
    assert pull(FakeRecords(), bad, page("a"), bad, COMPLETE).counts() == {
        "seen": 3,
        "changed": 1,
        "unchanged": 0,
        "quarantined": 2,
        "missing": 0,
    }


def test_counts_are_told_after_each_page_and_stay_when_the_source_raises() -> None:
    records: Any = FakeRecords()
    told: list[int] = []
    with pytest.raises(SourceUnavailable):
        extract(
            Told((page("a", "b"), page("c"), SourceUnavailable("gone"))),
            records,
            "run",
            lambda listing: told.append(listing.seen),
        )
    assert told == [2, 3]
    assert len(records.rows) == 3


def test_the_second_record_of_an_id_is_refused_on_whichever_page_it_comes() -> None:
    records = FakeRecords()
    listing = pull(records, page("a", "a"), page("b"), page("a", "b", title="late"), COMPLETE)
    assert listing.counts() == {"seen": 5, "changed": 2, "unchanged": 0, "quarantined": 3, "missing": 0}
    assert {entry.record_ref for entry in records.quarantined} == {"a", "b"}


def test_an_id_of_another_owner_is_refused_and_an_overlay_is_not() -> None:
    records = FakeRecords()
    records.put("store", "a")
    assert pull(records, page("a", "b"), COMPLETE).counts()["quarantined"] == 1
    assert "source 'store' owns this id" in records.quarantined[0].error
    assert pull(records, page("a"), COMPLETE, overlay=True).changed == 1


def test_an_id_that_another_source_takes_meanwhile_is_refused() -> None:
    records = FakeRecords(rival="b")
    listing = pull(records, page("a", "b", "c"), COMPLETE)
    assert listing.counts() == {"seen": 3, "changed": 2, "unchanged": 0, "quarantined": 1, "missing": 0}
    assert "source 'rival' owns this id" in records.quarantined[0].error


def test_a_source_that_becomes_an_overlay_is_stored_as_one() -> None:
    records = FakeRecords()
    pull(records, page("a"), COMPLETE)
    assert pull(records, page("a"), COMPLETE, overlay=True).changed == 1
    assert pull(records, page("a"), COMPLETE, overlay=True).changed == 0


def test_two_ids_of_one_key_are_an_error_not_an_overwrite() -> None:
    records = FakeRecords()
    records.put("shop", "a")
    row = records.rows["shop", asset_key("a")]
    records.rows["shop", asset_key("a")] = StoredRecord("shop", row.asset_key, "another", False, b"")
    with pytest.raises(KeyCollision, match="ids 'a' and 'another' share the key"):
        pull(records, page("a"), COMPLETE)


@pytest.mark.parametrize("pages", [[page("a", "b")], [page("a"), page("b")]], ids=["one page", "two pages"])
def test_two_new_ids_of_one_key_in_one_listing_are_no_duplicates(
    monkeypatch: pytest.MonkeyPatch, pages: list[Page]
) -> None:
    monkeypatch.setattr(extracting, "asset_key", lambda _id: 7)
    monkeypatch.setitem(FakeRecords.put.__globals__, "asset_key", lambda _id: 7)
    with pytest.raises(KeyCollision, match="ids 'b' and 'a' share the key 7"):
        pull(FakeRecords(), *pages, COMPLETE)


@pytest.mark.parametrize("extra", [{"n": float("inf")}, {"deep": None}])
def test_a_record_that_no_store_can_keep_is_refused_and_the_others_are_kept(extra: dict[str, Any]) -> None:
    if "deep" in extra:
        for _ in range(600):
            extra = {"deep": extra}
    records = FakeRecords()
    bad = CatalogRecord.model_construct(id="bad", extra=extra)
    listing = pull(records, Page((CatalogRecord(id="a"), bad, CatalogRecord(id="c"))), COMPLETE)
    assert listing.seen == 3
    assert listing.changed + listing.quarantined == 3
    assert {row.id for row in records.rows.values()} >= {"a", "c"}
    if "deep" in extra:
        assert [entry.record_ref for entry in records.quarantined] == ["bad"]


def test_what_was_rejected_is_kept_in_a_form_that_every_store_can_keep() -> None:
    records = FakeRecords()
    pull(records, Page((), (Rejection("é" * 3000, "err \x00", "pay \ud800 load"),)), COMPLETE)
    (entry,) = records.quarantined
    assert len(entry.record_ref.encode()) <= 2048
    assert (entry.error, entry.payload, entry.stage) == ("err \ufffd", "pay \ufffd load", "extract")


def test_notices_are_counted_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extracting, "NOTICES_KEPT", 3)
    pages = [Page((), notices=(f"notice {number}", "always")) for number in range(10)]
    listing = pull(FakeRecords(), *pages, COMPLETE)
    assert len(listing.notices) == 3
    assert listing.notices["always"] == 10


@given(st.lists(st.integers(0, 2**63 - 1)), st.integers(1, 5))
def test_a_key_set_knows_what_it_was_given(keys: list[int], settle_keys: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extracting, "SETTLE_KEYS", settle_keys)
        seen = KeySet()
        assert [seen.add(key) for key in keys] == [key not in keys[:place] for place, key in enumerate(keys)]
        stored = np.array(sorted({*keys, 7, 2**63 - 1}), dtype=np.int64)
        assert seen.missing_from(stored) == len({7, 2**63 - 1} - set(keys))
