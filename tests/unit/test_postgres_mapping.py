"""Pure parts of reading PostgreSQL: ids, distinct counts, value ranges, top values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.catalog.sources.postgres_mapping import (
    ColumnRow,
    Details,
    Naming,
    RelationRow,
    StatisticsRow,
    distinct_count,
    table_record,
    value_range,
)

NAMING = Naming("shop")
RELATION = RelationRow(
    oid=1,
    schema_name="sales",
    table_name="orders",
    kind="r",
    attribute_count=1,
    comment=None,
    row_count=200,
    size_bytes=8192,
)


def test_ids_are_dotted_names() -> None:
    assert NAMING.table_id("sales", "orders") == "postgres:table:shop.sales.orders"
    assert NAMING.schema_id("sales") == "postgres:schema:shop.sales"


def test_a_dot_inside_a_name_cannot_make_two_tables_one() -> None:
    assert NAMING.table_id("a.b", "c") != NAMING.table_id("a", "b.c")
    assert NAMING.table_id('a"', "b") != NAMING.table_id('"a""', "b")


@pytest.mark.parametrize(
    ("n_distinct", "row_count", "expected"),
    [(42.0, 1000, 42), (-0.5, 200, 100), (-1.0, 200, 200), (-0.5, None, None), (0.0, 200, None)],
)
def test_distinct_count_reads_shares_of_rows(n_distinct: float, row_count: int | None, expected: int | None) -> None:
    assert distinct_count(n_distinct, row_count) == expected


@pytest.mark.parametrize(
    ("category", "values", "expected"),
    [
        ("N", ["10", "9", "-3"], (-3, 10)),
        ("N", ["0.5", "NaN", "Infinity", "12"], (0.5, 12)),
        ("N", ["9223372036854775807"], (9223372036854775807, 9223372036854775807)),
        ("N", ["$1.00"], (None, None)),
        ("D", ["2024-03-01", "2023-12-31"], ("2023-12-31", "2024-03-01")),
        ("D", ["infinity", "0044-03-15 BC", "2024-01-01 10:00:00+00"], ("2024-01-01 10:00:00+00",) * 2),
        ("S", ["Anna Example", "Zed Example"], (None, None)),
        ("N", [], (None, None)),
    ],
)
def test_value_range_is_for_numbers_and_times(
    category: str, values: list[str], expected: tuple[object, object]
) -> None:
    assert value_range(category, values) == expected


def test_the_range_spans_common_and_rare_values() -> None:
    column = ColumnRow(1, "quantity", "integer", "N", True, None)
    statistics = StatisticsRow(1, "quantity", 0.25, 12.0, ["1", "500"], ["2", "90"])
    record = table_record(RELATION, Details(columns=[column], statistics={"quantity": statistics}), NAMING, None)
    found = record.columns[0]
    assert (found.min, found.max, found.null_ratio, found.distinct_count) == (1, 500, 0.25, 12)
    assert found.top_values == ("1", "500")


@pytest.mark.parametrize(
    ("category", "common", "expected"),
    [
        ("B", ["t", "f"], ("true", "false")),
        ("U", ['{"secret": 1}'], ()),
        ("S", [str(number) for number in range(80)], tuple(str(number) for number in range(50))),
    ],
)
def test_top_values_are_those_one_would_filter_by(category: str, common: list[str], expected: tuple[str, ...]) -> None:
    column = ColumnRow(1, "c", "whatever", category, False, None)
    statistics = StatisticsRow(1, "c", 0.0, 5.0, common, None)
    record = table_record(RELATION, Details(columns=[column], statistics={"c": statistics}), NAMING, None)
    assert record.columns[0].top_values == expected


def test_what_is_absent_leaves_no_trace_in_the_payload() -> None:
    record = table_record(replace(RELATION, row_count=None, size_bytes=None), Details(), NAMING, None)
    assert record.payload() == {
        "extra": {"relation_kind": "table"},
        "id": "postgres:table:shop.sales.orders",
        "object_type": "table",
        "name": "orders",
        "location": ["shop", "sales", "orders"],
    }
