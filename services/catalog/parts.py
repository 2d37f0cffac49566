"""The records that an asset is made of: columns, links, terms, marks of trust, and what they have in common."""

from __future__ import annotations

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


class CertificationStatus(StrEnum):
    """Only `certified` adds to the governance score, and that until it expires; the others but `none` are warnings."""

    CERTIFIED = "certified"
    CAUTIONED = "cautioned"
    VIOLATED = "violated"
    INACTIVE = "inactive"
    NONE = "none"


def empty_when_null(value: Any) -> Any:
    """For lists: a source may write null for what it has none of."""
    return () if value is None else value


def default_when_null(value: Any) -> Any:
    """For nested records: null stands for one that says nothing."""
    return {} if value is None else value


def _within_utc(moment: datetime) -> datetime:
    """The end of the calendar in a zone west of Greenwich has no UTC: such a "never" is taken as UTC itself."""
    if moment.tzinfo is not None:
        try:
            moment.astimezone(UTC)
        except OverflowError:
            return moment.replace(tzinfo=UTC)
    return moment


Moment = Annotated[datetime, AfterValidator(_within_utc)]
Strings = Annotated[tuple[str, ...], BeforeValidator(empty_when_null)]
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
    """As the source holds it, as people wrote it for the business, as engineers wrote it; any markup still in it."""

    source: str | None = None
    business: str | None = None
    technical: str | None = None


class GovernanceRole(Part):
    """`role` is owner, steward, custodian or any other text; `name` is a person or team as the catalog writes it."""

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
    """A field that the catalog's users defined. Its name may make its value a stand-in for a trust signal."""

    name: str
    value: Scalar = None


def _lower_case(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


class Certification(Part):
    """A status without `expires_at` holds for good."""

    status: Annotated[CertificationStatus, BeforeValidator(_lower_case)] = CertificationStatus.NONE
    type: str | None = None
    by: str | None = None
    at: Moment | None = None
    expires_at: Moment | None = None


def _top_values(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        return empty_when_null(value)
    kept = value[:TOP_VALUES_KEPT]
    return tuple("" if item is None else item if isinstance(item, str) else json.dumps(item) for item in kept)


class Column(Part):
    """A column of a table, file or report, or an attribute of an API, with its values as the source profiled them."""

    name: str
    data_type: str | None = None
    title: str | None = None
    description: str | None = None
    terms: Annotated[tuple[TermLink, ...], BeforeValidator(empty_when_null)] = ()
    tags: Annotated[tuple[tuple[str, ...], ...], BeforeValidator(empty_when_null)] = ()
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
    """A tie to the asset of the id `target`; both lists of columns run parallel. `confirmed`: checked, not guessed."""

    kind: RelationshipKind
    columns: Strings = ()
    target: str
    target_columns: Strings = ()
    confirmed: bool = False


class Lineage(Part):
    """Ids of the assets that this one is made from, and of those made from it; direct ones only."""

    upstream: Strings = ()
    downstream: Strings = ()


class Usage(Part):
    """Of the last 30 days."""

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
