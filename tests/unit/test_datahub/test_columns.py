"""Columns and keys, from every aspect that speaks of them; urns and field paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from services.catalog.model import CatalogRecord
from services.catalog.parts import Column, Relationship, RelationshipKind, TermLink
from services.catalog.sources.datahub_aspects import (
    Aspect,
    MalformedAspect,
    is_opaque,
    last_part,
    simple_field_path,
    urn_kind,
    urn_parts,
)

Mapped = Callable[[Mapping[str, Mapping[str, Any]]], dict[str, CatalogRecord]]

ORDERS = "urn:li:dataset:(urn:li:dataPlatform:snowflake,shop.sales.orders,PROD)"
CUSTOMERS = "urn:li:dataset:(urn:li:dataPlatform:snowflake,shop.sales.customers,PROD)"
CHART = "urn:li:chart:(looker,elements.1)"
V2 = "[version=2.0].[type=struct]."


def terms(*keys: str) -> dict[str, Any]:
    return {"terms": [{"urn": f"urn:li:glossaryTerm:{key}"} for key in keys]}


def tags(*keys: str) -> dict[str, Any]:
    return {"tags": [{"tag": f"urn:li:tag:{key}"} for key in keys]}


def link(key: str) -> TermLink:
    return TermLink(id=f"urn:li:glossaryTerm:{key}", name=key)


class TestDatasetColumns:
    def test_every_aspect_adds_and_what_people_wrote_wins(self, mapped: Mapped) -> None:
        number = {"type": {"com.linkedin.schema.NumberType": {}}}
        fields = [
            {
                "fieldPath": "id",
                "nativeDataType": "NUMBER(38,0)",
                "type": number,
                "nullable": False,
                "label": "Order number",
                "description": "ingested",
                "glossaryTerms": terms("key", "shared"),
                "globalTags": tags("dimension", "shared"),
            },
            {"fieldPath": "total", "type": number, "description": "ingested"},
            {"fieldPath": "note", "nullable": True, "description": "ingested"},
        ]
        edits = [
            {"fieldPath": "id", "description": "edited", "glossaryTerms": terms("shared"), "globalTags": tags("pii")},
            {"fieldPath": "unknown", "description": "of no column"},
        ]
        documented = {"documentations": [{"documentation": "documented"}]}
        found = mapped(
            {
                ORDERS: {
                    "schemaMetadata": {"fields": fields},
                    "editableSchemaMetadata": {"editableSchemaFieldInfo": edits},
                },
                f"urn:li:schemaField:({ORDERS},id)": {"documentation": documented},
                f"urn:li:schemaField:({ORDERS},total)": {
                    "documentation": documented,
                    "glossaryTerms": terms("money"),
                    "globalTags": tags("measure"),
                },
            }
        )
        assert found[ORDERS].columns == (
            Column(
                name="id",
                data_type="NUMBER(38,0)",
                title="Order number",
                description="edited",
                terms=(link("shared"), link("key")),
                tags=(("pii",), ("dimension",), ("shared",)),
                nullable=False,
            ),
            Column(
                name="total",
                data_type="number",
                description="documented",
                terms=(link("money"),),
                tags=(("measure",),),
            ),
            Column(name="note", description="ingested", nullable=True),
        )

    def test_v2_paths_are_simplified_and_unique_in_every_aspect(self, mapped: Mapped) -> None:
        paths = [f"{V2}[type=A].a.[type=string].b", f"{V2}[type=B].a.[type=int].b", f"{V2}[key=True].[type=int]", "c"]
        schema = {"fields": [{"fieldPath": path, "nativeDataType": str(n)} for n, path in enumerate(paths)]}
        edit = {"fieldPath": "a.b", "description": "edited"}
        found = mapped(
            {
                ORDERS: {
                    "schemaMetadata": schema,
                    "editableSchemaMetadata": {"editableSchemaFieldInfo": [edit]},
                },
                f"urn:li:schemaField:({ORDERS},{V2}[type=map<x,y>].c)": {"globalTags": tags("seen")},
            }
        )
        assert found[ORDERS].columns == (
            Column(name="a.b", data_type="0", description="edited"),
            Column(name="c", data_type="3", tags=(("seen",),)),
        )

    def test_a_full_profile_fills_numbers_and_top_values_and_one_of_a_part_does_not(self, mapped: Mapped) -> None:
        values = [{"value": "rare", "frequency": 1}, {"value": "common", "frequency": 9}]
        profile = {
            "rowCount": 10,
            "sizeInBytes": 99,
            "fieldProfiles": [
                {
                    "fieldPath": "status",
                    "nullProportion": 0.25,
                    "uniqueCount": 2,
                    "min": "a",
                    "max": "z",
                    "distinctValueFrequencies": values,
                }
            ],
        }
        schema = {"fields": [{"fieldPath": "status"}]}
        found = mapped(
            {
                ORDERS: {"schemaMetadata": schema, "datasetProfile": profile},
                CUSTOMERS: {
                    "schemaMetadata": schema,
                    "datasetProfile": {**profile, "partitionSpec": {"type": "PARTITION", "partition": "2026"}},
                },
            }
        )
        (column,) = found[ORDERS].columns
        assert (column.null_ratio, column.distinct_count, column.min, column.max) == (0.25, 2, "a", "z")
        assert column.top_values == ("common", "rare")
        assert (found[ORDERS].statistics.row_count, found[ORDERS].statistics.size_bytes) == (10, 99)
        assert found[ORDERS].profile_status == "Profiled"
        assert found[CUSTOMERS].columns == (Column(name="status"),)
        assert found[CUSTOMERS].profile_status is None
        assert found[CUSTOMERS].statistics.row_count is None

    def test_foreign_keys_are_confirmed_relationships(self, mapped: Mapped) -> None:
        key = {
            "name": "fk_customer",
            "sourceFields": [f"urn:li:schemaField:({ORDERS},{V2}[type=int].customer_id)"],
            "foreignDataset": CUSTOMERS,
            "foreignFields": [f"urn:li:schemaField:({CUSTOMERS},id)"],
        }
        found = mapped({ORDERS: {"schemaMetadata": {"fields": [], "foreignKeys": [key]}}})
        assert found[ORDERS].relationships == (
            Relationship(
                kind=RelationshipKind.FOREIGN_KEY,
                columns=("customer_id",),
                target=CUSTOMERS,
                target_columns=("id",),
                confirmed=True,
            ),
        )


class TestReportColumns:
    def test_the_fields_a_chart_shows_each_once(self, mapped: Mapped) -> None:
        shown = {
            "schemaFieldUrn": f"urn:li:schemaField:({ORDERS},orders.total)",
            "schemaField": {
                "fieldPath": "orders.total",
                "nativeDataType": "sum",
                "label": "Total",
                "description": "",
                "nullable": False,
                "globalTags": tags("Measure"),
            },
        }
        bare = {"schemaFieldUrn": f"urn:li:schemaField:({ORDERS},orders.day)"}
        found = mapped({CHART: {"inputFields": {"fields": [shown, shown, bare]}}})
        assert found[CHART].columns == (
            Column(name="orders.total", data_type="sum", title="Total", tags=(("Measure",),), nullable=False),
            Column(name="orders.day"),
        )


class TestUrns:
    @pytest.mark.parametrize(
        ("urn", "parts", "last"),
        [
            ("urn:li:tag:a b", ("a b",), "a b"),
            (ORDERS, ("urn:li:dataPlatform:snowflake", "shop.sales.orders", "PROD"), "shop.sales.orders"),
            (f"urn:li:schemaField:({ORDERS},a,b)", (ORDERS, "a,b"), "a,b"),
            ("urn:li:dataFlow:(airflow,nightly,prod)", ("airflow", "nightly", "prod"), "nightly"),
            (
                "urn:li:dataJob:(urn:li:dataFlow:(airflow,nightly,prod),load)",
                ("urn:li:dataFlow:(airflow,nightly,prod)", "load"),
                "load",
            ),
            ("urn:li:chart:(looker,f%28x%2Cy%29 100%25)", ("looker", "f(x,y) 100%25"), "f(x,y) 100%25"),
            ("finance-stewards", ("finance-stewards",), "finance-stewards"),
        ],
    )
    def test_parts(self, urn: str, parts: tuple[str, ...], last: str) -> None:
        assert urn_parts(urn) == parts
        assert last_part(urn) == last

    @pytest.mark.parametrize(
        ("urn", "kind"),
        [(ORDERS, "dataset"), ("urn:li:tag:", None), ("urn:li::x", None), ("urn:x:tag:y", None), ("orders", None)],
    )
    def test_kind(self, urn: str, kind: str | None) -> None:
        assert urn_kind(urn) == kind

    @pytest.mark.parametrize(
        ("text", "opaque"),
        [
            ("0a1b2c3d-0000-4000-8000-123456789abc", True),
            ("pack.0a1b2c3d-0000-4000-8000-123456789abc", True),
            ("0a1b2c3d00004000800012345678abcd", True),
            ("Email_Address", False),
            ("0a1b2c3d", False),
        ],
    )
    def test_opaque(self, text: str, opaque: bool) -> None:
        assert is_opaque(text) is opaque

    @pytest.mark.parametrize(
        ("path", "simple"),
        [
            ("[version=2.0].[type=struct].[type=array].[type=string].a.b", "a.b"),
            ("[version=2.0].[key=True].[type=com.shop.Order].id", "id"),
            ("a[0].b", "a[0].b"),
            ("order_details.total", "order_details.total"),
        ],
    )
    def test_field_paths(self, path: str, simple: str) -> None:
        assert simple_field_path(path) == simple


class TestAspects:
    @pytest.mark.parametrize(
        ("read", "value", "message"),
        [
            ("text", 5, "a.x should be a text, but is int"),
            ("number", "5", "a.x should be a number, but is str"),
            ("number", True, "a.x should be a number, but is bool"),
            ("number", float("nan"), "a.x should be a number, but is float"),
            ("flag", "true", "a.x should be true or false, but is str"),
            ("moment", 10**20, "a.x should be milliseconds since 1970, but is int"),
            ("part", [], "a.x should be an object, but is list"),
            ("texts", {}, "a.x should be a list, but is dict"),
            ("texts", ["b", None], r"a.x\[1\] should be a text, but is NoneType"),
            ("scalars", [[]], r"a.x\[0\] should be a text or a number, but is list"),
        ],
    )
    def test_another_shape_names_the_field(self, read: str, value: Any, message: str) -> None:
        with pytest.raises(MalformedAspect, match=message):
            getattr(Aspect("a", {"x": value}), read)("x")

    def test_missing_null_and_blank_are_nothing(self) -> None:
        aspect = Aspect("a", {"null": None, "blank": " \n"})
        for key in ("null", "missing"):
            assert aspect.text(key) is aspect.number(key) is aspect.flag(key) is aspect.moment(key) is None
            assert not aspect.part(key)
            assert (*aspect.parts(key), *aspect.texts(key), *aspect.scalars(key)) == ()
        assert aspect.text("blank") is None

    def test_a_count_below_zero_is_not_known(self) -> None:
        assert Aspect("a", {"x": -1}).count("x") is None
