"""What an asset is: the ten object types and their attributes (frozen, validated records).

`CatalogRecord` is one line as a source tells it; an overlay's line may carry no more than an id. `Asset` is what
the merged records of one id must amount to. Keys that the model does not know are kept in `extra`, never refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    model_validator,
)

TOP_VALUES_KEPT = 50
ID_BYTES_LIMIT = 2048  # an index over ids holds no longer entries


class ObjectType(StrEnum):
    TABLE = "table"
    FILE = "file"
    REPORT = "report"
    API = "api"
    CODE = "code"
    SCHEMA = "schema"
    TERM = "term"
    TAG = "tag"
    DATA_PRODUCT = "data_product"
    DATA_STORY = "data_story"


class CertificationStatus(StrEnum):
    CERTIFIED = "certified"
    CAUTIONED = "cautioned"
    VIOLATED = "violated"
    INACTIVE = "inactive"
    NONE = "none"


def _empty_when_null(value: Any) -> Any:
    return () if value is None else value


def _default_when_null(value: Any) -> Any:
    return {} if value is None else value


def _storable_id(value: str) -> str:
    size = len(value.encode())
    if size > ID_BYTES_LIMIT:
        raise ValueError(f"an id has at most {ID_BYTES_LIMIT} bytes, not {size}")
    return value


def _within_utc(moment: datetime) -> datetime:
    """The end of the calendar in a zone west of Greenwich has no UTC: such a "never" is taken as UTC itself."""
    if moment.tzinfo is not None:
        try:
            moment.astimezone(UTC)
        except OverflowError:
            return moment.replace(tzinfo=UTC)
    return moment


AssetId = Annotated[str, Field(min_length=1, max_length=ID_BYTES_LIMIT), AfterValidator(_storable_id)]
Moment = Annotated[datetime, AfterValidator(_within_utc)]
Strings = Annotated[tuple[str, ...], BeforeValidator(_empty_when_null)]
Scalar = StrictBool | StrictInt | StrictFloat | StrictStr | None


class Part(BaseModel):
    """Base of every record: frozen; unknown keys go to `extra`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    extra: dict[str, Any] = Field(default_factory=dict, description="keys this model does not know, as they came")

    @model_validator(mode="before")
    @classmethod
    def _keep_unknown_keys(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        unknown = {key: value for key, value in data.items() if key not in cls.model_fields}
        if not unknown:
            return data
        known = {key: value for key, value in data.items() if key in cls.model_fields}
        extra = known.get("extra") or {}
        # What is no mapping cannot take the unknown keys; validation refuses it next.
        return {**known, "extra": {**extra, **unknown}} if isinstance(extra, dict) else known

    def unknown_keys(self, prefix: str = "") -> Iterator[str]:
        """Dotted paths of the keys that were kept in `extra`, here and in nested records."""
        yield from (f"{prefix}{key}" for key in self.extra)
        for name in type(self).model_fields:
            value = getattr(self, name)
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, Part):
                    yield from item.unknown_keys(f"{prefix}{name}.")


class Descriptions(Part):
    source: str | None = None
    business: str | None = None
    technical: str | None = None


class GovernanceRole(Part):
    role: str
    name: str


class TermLink(Part):
    """A glossary term as linked from an asset or a column, with its place in the glossary."""

    id: str | None = None
    name: str
    domain: str | None = None
    category: str | None = None
    subcategory: str | None = None
    definition: str | None = None


class CustomField(Part):
    name: str
    value: Scalar = None


