"""Scores and the gate anew over what is published, without asking a source.

begin -> rescore -> plan -> embed (per batch) -> publish -> verify, under the same lease as a refresh and with its
stages. Nothing that has a vector in the cache is embedded again. Killed anywhere, the next refresh or reevaluation
goes on from what is stored.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import structlog
from pydantic import ValidationError

from services.catalog.model import Asset
from services.errors import ModelError, PermanentError, SchemaError
from services.index.compose import Composer
from services.index.embedder import Embedder
from services.index.lease import is_dead
from services.index.run_store import Run, RunKind
from services.index.stages import SCORE_PAGE, IndexStages, Progress, StageLimits, no_progress
from services.index.store import IndexStores
from services.index.trust_store import StandingVerdict
from services.trust.gate import GateChange, GatedAsset, gate_changes

log = structlog.get_logger()

WHOLE_RUN = ""  # in place of a source: what is counted once for the run
WAITING = "waiting_drafts"


class Reevaluation:
    """One reevaluation after another, by the composer's rules and thresholds. Raises what `services.errors` names."""

    def __init__(
        self,
        stores: IndexStores,
        composer: Composer,
        embedder: Embedder,
        limits: StageLimits,
        progress: Progress = no_progress,
    ) -> None:
        self._stores = stores
        self._composer = composer
        self._embedder = embedder
        self._limits = limits
        self._progress = progress
        self._stages = IndexStages(stores, composer, embedder, limits, progress)

    def preview(self) -> dict[str, Any]:
        """How many assets would leave and enter, by source and type. Reads once, changes nothing, needs no lease."""
        self._version()
        counted = {"assets": 0, "rescored": 0}
        with closing(self._stores.scores.standing(self._composer.scorer.digest, SCORE_PAGE)) as pages:
            changes = gate_changes(self._as_gated(pages, counted), self._composer.thresholds)
        return {"dry_run": True, **self._told("would pass the gate", changes), **counted}

    def begin(self, holder: str) -> str:
        """Take the lease; the run id. The same holder asking again gets the run it already has.

        Raises RefreshInProgress; SchemaError before the first refresh; ModelError for an index of another model.
        """
        self._version()
        run_id = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
        taken = self._stores.runs.begin(
            run_id,
            holder,
            [],
            full=False,
            dry_run=False,
            is_dead=lambda held: is_dead(held, holder, self._limits.lease_seconds),
            kind=RunKind.REEVALUATION,
        )
        log.info("reevaluation begun", run_id=taken, thresholds=asdict(self._composer.thresholds))
        return taken

    def rescore(self, run_id: str) -> dict[str, int]:
        """Score again what other rules have scored, and compose anew whose narrative that changes.

        What a refresh has left behind unpublished stays for the next one, and whose narrative changes waits with it.
        """
        run = self._stores.runs.run(run_id)
        if WAITING not in run.counts.get(WHOLE_RUN, {}):
            # Noted before anything is drafted here, so that a second try does not take its own drafts for others'.
            left_behind = sum(self._stores.drafts.drafted().values())
            self._stores.runs.count(run_id, WHOLE_RUN, {WAITING: left_behind})
        counts = self._stages.rescore(run_id, self._stores)
        if self._drafts_are_ours(run_id):
            self._stages.compose_drafts(run_id, self._stores)
        log.info("rescored", run_id=run_id, **counts)
        return counts

    def plan(self, run_id: str) -> list[dict[str, Any]]:
        """The batches to embed, as plain values; empty when every text is in the cache."""
        return self._stages.plan(run_id, self._stages.wanted(self._version(), drafts=self._drafts_are_ours(run_id)))

    def embed(self, run_id: str, batch: Mapping[str, Any]) -> dict[str, int]:
        """Embed one batch into the cache; texts that have a vector by now are passed over."""
        wanted = self._stages.wanted(self._version(), drafts=self._drafts_are_ours(run_id))
        return self._stages.embed(run_id, batch, wanted)

    def publish(self, run_id: str) -> dict[str, int]:
        """Publish whose narrative changed, and give every published asset its verdict."""
        version = self._version()
        written = 0
        if self._drafts_are_ours(run_id):
            written = self._stages.publish_drafts(run_id, version)["written"]
        written += self._stages.pass_gate(run_id, version)
        log.info("gate passed", run_id=run_id, index_version=version, written=written)
        return {"written": written}

    def verify(self, run_id: str) -> dict[str, Any]:
        """Check the index and end the run; the run's report. Raises PermanentError when the index is not whole."""
        version = self._version()
        if faults := self._stages.verify(run_id, version):
            raise PermanentError(f"index version {version} is not whole: {dict(faults)}; run: vouch refresh")
        self._stores.runs.end(run_id, "succeeded", error=None, version=version)
        log.info("reevaluation ended", run_id=run_id)
        return self._report(self._stores.runs.run(run_id))

    def fail(self, run_id: str, error: str) -> None:
        """End the run as failed and give its lease back; a run that ended already stays as it is."""
        self._stores.runs.end(run_id, "failed", error=error, version=None)
        log.error("reevaluation failed", run_id=run_id, error=error)

    def _version(self) -> int:
        active = self._stores.scores.active_version()
        if active is None:
            raise SchemaError("there is no index yet; run: vouch refresh")
        version, model = active
        if model != self._embedder.identity:
            raise ModelError(
                f"index version {version} was built with model {model.model_id!r}, this process has"
                f" {self._embedder.identity.model_id!r}; set VOUCH_MODEL to the former, or refresh with the latter"
            )
        return version

    def _drafts_are_ours(self, run_id: str) -> bool:
        return not self._stores.runs.run(run_id).counts.get(WHOLE_RUN, {}).get(WAITING, 0)

    def _as_gated(
        self, pages: Generator[tuple[StandingVerdict, ...], None, None], counted: dict[str, int]
    ) -> Iterator[GatedAsset]:
        for page in pages:
            for item in page:
                counted["assets"] += 1
                counted["rescored"] += item.payload is not None
                yield GatedAsset(item.object_type, item.source, self._new_curation_score(item), item.eligible)
            self._progress("score", "", counted["assets"], None)

    def _new_curation_score(self, item: StandingVerdict) -> float:
        if item.payload is None:
            return item.curation_score
        try:
            return self._composer.scorer.score(Asset.model_validate(item.payload)).curation_score
        except ValidationError:
            return item.curation_score

    def _told(self, event: str, changes: Sequence[GateChange]) -> dict[str, Any]:
        """The changes as plain values; they are logged too, each on a line of its own."""
        for change in changes:
            log.info(event, **asdict(change))
        return {
            "thresholds": asdict(self._composer.thresholds),
            "leaving": sum(change.leaving for change in changes),
            "entering": sum(change.entering for change in changes),
            "changes": [asdict(change) for change in changes],
        }

    def _report(self, run: Run) -> dict[str, Any]:
        names = ("rescored", "embedded", "cached", "written")
        counts = {name: sum(int(part.get(name, 0)) for part in run.counts.values()) for name in names}
        return {
            "dry_run": False,
            "run_id": run.run_id,
            "status": run.status,
            "index_version": run.index_version,
            **self._told("passed the gate", self._stores.history.changes(run.run_id)),
            **counts,
            "waiting": sum(self._stores.drafts.drafted().values()),
            "seconds": round(run.seconds, 3),
        }


def reevaluate(steps: Reevaluation, holder: str) -> dict[str, Any]:
    """Every step in order, in one process; the run's report. Raises what a step raises, the run marked as failed."""
    run_id = steps.begin(holder)
    try:
        steps.rescore(run_id)
        for batch in steps.plan(run_id):
            steps.embed(run_id, batch)
        steps.publish(run_id)
        return steps.verify(run_id)
    except BaseException as error:
        # Also when interrupted from the keyboard: the next run must not wait for this one's lease.
        steps.fail(run_id, str(error) or type(error).__name__)
        raise
