"""What an asset is: the ten object types and their attributes (frozen, validated records).

`CatalogRecord` is one line as a source tells it; an overlay's line may carry no more than an id. `Asset` is what
the merged records of one id must amount to. Keys that the model does not know are kept in `extra`, never refused.
"""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from services.catalog.parts import (
    Access,
    Attributes,
    Certification,
    Column,
    CustomField,
    Descriptions,
    GovernanceRole,
    Lineage,
    Moment,
    Part,
    Relationship,
    Statistics,
    Strings,
    TermLink,
    Usage,
    default_when_null,
    empty_when_null,
)

ID_BYTES_LIMIT = 2048  # an index over ids holds no longer entries


class ObjectType(StrEnum):
    """What an asset is. Which attributes it has and which trust signals count on it depend on this."""

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


def _storable_id(value: str) -> str:
    size = len(value.encode())
    if size > ID_BYTES_LIMIT:
        raise ValueError(f"an id has at most {ID_BYTES_LIMIT} bytes, not {size}")
    return value


AssetId = Annotated[str, Field(min_length=1, max_length=ID_BYTES_LIMIT), AfterValidator(_storable_id)]


class CatalogRecord(Part):
    """One asset as one source tells it. Only `id` is required: an overlay adds to what another source owns."""

    id: AssetId
    object_type: ObjectType | None = None
    name: str | None = Field(default=None, min_length=1)
    title: str | None = None
    synonyms: Strings = ()
    location: Strings = ()
    descriptions: Annotated[Descriptions, BeforeValidator(default_when_null)] = Field(default_factory=Descriptions)
    url: str | None = None
    updated_at: Moment | None = None
    governance_roles: Annotated[tuple[GovernanceRole, ...], BeforeValidator(empty_when_null)] = ()
    terms: Annotated[tuple[TermLink, ...], BeforeValidator(empty_when_null)] = ()
    tags: Annotated[tuple[tuple[str, ...], ...], BeforeValidator(empty_when_null)] = ()
    data_products: Strings = ()  # ids; plain names only of those that are no assets, for every reader is told them
    custom_fields: Annotated[tuple[CustomField, ...], BeforeValidator(empty_when_null)] = ()
    profile_status: str | None = None
    data_quality_score: float | None = Field(default=None, ge=0, le=100)
    curation_score: float | None = Field(default=None, ge=0, le=100)
    rating: float | None = Field(default=None, ge=0, le=5)
    certification: Certification | None = None
    critical_data_element: bool | None = None
    authoritative: bool | None = None
    columns: Annotated[tuple[Column, ...], BeforeValidator(empty_when_null)] = ()
    relationships: Annotated[tuple[Relationship, ...], BeforeValidator(empty_when_null)] = ()
    lineage: Annotated[Lineage, BeforeValidator(default_when_null)] = Field(default_factory=Lineage)
    sample_rows: Annotated[tuple[dict[str, Any], ...], BeforeValidator(empty_when_null)] = ()
    usage: Annotated[Usage, BeforeValidator(default_when_null)] = Field(default_factory=Usage)
    statistics: Annotated[Statistics, BeforeValidator(default_when_null)] = Field(default_factory=Statistics)
    access: Annotated[Access, BeforeValidator(default_when_null)] = Field(default_factory=Access)
    attributes: Annotated[Attributes, BeforeValidator(default_when_null)] = Field(default_factory=Attributes)

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
    """The internal 63-bit key of an asset id."""
    return text_key(asset_id)


def text_key(text: str) -> int:
    """A number of 63 bits that stands for a text: the first 8 bytes of its SHA-256, sign bit cleared."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") & 0x7FFF_FFFF_FFFF_FFFF


def canonical_json(value: Any) -> str:
    """One spelling per value: keys sorted, no spaces, UTF-8 kept; what payload hashes are taken of."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def payload_hash(payload: dict[str, Any]) -> bytes:
    """SHA-256 (32 bytes) of the canonical JSON of a record's payload; equal payloads, equal bytes."""
    return hashlib.sha256(canonical_json(payload).encode()).digest()
