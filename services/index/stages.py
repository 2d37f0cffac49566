"""The stages that a refresh and a reevaluation share. Each works on what the index holds, and may be tried again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog
from pydantic import ValidationError

from services.catalog.model import Asset
from services.index.compose import Composer
from services.index.embedder import Embedder
from services.index.plan import cut_batches
from services.index.scoring import Scores, told_words
from services.index.store import EmbedBatch, IndexStores, Wanted
from services.index.trust_store import DueAsset, PublishedAsset
from services.trust.gate import gate, threshold_for

log = structlog.get_logger()

SCORE_PAGE = 500
COMPOSE_PAGE = 200
PUBLISH_PAGE = 200
GATE_PAGE = 500
EMBED_ROUND_TEXTS = 128  # vectors are stored after so many texts, so that a killed batch loses little

OfSource = TypeVar("OfSource", PublishedAsset, DueAsset)

# (stage, source or "", done so far, total or None)
Progress = Callable[[str, str, int, int | None], None]


def no_progress(_stage: str, _source: str, _done: int, _total: int | None) -> None:
    return None


@dataclass(frozen=True)
class StageLimits:
    """See the settings of the same names."""

    lease_seconds: float
    embed_batch_texts: int
    exact_scan_rows: int


class IndexStages:
    """One stage after another, in the order of the methods. Each may be called on its own, in its own process."""

    def __init__(
        self, stores: IndexStores, composer: Composer, embedder: Embedder, limits: StageLimits, progress: Progress
    ) -> None:
        self._stores = stores
        self._composer = composer
        self._embedder = embedder
        self._limits = limits
        self._progress = progress

    def rescore(self, run_id: str, stores: IndexStores) -> dict[str, int]:
        """Score every published asset that other rules have scored, from what is stored of it.

        `retold` of them are drafted again, because their narrative says something else now. Their verdicts wait for
        `pass_gate`.
        """
        counts: Counter[str] = Counter(rescored=0, retold=0)
        after_key = -1
        while page := stores.scores.outdated(self._composer.scorer.digest, after_key, SCORE_PAGE):
            for source, items in _by_source(page).items():
                scores = {item.asset_key: found for item in items if (found := self._score(item)) is not None}
                retold = [item.asset_key for item in items if item.asset_key in scores and _tells(item, scores)]
                written = stores.scores.set_scores(run_id, scores, retold)
                stores.runs.count(run_id, source, {"rescored": len(scores), "written": written}, add=True)
                counts.update(rescored=len(scores), retold=len(retold))
            after_key = page[-1].asset_key
            self._progress("score", "", counts["rescored"], None)
        return dict(counts)

    def compose_drafts(self, run_id: str, stores: IndexStores) -> int:
        """Compose every draft that is not composed, or was by other rules or thresholds; how many."""
        stores.scores.recompose_drafts(run_id, self._composer.scorer.digest, self._composer.thresholds)
        composed_drafts = 0
        after_key = -1
        while page := stores.drafts.uncomposed(after_key, COMPOSE_PAGE):
            neighbours = stores.drafts.neighbours(self._composer.neighbour_keys(page))
            composed = self._composer.compose_page(page, neighbours)
            stores.drafts.set_composed(run_id, composed)
            composed_drafts += len(composed)
            after_key = page[-1].asset_key
            self._progress("compose", "", composed_drafts, None)
        return composed_drafts

    def wanted(self, version: int, *, drafts: bool = True) -> Wanted:
        """Whose texts shall have vectors: drafts, and who enters by the thresholds in force."""
        return Wanted(drafts=drafts, entering=self._composer.thresholds, version=version)

    def plan(self, run_id: str, wanted: Wanted) -> list[dict[str, Any]]:
        """The batches to embed, as plain values; empty when every text has its vector."""
        embeddings = self._stores.embeddings
        for source, texts in embeddings.cached_texts(wanted).items():
            self._stores.runs.count(run_id, source, {"cached": texts})
        batches = cut_batches(embeddings.missing_texts(wanted), self._limits.embed_batch_texts)
        log.info("planned", run_id=run_id, batches=len(batches), texts=sum(batch.texts for batch in batches))
        return [_batch_to_json(batch) for batch in batches]

    def embed(self, run_id: str, batch: Mapping[str, Any], wanted: Wanted) -> dict[str, int]:
        """Embed one batch into the cache; texts that have a vector by now are passed over."""
        planned = _batch_from_json(batch)
        texts = self._stores.embeddings.texts(planned.source, planned.first_key, planned.last_key, wanted)
        # Similar lengths share a round, so that short texts are not padded to the longest of all.
        hashes = sorted(texts, key=lambda content_hash: (len(texts[content_hash]), content_hash))
        embedded = 0
        for start in range(0, len(hashes), EMBED_ROUND_TEXTS):
            part = hashes[start : start + EMBED_ROUND_TEXTS]
            vectors = self._embedder.embed_documents([texts[content_hash] for content_hash in part])
            added = self._stores.embeddings.add_vectors(run_id, part, vectors)
            self._stores.runs.count(run_id, planned.source, {"embedded": added}, add=True)
            embedded += added
            self._progress("embed", planned.source, start + len(part), len(hashes))
        log.info("embedded", run_id=run_id, source=planned.source, batch=planned.number, texts=embedded)
        return {"embedded": embedded, "cached": max(0, planned.texts - embedded)}

    def publish_drafts(self, run_id: str, version: int) -> dict[str, int]:
        """Publish every draft that misses no vector, each asset whole."""
        totals = {"written": 0, "published": 0}
        for source, drafted in self._stores.drafts.drafted().items():
            after_key = -1
            done = 0
            while keys := self._stores.drafts.publishable(source, after_key, PUBLISH_PAGE):
                written = self._stores.embeddings.publish(run_id, version, keys)
                self._stores.runs.count(run_id, source, {"written": written}, add=True)
                after_key = keys[-1]
                done += len(keys)
                totals["written"] += written
                self._progress("publish", source, done, drafted)
            totals["published"] += done
        return totals

    def pass_gate(self, run_id: str, version: int) -> int:
        """Give every published asset the verdict that its score and the thresholds in force say; rows written."""
        thresholds = self._composer.thresholds
        total = judged = 0
        after_key = -1
        while page := self._stores.scores.due(version, thresholds, after_key, GATE_PAGE):
            for source, items in _by_source(page).items():
                verdicts = {
                    item.asset_key: gate(item.curation_score, threshold_for(item.object_type, source, thresholds))
                    for item in items
                }
                written = self._stores.scores.set_verdicts(run_id, version, verdicts)
                self._stores.runs.count(run_id, source, {"written": written}, add=True)
                total += written
            judged += len(page)
            after_key = page[-1].asset_key
            self._progress("gate", "", judged, None)
        return total

    def verify(self, run_id: str, version: int) -> Mapping[str, int]:
        """Check and promote the version, and keep what the run made of gate and scores; faults by name."""
        faults = self._stores.embeddings.verify(run_id, version, self._limits.exact_scan_rows)
        if not faults:
            self._count_passages(run_id)
            self._stores.history.keep_histogram(run_id)
        return faults

    def _count_passages(self, run_id: str) -> None:
        passed: dict[str, Counter[str]] = {}
        for change in self._stores.history.changes(run_id):
            counts = passed.setdefault(change.source, Counter())
            counts.update(entered=change.entering, left=change.leaving)
        for source, counts in passed.items():
            self._stores.runs.count(run_id, source, counts)

    def _score(self, item: PublishedAsset) -> Scores | None:
        """The scores of a published asset; None when this release no longer takes it for one."""
        try:
            return self._composer.scorer.score(Asset.model_validate(item.payload))
        except ValidationError:
            log.warning("published asset cannot be scored", asset_key=item.asset_key)
            return None


def _by_source(page: Iterable[OfSource]) -> dict[str, list[OfSource]]:
    groups: dict[str, list[OfSource]] = {}
    for item in page:
        groups.setdefault(item.source, []).append(item)
    return groups


def _tells(item: PublishedAsset, scores: Mapping[int, Scores]) -> bool:
    return told_words(scores[item.asset_key].signals) != told_words(item.signals)


def _batch_to_json(batch: EmbedBatch) -> dict[str, Any]:
    # 63-bit keys do not survive JSON readers that keep numbers as doubles.
    return {**vars(batch), "first_key": str(batch.first_key), "last_key": str(batch.last_key)}


def _batch_from_json(batch: Mapping[str, Any]) -> EmbedBatch:
    return EmbedBatch(
        number=int(batch["number"]),
        source=str(batch["source"]),
        first_key=int(batch["first_key"]),
        last_key=int(batch["last_key"]),
        texts=int(batch["texts"]),
    )
