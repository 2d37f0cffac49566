"""What the contract suites need of an engine, and small hands to write an index through its protocols alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from services.access.rule import AccessRule, Level
from services.catalog.model import ObjectType, asset_key, payload_hash
from services.evaluation.store import EvaluationStore
from services.index.identity import content_hash
from services.index.run_store import LeaseHolder
from services.index.store import Composed, ComposedChunk, Draft, IncomingRecord, IndexStores
from services.retrieval.store import AssetStore, PayloadStore, SearchStore, WorklistStore
from services.retrieval.words import WordStore
from tests.embedders import HashEmbedder

OPEN = AccessRule(Level.PUBLIC)
ALWAYS_EXACT = 1_000_000
RULES = "rules of today"


@dataclass(frozen=True)
class Engine:
    """One engine over one empty index. Each store may be used from several threads.

    `search_store` compares every vector; `graph_search_store` asks the graph index wherever there is one.
    """

    stores: IndexStores
    search_store: SearchStore
    graph_search_store: SearchStore
    asset_store: AssetStore
    worklist_store: WorklistStore
    payload_store: PayloadStore
    word_store: WordStore
    evaluation_store: EvaluationStore


def frequencies(engine: Engine, terms: Iterable[str]) -> dict[str, int]:
    """In how many assets each of the terms stands, of those that stand in any."""
    return {term: facts.assets for term, facts in engine.word_store.look_up(list(terms), (), ()).terms.items()}


@dataclass(frozen=True)
class Written:
    """An asset as a test wants it published: its draft and its composed form."""

    draft: Draft
    composed: Composed

    @property
    def key(self) -> int:
        return self.draft.asset_key


def record(asset_id: str, **fields: Any) -> IncomingRecord:
    payload = {"id": asset_id, **fields}
    return IncomingRecord(asset_key(asset_id), asset_id, payload_hash(payload), payload)


def written(
    asset_id: str,
    *texts: str,
    embedder: HashEmbedder,
    name: str | None = None,
    access: AccessRule = OPEN,
    postings: Mapping[str, float] | None = None,
    eligible: bool = True,
    **changes: Any,
) -> Written:
    """An asset with one chunk for each text. `changes` go to whichever of Draft and Composed has the field."""
    called = name or asset_id
    in_draft = {key: changes.pop(key) for key in list(changes) if key in Draft.__dataclass_fields__}
    draft = Draft(
        asset_key=asset_key(asset_id),
        id=asset_id,
        source="shop",
        object_type=ObjectType.TABLE,
        name=called,
        title=None,
        access=access,
        record_digest=hashlib.sha256(repr((called, texts, changes)).encode()).digest(),
        payload={"id": asset_id, "object_type": "table", "name": called},
    )
    words = {"table": 1.0, called.casefold(): 3.0} if postings is None else postings
    composed = Composed(
        keyword_length=sum(words.values()),
        whole_names=(called.casefold(),),
        whole_synonyms=(),
        tags=(),
        terms=(),
        domains=(),
        owners=(),
        data_products=(),
        workspaces=(),
        shape=None,
        siblings=(),
        narrative=" ".join(texts),
        postings=words,
        words={},
        chunks=chunks(texts, embedder),
        signals={
            "found": [],
            "certification": {"status": None, "expires_at": None},
            "policy_references": [],
            "notes": [],
        },
        certification="none",
        certification_expires_at=None,
        critical=None,
        data_quality_percent=None,
        governance=(),
        governance_score=0.0,
        curation_score=50.0,
        curation=(),
        curation_native=False,
        rules_digest=RULES,
        threshold=0.0,
        eligible=eligible,
        eligibility_reasons=("curation score 50 reaches the threshold 0",),
    )
    return Written(replace(draft, **in_draft), replace(composed, **changes))


def chunks(texts: Sequence[str], embedder: HashEmbedder) -> tuple[ComposedChunk, ...]:
    return tuple(
        ComposedChunk(number, f"part {number}", text, content_hash(text, embedder.identity))
        for number, text in enumerate(texts)
    )


def dead(_held: LeaseHolder) -> bool:
    return True


def alive(_held: LeaseHolder) -> bool:
    return False


@dataclass
class Hand:
    """Writes into an engine as one running refresh with one embedder."""

    engine: Engine
    embedder: HashEmbedder = field(default_factory=HashEmbedder)
    run_id: str = "run-1"
    holder: str = "process:test:1:1"
    version: int = 0

    def begin(self) -> Hand:
        stores = self.engine.stores
        self.run_id = stores.runs.begin(self.run_id, self.holder, ["shop"], full=False, dry_run=False, is_dead=alive)
        self.version = stores.embeddings.ensure_version(self.embedder.identity)
        return self

    def asset(self, asset_id: str, *texts: str, **changes: Any) -> Written:
        return written(asset_id, *texts, embedder=self.embedder, **changes)

    def prepare(self, items: Iterable[Written]) -> None:
        """Draft and compose, but publish nothing."""
        given = list(items)
        drafts = self.engine.stores.drafts
        drafts.stage(self.run_id, [item.draft for item in given])
        drafts.set_composed(self.run_id, {item.key: item.composed for item in given})

    def embed_missing(self) -> int:
        """Embed what has no vector yet; how many texts that were."""
        embeddings = self.engine.stores.embeddings
        embedded = 0
        for source, key, _ in list(embeddings.missing_texts()):
            texts = embeddings.texts(source, key, key)
            vectors = self.embedder.embed_documents(list(texts.values()))
            embedded += embeddings.add_vectors(self.run_id, list(texts), vectors)
        return embedded

    def publish_prepared(self) -> int:
        """Publish every draft that misses nothing; rows written."""
        stores = self.engine.stores
        return sum(
            stores.embeddings.publish(self.run_id, self.version, keys)
            for source in stores.drafts.drafted()
            if (keys := stores.drafts.publishable(source, -1, 10_000))
        )

    def publish(self, *items: Written) -> int:
        """Draft, compose, embed and publish; rows written."""
        self.prepare(items)
        self.embed_missing()
        return self.publish_prepared()

    def verify(self, exact_scan_rows: int = ALWAYS_EXACT) -> Mapping[str, int]:
        return self.engine.stores.embeddings.verify(self.run_id, self.version, exact_scan_rows)

    def end(self) -> None:
        self.engine.stores.runs.end(self.run_id, "succeeded", error=None, version=self.version)
