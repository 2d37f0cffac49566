"""What trust needs of an engine: scores, the gate's verdicts, and what both have been. Same manners as `store`."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, Protocol

from services.index.identity import ModelIdentity
from services.index.scoring import Scores
from services.trust.gate import GateChange, GateThresholds, Verdict


@dataclass(frozen=True)
class PublishedAsset:
    """A published asset as it was scored: its merged payload and its signals by the rules of then."""

    asset_key: int
    source: str
    payload: Mapping[str, Any]
    signals: Mapping[str, Any]


@dataclass(frozen=True)
class StandingVerdict:
    """What the gate knows of a published asset. `payload` only where other rules made the curation score."""

    source: str
    object_type: str
    curation_score: float
    eligible: bool
    payload: Mapping[str, Any] | None


@dataclass(frozen=True)
class DueAsset:
    """A published asset whose verdict is not what its curation score and its threshold say."""

    asset_key: int
    source: str
    object_type: str
    curation_score: float


class PassageCause(StrEnum):
    """Why an asset passed the gate: its catalog says something else, the rules do, or the threshold was moved.

    Of several, the first that was enough by itself: rules, then metadata, then the threshold.
    """

    METADATA = "metadata"
    RULE = "rule"
    THRESHOLD = "threshold"


@dataclass(frozen=True)
class Passage:
    """One asset's passing of the gate, in (`entered`) or out."""

    id: str
    source: str
    object_type: str
    happened_at: datetime
    run_id: str
    entered: bool
    cause: PassageCause
    curation_score_before: float
    curation_score_after: float
    threshold_before: float
    threshold_after: float


@dataclass(frozen=True)
class Mover:
    """One of the largest changes of a run: of the "curation" or "governance" score."""

    score_kind: str
    id: str
    name: str
    object_type: str
    cause: Literal["data", "rules"]
    score_before: float
    score_after: float


@dataclass(frozen=True)
class Drift:
    """The last run that moved a score: by kind ("curation", "governance") the assets in each tenth of the scale."""

    run_id: str
    finished_at: datetime | None
    histograms: Mapping[str, tuple[int, ...]]
    movers: tuple[Mover, ...]


class ScoreStore(Protocol):
    """Scores of published assets, and the gate."""

    def active_version(self) -> tuple[int, ModelIdentity] | None:
        """The index version that readers are answered from, None before the first refresh."""
        ...

    def outdated(self, rules_digest: str, after_key: int, limit: int) -> tuple[PublishedAsset, ...]:
        """The next published assets that were not scored by these rules, by key."""
        ...

    def set_scores(self, run_id: str, scores: Mapping[int, Scores], retold: Sequence[int]) -> int:
        """Write scores, and draft again the `retold`, whose narrative they change; rows written. Verdicts stay."""
        ...

    def recompose_drafts(self, run_id: str, rules_digest: str, thresholds: GateThresholds) -> int:
        """Let drafts be composed again that were composed by other rules or thresholds; how many."""
        ...

    def standing(self, rules_digest: str, page_size: int) -> Generator[tuple[StandingVerdict, ...], None, None]:
        """Pages of all published assets, streamed. Who does not read it to the end closes it."""
        ...

    def due(self, version: int, thresholds: GateThresholds, after_key: int, limit: int) -> tuple[DueAsset, ...]:
        """The next assets that need a new verdict, by key; who would enter and misses a vector is left out."""
        ...

    def set_verdicts(self, run_id: str, version: int, verdicts: Mapping[int, Verdict]) -> int:
        """Give verdicts on the present scores: who leaves loses its vectors, who enters gets them from the cache.

        Passages are noted with their cause. Rows written.
        """
        ...


class HistoryStore(Protocol):
    """Who passed the gate, and how scores drift."""

    def passages(self, limit: int) -> tuple[Passage, ...]:
        """The latest, newest first."""
        ...

    def changes(self, run_id: str) -> tuple[GateChange, ...]:
        """How many assets passed the gate in a run, by source and type."""
        ...

    def keep_histogram(self, run_id: str) -> None:
        """Keep the present histograms with the run, when it moved a score or the latest ones are no longer true."""
        ...

    def drift(self, acl_ids: Sequence[int]) -> Drift | None:
        """The last run that changed anything, its movers under these access lists; None before the first."""
        ...
