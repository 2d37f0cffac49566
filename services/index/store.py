"""What the refresh needs of an engine: small protocols that PostgreSQL and Teradata both keep.

Every writing method is one transaction that first checks that the run still holds the lease, and raises RunFenced when
it does not. Row counts are of the index tables only; staging and the run's own record do not count.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from services.access.rule import AccessRule
from services.catalog.model import ObjectType
from services.context.labels import Neighbour
from services.index.identity import ModelIdentity
from services.index.run_store import RunStore, SourceStore
from services.index.scoring import Scores
from services.index.trust_store import HistoryStore, ScoreStore
from services.trust.gate import GateThresholds

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True)
class StoredRecord:
    """What is known of a record that a source brought before; `payload_hash` tells whether it changed."""

    source: str
    asset_key: int
    id: str
    overlay: bool
    payload_hash: bytes


@dataclass(frozen=True)
class IncomingRecord:
    """One validated record on its way in; `payload` is plain JSON."""

    asset_key: int
    id: str
    payload_hash: bytes
    payload: dict[str, Any]


@dataclass(frozen=True)
class QuarantineEntry:
    """A record that failed at a stage. (source, record_ref, stage) finds it again; another attempt counts on it."""

    source: str
    record_ref: str
    stage: str
    error: str
    payload: str = ""
    payload_hash: bytes | None = None


@dataclass(frozen=True)
class StaleAsset:
    """An id whose stored records changed; `payloads` and `sources` run parallel, the owner's first."""

    asset_key: int
    id: str
    record_digest: bytes
    sources: tuple[str, ...]
    payloads: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Draft:
    """A merged asset before it is composed; `reference_keys` are the assets that its narrative may name."""

    asset_key: int
    id: str
    source: str
    object_type: ObjectType
    name: str
    title: str | None
    access: AccessRule
    record_digest: bytes
    payload: dict[str, Any]
    reference_keys: tuple[int, ...] = ()


@dataclass(frozen=True)
class UncomposedDraft:
    """As much of a draft as composing takes."""

    asset_key: int
    id: str
    source: str
    access: AccessRule
    payload: dict[str, Any]


@dataclass(frozen=True)
class ComposedChunk:
    """A chunk of the narrative, numbered from 0; `content_hash` is the hexadecimal key of its vector."""

    number: int
    section: str
    text: str
    content_hash: str


@dataclass(frozen=True)
class Composed(Scores):
    """Everything that is derived from one asset and published with it."""

    keyword_length: float
    whole_names: tuple[str, ...]
    whole_synonyms: tuple[str, ...]
    tags: tuple[str, ...]
    terms: tuple[str, ...]
    domains: tuple[str, ...]
    owners: tuple[str, ...]
    data_products: tuple[str, ...]
    workspaces: tuple[str, ...]
    shape: int | None
    siblings: tuple[int, ...]
    narrative: str
    postings: Mapping[str, float]
    words: Mapping[str, str]  # unstemmed word -> term: what misspelt words of a query are compared with
    chunks: tuple[ComposedChunk, ...]
    threshold: float
    eligible: bool
    eligibility_reasons: tuple[str, ...]


@dataclass(frozen=True)
class EmbedBatch:
    """A range of one source's asset keys whose drafts together miss about `texts` vectors."""

    number: int
    source: str
    first_key: int
    last_key: int
    texts: int


@dataclass(frozen=True)
class Wanted:
    """Whose texts shall have vectors: eligible drafts, and published assets that `entering` will let in.

    The latter have their texts in the index version `version`.
    """

    drafts: bool = True
    entering: GateThresholds | None = None
    version: int = 0


OF_DRAFTS = Wanted()


