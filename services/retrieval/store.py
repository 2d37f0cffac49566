"""What retrieval needs of an engine. Every read of assets carries the access lists that let the caller in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from services.access.rule import AccessRule
from services.catalog.parts import GovernanceRole
from services.index.identity import ModelIdentity
from services.index.store import Vectors
from services.retrieval.keyword import KeywordQuery
from services.retrieval.model import Filters
from services.retrieval.ranking import Candidate
from services.trust.curation import CurationScore


@dataclass(frozen=True)
class Corpus:
    """What every question rests on; `version` is None before the first refresh."""

    version: int | None
    model: ModelIdentity | None
    assets: int
    mean_length: float
    data_age_seconds: float | None


@dataclass(frozen=True)
class Scope:
    """Which assets a question may touch: access first, then eligibility and filters."""

    acl_ids: tuple[int, ...]
    eligible_only: bool
    object_types: tuple[str, ...]
    filters: Filters
    now: datetime


@dataclass(frozen=True)
class Question:
    """A question as the engine takes it; `pool_size` hits are proposed by each side."""

    vector: Vectors
    keywords: KeywordQuery
    mean_length: float
    pool_size: int


@dataclass(frozen=True)
class Details:
    """What governs and shows one candidate."""

    object_type: str
    name: str
    title: str | None
    location: tuple[str, ...]
    url: str | None
    signals: Mapping[str, Any]
    curation_score: float
    eligible: bool
    eligibility_reasons: tuple[str, ...]
    matched: tuple[str, str] | None  # section, text


@dataclass(frozen=True)
class StoredAsset:
    """One visible asset as it is published; nothing is left out yet. `classification` is a `Level`."""

    asset_key: int
    payload: Mapping[str, Any]
    narrative: str
    signals: Mapping[str, Any]
    curation_score: float
    curation: Sequence[Mapping[str, Any]]
    eligible: bool
    eligibility_reasons: tuple[str, ...]
    classification: int
    chunks: tuple[tuple[int, str, str], ...]  # number, section, text


@dataclass(frozen=True)
class WorkScope:
    """Which assets below their threshold are meant: access first, then filters; an empty filter lets all through."""

    acl_ids: tuple[int, ...]
    sources: tuple[str, ...] = ()
    object_types: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()


@dataclass(frozen=True)
class WorkPosition:
    """A place in the order of the work list: points missing, then id."""

    points_missing: float
    id: str


@dataclass(frozen=True)
class StoredWork:
    """An asset below its threshold, at its place in the order."""

    id: str
    source: str
    object_type: str
    name: str
    title: str | None
    url: str | None
    roles: tuple[GovernanceRole, ...]
    signals: Mapping[str, Any]
    curation: CurationScore
    threshold: float
    position: WorkPosition


@dataclass(frozen=True)
class RolesWork:
    """The assets that have the same governance roles, added up."""

    roles: tuple[GovernanceRole, ...]
    assets: int
    points_missing: float


class SearchStore(Protocol):
    """Reads for search."""

    def corpus(self) -> Corpus: ...

    def access_lists(self, after_seq: int) -> Sequence[tuple[int, int, AccessRule]]:
        """(seq, id, rule) of the interned access lists added after `after_seq`, in that order."""
        ...

    def candidates(self, version: int, question: Question, scope: Scope) -> list[Candidate]:
        """Vector, keyword and whole-name hits within the scope, each asset once, both signals exact.

        At least half of `pool_size`, wherever the scope holds that many assets with vectors.
        """
        ...

    def browse(self, scope: Scope, limit: int) -> list[Candidate]:
        """Assets of the scope by name, for an empty question."""
        ...

    def details(self, version: int, hits: Sequence[Candidate], acl_ids: Sequence[int]) -> Mapping[int, Details]:
        """By key, what governs and shows these; what the access lists no longer let through is left out."""
        ...


class AssetStore(Protocol):
    """Reads of single assets."""

    def asset(self, asset_id: str, version: int | None, acl_ids: Sequence[int]) -> StoredAsset | None: ...

    def hidden(self, asset_ids: Sequence[str], acl_ids: Sequence[int]) -> frozenset[str]:
        """Those of the ids that are assets the caller may not see."""
        ...


class WorklistStore(Protocol):
    """Reads of what stewards should mend."""

    def page(self, scope: WorkScope, after: WorkPosition | None, limit: int) -> Sequence[StoredWork]:
        """The scope's assets below their threshold behind that position, fewest points missing first, then by id."""
        ...

    def by_roles(self, scope: WorkScope) -> Sequence[RolesWork]:
        """All of the scope's assets below their threshold, added up by their governance roles."""
        ...


class PayloadStore(Protocol):
    """Reads of what the published assets of a source say."""

    def payloads(self, source: str) -> AbstractContextManager[Iterator[Mapping[str, Any]]]:
        """The merged payloads of the assets that the source lists or adds to, by key, streamed while in the block."""
        ...
