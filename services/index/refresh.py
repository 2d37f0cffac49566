"""The steps of a refresh, each idempotent and safe to try again; the command line and the DAG call the same ones.

begin -> extract (per source) -> compose -> plan -> embed (per batch) -> publish -> verify. All state is in the
database: a step may run in a process of its own. Killed anywhere, the next run goes on from what is stored.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog

from services.catalog.sources.base import Outcome, Source
from services.errors import PermanentError, QuarantineLimitExceeded, SourceError, SourceUnknown, VouchError
from services.index.compose import ComposeError, Composer
from services.index.embedder import Embedder
from services.index.extract import Listing, extract
from services.index.lease import is_dead
from services.index.report import report
from services.index.run_store import Run, SourceEntry
from services.index.stages import COMPOSE_PAGE, IndexStages, Progress, StageLimits, no_progress
from services.index.store import IndexStores, QuarantineEntry

log = structlog.get_logger()

COMPOSE_STAGE = "compose"


@dataclass(frozen=True)
class RefreshLimits(StageLimits):
    """See the settings of the same names."""

    quarantine_limit_percent: float
    quarantine_limit_count: int


@dataclass(frozen=True)
class ConfiguredSource:
    """A source as the index knows it, and how to open it."""

    entry: SourceEntry
    open: Callable[[], Source]


class RefreshSteps:
    """One refresh after another. Raises the errors of `services.errors`; a transient one is worth a retry."""

    def __init__(
        self,
        stores: IndexStores,
        sources: Mapping[str, ConfiguredSource],
        composer: Composer,
        embedder: Embedder,
        limits: RefreshLimits,
        progress: Progress = no_progress,
    ) -> None:
        self._stores = stores
        self._sources = sources
        self._composer = composer
        self._embedder = embedder
        self._limits = limits
        self._progress = progress
        self._stages = IndexStages(stores, composer, embedder, limits, progress)

    def begin(self, source_names: Sequence[str] | None, *, full: bool, dry_run: bool, holder: str) -> str:
        """Take the lease for a refresh of these sources (None or empty: all); its run id.

        The same holder asking again gets the run it already has. Raises RefreshInProgress, SourceUnknown.
        """
        names = self._order(list(source_names or self._sources))
        run_id = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
        lease_seconds = self._limits.lease_seconds
        taken = self._stores.runs.begin(
            run_id,
            holder,
            names,
            full=full,
            dry_run=dry_run,
            is_dead=lambda held: is_dead(held, holder, lease_seconds),
        )
        if not dry_run:
            self._stores.sources.put_sources([source.entry for source in self._sources.values()])
        log.info("refresh begun", run_id=taken, sources=names, full=full, dry_run=dry_run)
        return taken

    def source_names(self, run_id: str) -> list[str]:
        """The sources that the run refreshes, owners before overlays."""
        return list(self._stores.runs.run(run_id).sources)

    def extract(self, run_id: str, source_name: str) -> dict[str, Any]:
        """Pull one source; its counts and `outcome`. In a dry run nothing stays, and later stages are counted here.

        Raises when the listing failed; what it had brought until then is kept and counted, other sources may go on.
        """
        run = self._stores.runs.run(run_id)
        configured = self._configured(source_name)
        started = time.monotonic()
        list_source = self._rehearse_listing if run.dry_run else self._keep_listing
        try:
            listing, counts = list_source(run, configured.open())
        except VouchError as error:
            self._stores.runs.end_listing(run_id, source_name, Outcome.FAILED, str(error))
            raise
        counts["seconds"] = round(time.monotonic() - started, 3)
        self._stores.runs.count(run_id, source_name, counts)
        self._stores.runs.end_listing(run_id, source_name, listing.outcome, listing.detail)
        log.info("source listed", run_id=run_id, source=source_name, outcome=listing.outcome, **counts)
        if listing.outcome is Outcome.FAILED:
            raise SourceError(f"source {source_name!r}: the listing failed: {listing.detail}")
        return {**counts, "outcome": str(listing.outcome), "detail": listing.detail}

    def compose(self, run_id: str) -> dict[str, int]:
        """Merge, score, gate and compose whatever changed.

        Raises QuarantineLimitExceeded when too many records of the run failed; then nothing may be published.
        """
        run = self._stores.runs.run(run_id)
        if run.dry_run:
            return {"drafted": 0, "composed": 0, "quarantined": 0}
        counts, failed = self._compose(run, self._stores)
        # Put, not added: a compose that is tried again meets the same records again.
        for source in {*run.counts, *failed}:
            rejected = run.counts.get(source, {}).get("rejected", 0)
            self._stores.runs.count(run_id, source, {"quarantined": rejected + failed[source]})
        self._stop_above_quarantine_limit(run_id)
        log.info("composed", run_id=run_id, **counts)
        return counts

    def plan(self, run_id: str) -> list[dict[str, Any]]:
        """The batches to embed, as plain values; empty when every text has its vector."""
        run = self._stores.runs.run(run_id)
        return [] if run.dry_run else self._stages.plan(run_id, self._stages.wanted(self._version()))

    def embed(self, run_id: str, batch: Mapping[str, Any]) -> dict[str, int]:
        """Embed one batch into the cache; texts that have a vector by now are passed over."""
        return self._stages.embed(run_id, batch, self._stages.wanted(self._version()))

    def publish(self, run_id: str) -> dict[str, int]:
        """Publish every draft that misses no vector, each asset whole, then ask the gate of all that are published.

        `pending` counts the drafts that miss a vector.
        """
        run = self._stores.runs.run(run_id)
        if run.dry_run:
            return {"written": 0, "published": 0, "pending": 0}
        version = self._version()
        totals = self._stages.publish_drafts(run_id, version)
        totals["written"] += self._stages.pass_gate(run_id, version)
        pending = sum(self._stores.drafts.drafted().values())
        log.info("published", run_id=run_id, index_version=version, pending=pending, **totals)
        return {**totals, "pending": pending}

    def verify(self, run_id: str) -> dict[str, Any]:
        """Check the published index, promote its version, end the run; the run's report.

        Raises PermanentError when the index is not whole: the version that readers had stays the active one.
        """
        run = self._stores.runs.run(run_id)
        version = None
        if not run.dry_run:
            version = self._version()
            pending = sum(self._stores.drafts.drafted().values())
            faults = {} if pending else self._stages.verify(run_id, version)
            if pending or faults:
                found = {"unpublished_drafts": pending, **faults} if pending else dict(faults)
                raise PermanentError(
                    f"index version {version} is not whole: {found}; run the refresh again, and with --full if it stays"
                )
        failed = sorted(name for name, listing in run.listings.items() if listing.outcome == Outcome.FAILED)
        unlisted = sorted(set(run.sources) - set(run.listings))
        error = "; ".join(
            [f"source {name!r} failed: {run.listings[name].detail}" for name in failed]
            + [f"source {name!r} was not listed" for name in unlisted]
        )
        status = "incomplete" if error else "succeeded"
        self._stores.runs.end(run_id, status, error=error or None, version=version)
        log.info("refresh ended", run_id=run_id, status=status, index_version=version)
        return report(self._stores.runs.run(run_id))

    def fail(self, run_id: str, error: str) -> None:
        """End the run as failed and give its lease back; a run that ended already stays as it is."""
        self._stores.runs.end(run_id, "failed", error=error, version=None)
        log.error("refresh failed", run_id=run_id, error=error)

    def _version(self) -> int:
        return self._stores.embeddings.ensure_version(self._embedder.identity)

    def _configured(self, name: str) -> ConfiguredSource:
        if name not in self._sources:
            known = ", ".join(sorted(self._sources)) or "none"
            raise SourceUnknown(f"source {name!r} is not configured; known are: {known}")
        return self._sources[name]

    def _order(self, names: list[str]) -> list[str]:
        if not names:
            raise SourceError("no source is configured; name one in the sources file, or refresh with --jsonl PATH")
        # An overlay's lines find the assets they add to only once those are listed.
        return sorted(dict.fromkeys(names), key=lambda name: self._configured(name).entry.overlay)

    def _keep_listing(self, run: Run, source: Source) -> tuple[Listing, dict[str, float]]:
        listing = extract(source, self._stores.records, run.run_id, self._page_done(run, source.name))
        return listing, _counts(listing)

    def _rehearse_listing(self, run: Run, source: Source) -> tuple[Listing, dict[str, float]]:
        with self._stores.rehearsal() as stores:
            listing = extract(source, stores.records, run.run_id, self._page_done(run, source.name))
            composed, _ = self._compose(run, stores)
            missing = sum(texts for _, _, texts in stores.embeddings.missing_texts())
        counts = _counts(listing)
        counts["quarantined"] += composed["quarantined"]
        return listing, {**counts, "would_publish": composed["composed"], "would_embed": missing}

    def _page_done(self, run: Run, source_name: str) -> Callable[[Listing], None]:
        def done(listing: Listing) -> None:
            # Noted page by page: it keeps the lease alive while nothing changes, and stays when the source breaks off.
            self._stores.runs.count(run.run_id, source_name, _counts(listing))
            self._progress("extract", source_name, listing.seen, None)

        return done

    def _compose(self, run: Run, stores: IndexStores) -> tuple[dict[str, int], Counter[str]]:
        """Counts of assets, and how many merged records of each source are no asset."""
        counts = {"rescored": self._stages.rescore(run.run_id, stores)["rescored"], "drafted": 0}
        failures: Counter[str] = Counter()
        # Closed when something below raises: the stream is a transaction of its own.
        with closing(stores.drafts.stale(self._composer.fingerprint, COMPOSE_PAGE, everything=run.full)) as pages:
            for page in pages:
                drafts, failed = self._composer.merge_page(page)
                counts["drafted"] += stores.drafts.stage(run.run_id, drafts) if drafts else 0
                failures.update(self._quarantine(run, stores, failed))
        counts["composed"] = self._stages.compose_drafts(run.run_id, stores)
        stores.records.resolve_quarantine(run.run_id, COMPOSE_STAGE, None)
        return {**counts, "quarantined": failures.total()}, failures

    def _quarantine(self, run: Run, stores: IndexStores, failed: Sequence[ComposeError]) -> list[str]:
        entries = [QuarantineEntry(item.source, item.asset_id, COMPOSE_STAGE, item.error) for item in failed]
        if entries:
            stores.records.quarantine(run.run_id, entries)
        return [entry.source for entry in entries]

    def _stop_above_quarantine_limit(self, run_id: str) -> None:
        run = self._stores.runs.run(run_id)
        seen = sum(counts.get("seen", 0) for counts in run.counts.values())
        failed = sum(counts.get("quarantined", 0) for counts in run.counts.values())
        percent = self._limits.quarantine_limit_percent
        if failed > self._limits.quarantine_limit_count and failed > seen * percent / 100:
            raise QuarantineLimitExceeded(
                f"{failed:.0f} of {seen:.0f} records are in quarantine, more than {percent:g} % and more than"
                f" {self._limits.quarantine_limit_count}; nothing was published: see vouch quarantine list"
            )


def _counts(listing: Listing) -> dict[str, float]:
    """A listing's counts; what its source rejected also stands apart from what composing will find."""
    return {**listing.counts(), "rejected": listing.quarantined}
