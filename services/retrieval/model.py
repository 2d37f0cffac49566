"""What is asked of retrieval and what it answers; the query API speaks exactly these records."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from services.catalog.model import ObjectType
from services.catalog.parts import CertificationStatus

QUERY_BYTES_LIMIT = 16 * 1024
LIMIT_MAX = 50
CANDIDATE_LIMIT_MAX = 200


def is_empty(value: Sequence[object]) -> bool:
    """An optional list is left out when nothing is in it."""
    return not value


def is_absent(value: object) -> bool:
    """What is optional in an answer is left out when there is none; everywhere else null means "no such signal"."""
    return value is None


def _capitalised(value: Any) -> Any:
    return value.strip().capitalize() if isinstance(value, str) else value


# The labels of `access.rule.Level`, in any case. A slip of the pen is refused: it must not come to mean a level.
LevelName = Annotated[Literal["Public", "Internal", "Confidential", "Restricted"], BeforeValidator(_capitalised)]


class Mode(StrEnum):
    """Analysis answers from eligible assets or refuses; discovery shows everything visible, also without a question."""

    ANALYSIS = "analysis"
    DISCOVERY = "discovery"


class Filters(BaseModel):
    """Each given filter must hold; within one filter any of its values will do. Names compare without case."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: tuple[str, ...] = ()
    tag: tuple[str, ...] = Field(default=(), description="a tag or any of its parents")
    term: tuple[str, ...] = ()
    domain: tuple[str, ...] = ()
    owner: tuple[str, ...] = ()
    data_product: tuple[str, ...] = ()
    certification: tuple[CertificationStatus, ...] = ()
    critical_data_element: bool | None = None
    workspace: tuple[str, ...] = ()
    classification: tuple[LevelName, ...] = ()
    min_curation_score: float | None = Field(default=None, ge=0, le=100, description="needs the permission explain")
    min_data_quality: float | None = Field(default=None, ge=0, le=100)


class SearchRequest(BaseModel):
    """One question to the index."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)

    query: str = ""
    mode: Mode = Mode.ANALYSIS
    limit: int = Field(default=10, ge=1, le=LIMIT_MAX, strict=True)
    candidate_limit: int = Field(default=30, ge=1, le=CANDIDATE_LIMIT_MAX, strict=True)
    object_types: tuple[ObjectType, ...] = ()
    filters: Filters = Filters()
    explain: bool = Field(default=False, description="needs the permission explain")
    min_relevance: float | None = Field(
        default=None, ge=0, le=1, description="null: the configured value; another needs the permission explain"
    )
    group_siblings: bool | None = Field(default=None, description="null: on in analysis, off in discovery")


class GovernancePart(BaseModel):
    """One component of a governance score: contribution = weight x value x confidence."""

    model_config = ConfigDict(frozen=True)

    signal: str
    value: float
    origin: str
    confidence: float
    weight: float
    contribution: float


class Explanation(BaseModel):
    """Every number that ranked a result. A signal that is absent is null and counts 0; its rank then is null."""

    model_config = ConfigDict(frozen=True)

    vector_similarity: float | None
    vector_rank: int | None
    keyword_score: float
    keyword_rank: int | None
    relevance_score: float
    governance_score: float
    governance: tuple[GovernancePart, ...]
    curation_score: float
    eligible: bool
    eligibility_reasons: tuple[str, ...] = ()


class Matched(BaseModel):
    """The chunk that answered best."""

    model_config = ConfigDict(frozen=True)

    section: str
    text: str


class Siblings(BaseModel):
    """Near-duplicates that stand behind one result."""

    model_config = ConfigDict(frozen=True)

    count: int
    ids: tuple[str, ...]


class Result(BaseModel):
    """One ranked asset."""

    model_config = ConfigDict(frozen=True)

    rank: int
    id: str
    object_type: ObjectType
    name: str
    title: str | None
    location: tuple[str, ...]
    url: str | None
    final_score: float
    matched: Matched | None
    warnings: tuple[str, ...] = ()
    pinned: str | None = Field(default=None, exclude_if=is_absent)
    siblings: Siblings | None = Field(default=None, exclude_if=is_absent)
    explain: Explanation | None = Field(default=None, exclude_if=is_absent)


class Refusal(BaseModel):
    """Why there is no answer, and the question that would help."""

    model_config = ConfigDict(frozen=True)

    code: str
    ask: str


class Understood(BaseModel):
    """Words of the query, and what else they were taken for: nothing that the caller could not find by itself."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, serialize_by_alias=True)

    word: str
    alternatives: tuple[str, ...] = Field(alias="as")
    why: Literal["abbreviation", "synonym", "spelling", "prefix"]


class SearchAnswer(BaseModel):
    """The ranked results, best first, or a refusal; never both."""

    model_config = ConfigDict(frozen=True)

    request_id: str
    index_version: int
    data_age_seconds: float | None = Field(description="since the last successful refresh; null before the first")
    mode: Mode
    results: tuple[Result, ...]
    took_ms: float
    refusal: Refusal | None = Field(default=None, exclude_if=is_absent)
    understood: tuple[Understood, ...] = Field(default=(), exclude_if=is_empty)