class RecordStore(Protocol):
    """What the sources said, one row per (source, id)."""

    def stored(self, keys: Sequence[int]) -> tuple[StoredRecord, ...]:
        """The records of these keys, of whichever source."""
        ...

    def merge(self, run_id: str, source: str, *, overlay: bool, records: Sequence[IncomingRecord]) -> int:
        """Write the records that differ; rows written."""
        ...

    def keys(self, source: str) -> npt.NDArray[np.int64]:
        """The key of each record of the source, each once, in no order."""
        ...

    def quarantine(self, run_id: str, entries: Sequence[QuarantineEntry]) -> None:
        """Keep what failed; what an earlier run kept already counts one attempt more."""
        ...

    def resolve_quarantine(self, run_id: str, stage: str, source: str | None) -> None:
        """Forget what this run, having looked at all of it, did not reject again."""
        ...

    def quarantined(self, limit: int) -> tuple[Mapping[str, Any], ...]:
        """The newest entries first, as plain values."""
        ...


class DraftStore(Protocol):
    """Assets on their way to being published: merged, then composed, then embedded."""

    def stale(
        self, fingerprint: bytes, page_size: int, *, everything: bool
    ) -> Generator[tuple[StaleAsset, ...], None, None]:
        """Pages of the ids whose records changed since they were drafted or published (or of all), streamed.

        Drafts may be staged meanwhile. Who does not read it to the end closes it.
        """
        ...

    def stage(self, run_id: str, drafts: Sequence[Draft]) -> int:
        """Merge drafts, and draft again what refers to those whose label changed. Tightened access holds at once."""
        ...

    def uncomposed(self, after_key: int, limit: int) -> tuple[UncomposedDraft, ...]:
        """The next drafts to compose behind that key, in the order of keys."""
        ...

    def neighbours(self, keys: Sequence[int]) -> tuple[Neighbour, ...]:
        """What is known of these assets, from their drafts or else as published."""
        ...

    def set_composed(self, run_id: str, composed: Mapping[int, Composed]) -> None: ...

    def publishable(self, source: str, after_key: int, limit: int) -> tuple[int, ...]:
        """Keys of the source's composed drafts that miss no vector."""
        ...

    def drafted(self) -> Mapping[str, int]:
        """How many assets of each source are drafted."""
        ...


class EmbeddingStore(Protocol):
    """The vector cache and the index versions."""

    def missing_texts(self, wanted: Wanted = OF_DRAFTS) -> Iterator[tuple[str, int, int]]:
        """(source, asset key, texts without a vector), in that order."""
        ...

    def cached_texts(self, wanted: Wanted = OF_DRAFTS) -> Mapping[str, int]:
        """How many wanted texts of each source have a vector already."""
        ...

    def texts(self, source: str, first_key: int, last_key: int, wanted: Wanted = OF_DRAFTS) -> dict[str, str]:
        """Content hash -> text, of those in the source's key range that have no vector."""
        ...

    def add_vectors(self, run_id: str, hashes: Sequence[str], vectors: Vectors) -> int:
        """Cache one vector per content hash (row by row, shape (hashes, dimension)); how many were new."""
        ...

    def ensure_version(self, model: ModelIdentity) -> int:
        """The version of this model, made (as "building") when there is none."""
        ...

    def publish(self, run_id: str, version: int, keys: Sequence[int]) -> int:
        """Publish drafts in one transaction, each whole; index rows written."""
        ...

    def verify(self, run_id: str, version: int, exact_scan_rows: int) -> Mapping[str, int]:
        """Check that the version is whole, build its graph index when it is large, promote it. Faults by name."""
        ...


class IndexStores(Protocol):
    """One engine's stores, and a rehearsal of them whose writes are undone."""

    @property
    def runs(self) -> RunStore: ...

    @property
    def sources(self) -> SourceStore: ...

    @property
    def records(self) -> RecordStore: ...

    @property
    def drafts(self) -> DraftStore: ...

    @property
    def embeddings(self) -> EmbeddingStore: ...

    @property
    def scores(self) -> ScoreStore: ...

    @property
    def history(self) -> HistoryStore: ...

    def rehearsal(self) -> AbstractContextManager[IndexStores]:
        """The same stores within one transaction that is undone at the end, whatever happens in it."""
        ...
