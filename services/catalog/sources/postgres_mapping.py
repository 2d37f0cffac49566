"""What a PostgreSQL catalog says, as catalog records. Pure: rows in, records out."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from services.catalog.model import CatalogRecord
from services.catalog.parts import TOP_VALUES_KEPT, Scalar

KINDS = {"r": "table", "p": "partitioned table", "v": "view", "m": "materialized view", "f": "foreign table"}
VIEW_KINDS = frozenset({"v", "m"})
# String, number, date/time, boolean, enum, network address, interval: types whose values people type into a filter.
FILTER_CATEGORIES = frozenset("SNDBEIT")
# An ISO date or time of day of four-digit years: its text sorts like its value.
SORTABLE_TIME = re.compile(r"\d{4}-\d\d-\d\d[^B]*|\d\d:\d\d:\d\d[.\d]*")


@dataclass(frozen=True)
class SchemaRow:
    schema_name: str
    comment: str | None
    table_count: int


@dataclass(frozen=True)
class RelationRow:
    oid: int
    schema_name: str
    table_name: str
    kind: str  # a key of KINDS
    attribute_count: int  # dropped columns included
    comment: str | None
    row_count: int | None
    size_bytes: int | None


@dataclass(frozen=True)
class ColumnRow:
    oid: int
    column_name: str
    data_type: str | None
    type_category: str | None
    not_null: bool
    comment: str | None


@dataclass(frozen=True)
class StatisticsRow:
    oid: int
    column_name: str
    null_fraction: float
    n_distinct: float  # > 0 a number of values, < 0 minus the share of rows, 0 unknown
    common_values: list[str] | None
    histogram_ends: list[str] | None  # lowest and highest of the values that are not common


@dataclass(frozen=True)
class KeyRow:
    oid: int
    columns: list[str]


@dataclass(frozen=True)
class ForeignKeyRow:
    oid: int
    target_schema: str
    target_table: str
    validated: bool
    columns: list[str]
    target_columns: list[str]


@dataclass(frozen=True)
class LinkRow:
    """`oid` is connected with the relation of that name."""

    oid: int
    schema_name: str
    table_name: str


@dataclass(frozen=True)
class Details:
    """Everything known about one relation beside its own row."""

    columns: Sequence[ColumnRow] = ()
    statistics: Mapping[str, StatisticsRow] = field(default_factory=dict)  # by column name
    primary_key: Sequence[str] = ()
    foreign_keys: Sequence[ForeignKeyRow] = ()
    upstream: Sequence[LinkRow] = ()
    downstream: Sequence[LinkRow] = ()
    definition: str | None = None


@dataclass(frozen=True)
class Naming:
    """Ids within one database."""

    database: str

    def schema_id(self, schema: str) -> str:
        return f"postgres:schema:{_dotted((self.database, schema))}"

    def table_id(self, schema: str, table: str) -> str:
        return f"postgres:table:{_dotted((self.database, schema, table))}"

    def link_ids(self, links: Iterable[LinkRow]) -> list[str]:
        return [self.table_id(link.schema_name, link.table_name) for link in links]


def _dotted(names: Iterable[str]) -> str:
    """Names joined by dots; one that bears a dot or a quote itself is quoted as in SQL, so that no two ids meet."""
    return ".".join('"' + name.replace('"', '""') + '"' if re.search(r'[."]', name) else name for name in names)


def schema_record(row: SchemaRow, naming: Naming, classification: str | None) -> CatalogRecord:
    return CatalogRecord.model_validate(
        {
            "id": naming.schema_id(row.schema_name),
            "object_type": "schema",
            "name": row.schema_name,
            "location": [naming.database, row.schema_name],
            "descriptions": {"source": row.comment},
            "access": {"classification": classification},
            "attributes": {"database_name": naming.database, "table_count": row.table_count},
        }
    )


def table_record(row: RelationRow, details: Details, naming: Naming, classification: str | None) -> CatalogRecord:
    """The record of a relation. Raises pydantic's ValidationError when the model refuses what the database says."""
    extra: dict[str, Any] = {"relation_kind": KINDS[row.kind]}
    if details.primary_key:
        extra["primary_key"] = list(details.primary_key)
    return CatalogRecord.model_validate(
        {
            "id": naming.table_id(row.schema_name, row.table_name),
            "object_type": "table",
            "name": row.table_name,
            "location": [naming.database, row.schema_name, row.table_name],
            "descriptions": {"source": row.comment},
            "columns": [_column(column, row, details.statistics.get(column.column_name)) for column in details.columns],
            "relationships": [_relationship(key, naming) for key in details.foreign_keys],
            "lineage": {
                "upstream": naming.link_ids(details.upstream),
                "downstream": naming.link_ids(details.downstream),
            },
            "statistics": {"row_count": row.row_count, "size_bytes": row.size_bytes},
            "access": {"classification": classification},
            "attributes": {"source_code": details.definition.strip() if details.definition else None},
            "extra": extra,
        }
    )


def _relationship(key: ForeignKeyRow, naming: Naming) -> dict[str, Any]:
    """A key counts as confirmed once the database has checked it against all rows (NOT VALID keys are not)."""
    return {
        "kind": "foreign_key",
        "columns": key.columns,
        "target": naming.table_id(key.target_schema, key.target_table),
        "target_columns": key.target_columns,
        "confirmed": key.validated,
    }


def _column(column: ColumnRow, row: RelationRow, statistics: StatisticsRow | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": column.column_name,
        "data_type": column.data_type,
        "description": column.comment,
        # A view's columns have no NOT NULL of their own; that says nothing about what they hold.
        "nullable": None if row.kind in VIEW_KINDS else not column.not_null,
    }
    if statistics is None:
        return found
    common = statistics.common_values or []
    lowest, highest = value_range(column.type_category, [*common, *(statistics.histogram_ends or [])])
    return {
        **found,
        "null_ratio": round(min(max(statistics.null_fraction, 0.0), 1.0), 6),
        "distinct_count": distinct_count(statistics.n_distinct, row.row_count),
        "top_values": _top_values(column.type_category, common),
        "min": lowest,
        "max": highest,
    }


def _top_values(type_category: str | None, common: Sequence[str]) -> list[str]:
    if type_category not in FILTER_CATEGORIES:
        return []
    if type_category == "B":
        return ["true" if value == "t" else "false" for value in common]
    return list(common[:TOP_VALUES_KEPT])


def distinct_count(n_distinct: float, row_count: int | None) -> int | None:
    """pg_stats.n_distinct as a number: a negative one is minus the share of rows that are distinct, 0 is unknown."""
    if n_distinct > 0:
        return round(n_distinct)
    if n_distinct == 0 or row_count is None:
        return None
    return round(-n_distinct * row_count)


def value_range(type_category: str | None, values: Iterable[str]) -> tuple[Scalar, Scalar]:
    """Lowest and highest of the values, for numbers and for dates and times only.

    Ends of a text column are somebody's actual name or address; those of a number or a date say how far it reaches.
    """
    if type_category == "N":
        numbers = [number for number in map(_number, values) if number is not None]
        return (min(numbers), max(numbers)) if numbers else (None, None)
    if type_category == "D":
        times = [value for value in values if SORTABLE_TIME.fullmatch(value)]
        return (min(times), max(times)) if times else (None, None)
    return None, None


def _number(text: str) -> int | float | None:
    try:
        number = float(text)
    except ValueError:
        return None  # money and the like
    if not math.isfinite(number):
        return None
    return int(text) if re.fullmatch(r"-?\d+", text) else number
