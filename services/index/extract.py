"""Stage one of a refresh: pull one source's listing and keep what differs from what is stored.

Nothing is written for a record that is as it was. Nothing is deleted either: what a complete listing no longer holds
is counted as missing. A record that was rejected is there all the same; where one was rejected whose id could not be
read, it may be any, and nothing counts as missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import structlog

from services.catalog.model import CatalogRecord, asset_key, payload_hash
from services.catalog.sources.base import Ending, Outcome, Page, Source
from services.errors import KeyCollision
from services.index.store import IncomingRecord, QuarantineEntry, RecordStore
from services.text.clean import scrub

log = structlog.get_logger()

STAGE = "extract"
NOTICES_TOLD = 50
NOTICES_KEPT = 1000  # distinct ones; a catalog may have a new one on every line
REFERENCE_BYTES_LIMIT = 2048  # quarantine is found by it, and an index holds no longer entries
SETTLE_KEYS = 65_536


@dataclass
class Listing:
    """How a listing went, in counts of records."""

    outcome: Outcome = Outcome.FAILED
    detail: str = "the listing ended without saying so"
    seen: int = 0
    changed: int = 0
    unchanged: int = 0
    quarantined: int = 0
    missing: int = 0
    notices: Counter[str] = field(default_factory=Counter)

    def counts(self) -> dict[str, int]:
        names = ("seen", "changed", "unchanged", "quarantined", "missing")
        return {name: getattr(self, name) for name in names}


class KeySet:
    """A growing set of 63-bit keys at 8 bytes each: a sorted array, and a small set of what came lately."""

    def __init__(self) -> None:
        self._settled = np.empty(0, dtype=np.int64)
        self._recent: set[int] = set()

    def add(self, key: int) -> bool:
        """True when the key is new."""
        if key in self._recent or self._is_settled(key):
            return False
        self._recent.add(key)
        if len(self._recent) >= SETTLE_KEYS:
            self._settle()
        return True

    def include(self, other: KeySet) -> None:
        """Take all keys of another set."""
        self._settle()
        other._settle()
        self._settled = np.union1d(self._settled, other._settled)

    def missing_from(self, stored: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
        """How many of the stored keys are not in this set."""
        self._settle()
        return int(np.setdiff1d(stored, self._settled, assume_unique=True).size)

    def _is_settled(self, key: int) -> bool:
        place = int(np.searchsorted(self._settled, key))
        return place < self._settled.size and int(self._settled[place]) == key

    def _settle(self) -> None:
        fresh = np.fromiter(self._recent, dtype=np.int64, count=len(self._recent))
        self._settled = np.sort(np.concatenate([self._settled, fresh]))
        self._recent.clear()


@dataclass
class _Told:
    """The keys that a listing has spoken of so far; `unreadable` once it rejected a record without a readable id."""

    listed: KeySet = field(default_factory=KeySet)
    rejected: KeySet = field(default_factory=KeySet)
    unreadable: bool = False

    def missing_from(self, stored: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
        """How many of the stored keys the whole listing is known to lack."""
        if self.unreadable:
            return 0
        self.listed.include(self.rejected)
        return self.listed.missing_from(stored)


def extract(source: Source, records: RecordStore, run_id: str, on_page: Callable[[Listing], None]) -> Listing:
    """Pull the whole listing of `source`. `on_page` is called after each page with the counts so far.

    Raises KeyCollision when two ids share a key, and what the source raises before its first page.
    """
    listing = Listing()
    told = _Told()
    for part in source.listing():
        if isinstance(part, Ending):
            listing.outcome, listing.detail = part.outcome, part.detail
            break
        _take_page(part, source, records, run_id, told, listing)
        on_page(listing)
    if listing.outcome is Outcome.COMPLETE:
        listing.missing = told.missing_from(records.keys(source.name))
        records.resolve_quarantine(run_id, STAGE, source.name)
    for notice, count in listing.notices.most_common(NOTICES_TOLD):
        log.warning("source notice", run_id=run_id, source=source.name, notice=notice, pages=count)
    return listing


def _take_page(page: Page, source: Source, records: RecordStore, run_id: str, told: _Told, listing: Listing) -> None:
    rejected = [_entry(source, item.record_ref, item.error, item.payload) for item in page.rejected]
    for item in page.rejected:
        if item.asset_id is None:
            told.unreadable = True
        else:
            told.rejected.add(asset_key(item.asset_id))
    fresh: list[CatalogRecord] = []
    repeated: list[CatalogRecord] = []
    for record in page.records:
        (fresh if told.listed.add(asset_key(record.id)) else repeated).append(record)
    _refuse_collisions(fresh, repeated, records)
    duplicate = "duplicate id: an earlier record of this listing has it"
    rejected += [_entry(source, record.id, duplicate) for record in repeated]
    changed, refused = _changed(fresh, source, records)
    written = records.merge(run_id, source.name, overlay=source.overlay, records=changed) if changed else 0
    if written < len(changed):
        # Another source took one of the ids since they were looked up.
        _, refused = _changed(fresh, source, records)
    rejected += refused
    if rejected:
        records.quarantine(run_id, rejected)
    listing.seen += len(page.records) + len(page.rejected)
    listing.quarantined += len(rejected)
    listing.changed += written
    listing.unchanged = listing.seen - listing.quarantined - listing.changed
    known = listing.notices.keys()
    listing.notices.update(item for item in page.notices if item in known or len(known) < NOTICES_KEPT)


def _refuse_collisions(fresh: Sequence[CatalogRecord], repeated: Sequence[CatalogRecord], records: RecordStore) -> None:
    """Raises KeyCollision where a key came again with another id: on this page, or on an earlier one that is stored."""
    if not repeated:
        return
    ids = {row.asset_key: row.id for row in records.stored([asset_key(record.id) for record in repeated])}
    ids |= {asset_key(record.id): record.id for record in fresh}
    for record in repeated:
        _same_id(ids, record.id)


def _same_id(ids: Mapping[int, str], asset_id: str) -> None:
    key = asset_key(asset_id)
    if ids.get(key, asset_id) != asset_id:
        raise KeyCollision(f"ids {asset_id!r} and {ids[key]!r} share the key {key}; rename one of them")


def _changed(
    fresh: Sequence[CatalogRecord], source: Source, records: RecordStore
) -> tuple[list[IncomingRecord], list[QuarantineEntry]]:
    """The records that differ from what is stored, and those that are refused: another source owns them, or no store
    can keep them."""
    stored = records.stored([asset_key(record.id) for record in fresh])
    ids = {row.asset_key: row.id for row in stored}
    owners = {row.asset_key: row.source for row in stored if not row.overlay and row.source != source.name}
    known = {row.asset_key: (row.overlay, row.payload_hash) for row in stored if row.source == source.name}
    changed: list[IncomingRecord] = []
    refused: list[QuarantineEntry] = []
    for record in fresh:
        key = asset_key(record.id)
        _same_id(ids, record.id)
        if not source.overlay and key in owners:
            fix = f"source {owners[key]!r} owns this id; make {source.name!r} an overlay or change the id"
            refused.append(_entry(source, record.id, fix))
            continue
        try:
            payload = record.payload()
            digest = payload_hash(payload)
        except (ValueError, RecursionError):
            refused.append(_entry(source, record.id, "cannot be stored: nested too deeply, or a number is not finite"))
            continue
        if known.get(key) != (source.overlay, digest):
            changed.append(IncomingRecord(key, record.id, digest, payload))
    return changed, refused


def _entry(source: Source, record_ref: str, error: str, payload: str = "") -> QuarantineEntry:
    """What could not be read may hold anything, characters that no store can keep among it."""
    reference, error, payload = (scrub(text)[0] for text in (record_ref, error, payload))
    short = reference.encode()[:REFERENCE_BYTES_LIMIT].decode(errors="ignore")
    return QuarantineEntry(source.name, short, STAGE, error, payload)