def _lower_case(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


class Certification(Part):
    status: Annotated[CertificationStatus, BeforeValidator(_lower_case)] = CertificationStatus.NONE
    type: str | None = None
    by: str | None = None
    at: Moment | None = None
    expires_at: Moment | None = None


def _top_values(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        return _empty_when_null(value)
    kept = value[:TOP_VALUES_KEPT]
    return tuple("" if item is None else item if isinstance(item, str) else json.dumps(item) for item in kept)


class Column(Part):
    name: str
    data_type: str | None = None
    title: str | None = None
    description: str | None = None
    terms: Annotated[tuple[TermLink, ...], BeforeValidator(_empty_when_null)] = ()
    tags: Annotated[tuple[tuple[str, ...], ...], BeforeValidator(_empty_when_null)] = ()
    classification: str | None = None
    nullable: bool | None = None
    top_values: Annotated[tuple[str, ...], BeforeValidator(_top_values)] = ()
    null_ratio: float | None = Field(default=None, ge=0, le=1)
    distinct_count: int | None = Field(default=None, ge=0)
    min: Scalar = None
    max: Scalar = None


class RelationshipKind(StrEnum):
    FOREIGN_KEY = "foreign_key"
    JOIN = "join"
    ASSOCIATION = "association"


class Relationship(Part):
    kind: RelationshipKind
    columns: Strings = ()
    target: str
    target_columns: Strings = ()
    confirmed: bool = False


class Lineage(Part):
    upstream: Strings = ()
    downstream: Strings = ()


class Usage(Part):
    queries_30d: int | None = Field(default=None, ge=0)
    users_30d: int | None = Field(default=None, ge=0)


class Statistics(Part):
    row_count: int | None = Field(default=None, ge=0)
    size_bytes: int | None = Field(default=None, ge=0)


class Access(Part):
    """Who may see the asset, as the source says it; `services.access.rule` decides what it means."""

    classification: str | None = None
    groups: Strings = ()
    users: Strings = ()
    denied_groups: Strings = ()
    denied_users: Strings = ()
    workspaces: Strings = ()


class Attributes(Part):
    """The attributes of all ten types in one record: a key means the same on every type that has it."""

    file_type: str | None = None  # file
    report_type: str | None = None  # report
    parent_report: str | None = None
    method: str | None = None  # api
    endpoint: str | None = None
    api_url: str | None = None
    job_type: str | None = None  # code
    language: str | None = None
    source_code: str | None = None  # also the query of a view
    database_name: str | None = None  # schema
    table_count: int | None = Field(default=None, ge=0)
    domain: str | None = None  # term, data_product
    category: str | None = None
    subcategory: str | None = None
    governance_status: str | None = None
    definition: str | None = None
    parent: str | None = None  # tag
    description: str | None = None
    parent_subdomain: str | None = None  # data_product
    status: str | None = None
    criticality: str | None = None
    sensitivity: str | None = None
    story_zone: str | None = None  # data_story
    parent_story: str | None = None
    child_stories: Strings = ()
    author: str | None = None
    body: str | None = None


class CatalogRecord(Part):
    """One asset as one source tells it. Only `id` is required: an overlay adds to what another source owns."""

    id: AssetId
    object_type: ObjectType | None = None
    name: str | None = Field(default=None, min_length=1)
    title: str | None = None
    synonyms: Strings = ()
    location: Strings = ()
    descriptions: Annotated[Descriptions, BeforeValidator(_default_when_null)] = Field(default_factory=Descriptions)
    url: str | None = None
    updated_at: Moment | None = None
    governance_roles: Annotated[tuple[GovernanceRole, ...], BeforeValidator(_empty_when_null)] = ()
    terms: Annotated[tuple[TermLink, ...], BeforeValidator(_empty_when_null)] = ()
    tags: Annotated[tuple[tuple[str, ...], ...], BeforeValidator(_empty_when_null)] = ()
    data_products: Strings = ()  # ids; plain names only of those that are no assets, for every reader is told them
    custom_fields: Annotated[tuple[CustomField, ...], BeforeValidator(_empty_when_null)] = ()
    profile_status: str | None = None
    data_quality_score: float | None = Field(default=None, ge=0, le=100)
    curation_score: float | None = Field(default=None, ge=0, le=100)
    rating: float | None = Field(default=None, ge=0, le=5)
    certification: Certification | None = None
    critical_data_element: bool | None = None
    authoritative: bool | None = None
    columns: Annotated[tuple[Column, ...], BeforeValidator(_empty_when_null)] = ()
    relationships: Annotated[tuple[Relationship, ...], BeforeValidator(_empty_when_null)] = ()
    lineage: Annotated[Lineage, BeforeValidator(_default_when_null)] = Field(default_factory=Lineage)
    sample_rows: Annotated[tuple[dict[str, Any], ...], BeforeValidator(_empty_when_null)] = ()
    usage: Annotated[Usage, BeforeValidator(_default_when_null)] = Field(default_factory=Usage)
    statistics: Annotated[Statistics, BeforeValidator(_default_when_null)] = Field(default_factory=Statistics)
    access: Annotated[Access, BeforeValidator(_default_when_null)] = Field(default_factory=Access)
    attributes: Annotated[Attributes, BeforeValidator(_default_when_null)] = Field(default_factory=Attributes)

    def payload(self) -> dict[str, Any]:
        """The record as plain JSON values, what it does not say left out; `CatalogRecord(**payload)` gives it back.

        What is said stays, also where it equals a default: an overlay's `"status": "none"` has to win over its owner.
        """
        said: dict[str, Any] = _said(self.model_dump(mode="json", exclude_unset=True))
        return said


class Asset(CatalogRecord):
    """One catalog object, complete enough to be indexed: a record that also has its type and name."""

    object_type: ObjectType
    name: str = Field(min_length=1)

    @property
    def key(self) -> int:
        return asset_key(self.id)

    @property
    def siblings(self) -> tuple[str, ...]:
        """Ids that the source declares to be the same thing seen through another system."""
        declared = self.extra.get("siblings")  # no key of the model, so nothing has checked what it holds
        return tuple(item for item in declared if isinstance(item, str)) if isinstance(declared, list) else ()


def _said(value: Any) -> Any:
    """The value without nulls, empty lists and empty objects in its objects, at any depth."""
    if isinstance(value, dict):
        inner = {key: _said(item) for key, item in value.items()}
        return {key: item for key, item in inner.items() if item is not None and item != [] and item != {}}
    if isinstance(value, list):
        return [_said(item) for item in value]
    return value


def asset_key(asset_id: str) -> int:
    """The internal 63-bit key of an asset id: the first 8 bytes of its SHA-256, sign bit cleared."""
    return int.from_bytes(hashlib.sha256(asset_id.encode()).digest()[:8], "big") & 0x7FFF_FFFF_FFFF_FFFF


def canonical_json(value: Any) -> str:
    """One spelling per value: keys sorted, no spaces, UTF-8 kept; what payload hashes are taken of."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def payload_hash(payload: dict[str, Any]) -> bytes:
    """SHA-256 (32 bytes) of the canonical JSON of a record's payload; equal payloads, equal bytes."""
    return hashlib.sha256(canonical_json(payload).encode()).digest()
