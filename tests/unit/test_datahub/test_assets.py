"""Which asset an entity becomes, how it is called and where it lies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from services.catalog.model import Asset, CatalogRecord, ObjectType

Mapped = Callable[[Mapping[str, Mapping[str, Any]]], dict[str, CatalogRecord]]

ORDERS = "urn:li:dataset:(urn:li:dataPlatform:snowflake,shop.sales.orders,PROD)"
CUSTOMERS = "urn:li:dataset:(urn:li:dataPlatform:snowflake,shop.sales.customers,PROD)"
RAW = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/raw/orders.csv,PROD)"
JOB = "urn:li:dataJob:(urn:li:dataFlow:(airflow,nightly,prod),load_orders)"
FLOW = "urn:li:dataFlow:(airflow,nightly,prod)"
CHART = "urn:li:chart:(looker,elements.1)"
BOARD = "urn:li:dashboard:(looker,dashboards.1)"
TERM = "urn:li:glossaryTerm:revenue"
TAG = "urn:li:tag:gold"
PRODUCT = "urn:li:dataProduct:orders360"
GONE = {"status": {"removed": True}}


def named(aspect: str, name: str) -> dict[str, Any]:
    return {aspect: {"name": name}}


class TestTypes:
    @pytest.mark.parametrize(
        ("platform", "object_type"),
        [
            ("snowflake", ObjectType.TABLE),
            ("kafka", ObjectType.TABLE),
            ("s3", ObjectType.FILE),
            ("gcs", ObjectType.FILE),
            ("abs", ObjectType.FILE),
            ("adlsGen2", ObjectType.FILE),
            ("hdfs", ObjectType.FILE),
            ("file", ObjectType.FILE),
        ],
    )
    def test_a_dataset_is_a_file_on_an_object_store_and_a_table_elsewhere(
        self, mapped: Mapped, platform: str, object_type: ObjectType
    ) -> None:
        urn = f"urn:li:dataset:(urn:li:dataPlatform:{platform},lake/a,PROD)"
        assert mapped({urn: {}})[urn].object_type is object_type

    @pytest.mark.parametrize(
        ("urn", "object_type"),
        [
            (CHART, ObjectType.REPORT),
            (BOARD, ObjectType.REPORT),
            (JOB, ObjectType.CODE),
            (TERM, ObjectType.TERM),
            (TAG, ObjectType.TAG),
            (PRODUCT, ObjectType.DATA_PRODUCT),
            ("urn:li:document:handbook", ObjectType.DATA_STORY),
        ],
    )
    def test_the_other_types_and_a_bare_entity_is_an_asset_still(
        self, mapped: Mapped, urn: str, object_type: ObjectType
    ) -> None:
        record = mapped({urn: {}})[urn]
        assert record.object_type is object_type
        assert Asset(**record.payload()).name

    @pytest.mark.parametrize(
        ("subtype", "platform", "listed"),
        [
            ("Schema", "snowflake", True),
            ("Database", "snowflake", True),
            ("Catalog", "unity", True),
            ("Dataset", "bigquery", True),
            ("Project", "bigquery", True),
            ("Project", "tableau", False),
            ("Folder", "looker", False),
            ("Workbook", "tableau", False),
        ],
    )
    def test_containers_are_judged_by_their_subtype(
        self, mapped: Mapped, subtype: str, platform: str, listed: bool
    ) -> None:
        container = {
            "containerProperties": {"name": "sales"},
            "subTypes": {"typeNames": [subtype]},
            "dataPlatformInstance": {"platform": f"urn:li:dataPlatform:{platform}"},
        }
        found = mapped({"urn:li:container:1": container, TAG: {}})
        assert ("urn:li:container:1" in found) is listed

    def test_users_domains_nodes_flows_and_definitions_are_no_assets(self, mapped: Mapped) -> None:
        kinds = ["corpuser", "corpGroup", "domain", "glossaryNode", "structuredProperty", "ownershipType"]
        assert list(mapped({FLOW: {}, TAG: {}, **{f"urn:li:{kind}:x": {} for kind in kinds}})) == [TAG]


class TestNames:
    @pytest.mark.parametrize(
        ("key", "display", "edited", "name", "title"),
        [
            ("shop.sales.orders", "ORDERS", None, "ORDERS", None),
            ("shop.sales.orders", None, None, "orders", None),
            ("shop.sales.orders", "Order Book", None, "orders", "Order Book"),
            ("shop.sales.orders", "ORDERS", "Order Book", "ORDERS", "Order Book"),
            ("com.shop.orders", "com.shop.orders", None, "com.shop.orders", None),
            ("f32082e5-06b8-f46e-9047-4611fffe66b0", "Order Book", None, "Order Book", None),
        ],
    )
    def test_name_is_the_technical_one_and_title_the_other(
        self, mapped: Mapped, key: str, display: str | None, edited: str | None, name: str, title: str | None
    ) -> None:
        aspects = {
            "datasetKey": {"name": key, "platform": "urn:li:dataPlatform:snowflake", "origin": "PROD"},
            "datasetProperties": {"name": display},
            "editableDatasetProperties": {"name": edited},
        }
        record = mapped({ORDERS: aspects})[ORDERS]
        assert (record.name, record.title) == (name, title)

    def test_a_report_goes_by_its_title_and_a_job_by_its_id(self, mapped: Mapped) -> None:
        found = mapped(
            {CHART: {"chartInfo": {"title": "Orders by day"}}, JOB: {"dataJobInfo": {"name": "Load orders"}}}
        )
        assert (found[CHART].name, found[CHART].title) == ("Orders by day", None)
        assert (found[JOB].name, found[JOB].title) == ("load_orders", "Load orders")

    def test_a_tag_goes_by_its_definition_then_by_its_key_then_by_its_urn(self, mapped: Mapped) -> None:
        found = mapped(
            {
                "urn:li:tag:x1": {**named("tagProperties", "Gold"), **named("tagKey", "gold")},
                "urn:li:tag:x2": named("tagKey", "silver"),
                "urn:li:tag:bronze": {},
            }
        )
        assert [record.name for record in found.values()] == ["Gold", "silver", "bronze"]


class TestLocation:
    def test_browse_path_by_names_with_nameless_and_removed_steps_left_out(self, mapped: Mapped) -> None:
        guid = "urn:li:container:0a1b2c3d00004000800012345678abcd"
        path = [
            {"id": "Folders"},
            {"urn": "urn:li:container:1", "id": "urn:li:container:1"},
            {"id": guid, "urn": guid},
            {"id": "urn:li:container:2", "urn": "urn:li:container:2"},
            {"id": BOARD, "urn": BOARD},
        ]
        found = mapped(
            {
                CHART: {"browsePathsV2": {"path": path}},
                BOARD: {"dashboardInfo": {"title": "Orders"}},
                "urn:li:container:1": named("containerProperties", "Shared"),
                "urn:li:container:2": {**named("containerProperties", "Secret"), **GONE},
            }
        )
        assert found[CHART].location == ("Folders", "Shared", "Orders")

    def test_without_a_browse_path_the_containers_then_the_key(self, mapped: Mapped) -> None:
        found = mapped(
            {
                ORDERS: {"container": {"container": "urn:li:container:schema"}},
                "urn:li:container:schema": {
                    **named("containerProperties", "SALES"),
                    "container": {"container": "urn:li:container:db"},
                },
                "urn:li:container:db": named("containerProperties", "SHOP"),
                CUSTOMERS: {},
                RAW: {},
            }
        )
        assert found[ORDERS].location == ("SHOP", "SALES")
        assert found[CUSTOMERS].location == ("shop", "sales")
        assert (found[RAW].location, found[RAW].name) == (("lake", "raw"), "orders.csv")

    def test_containers_in_a_circle_end(self, mapped: Mapped) -> None:
        circle = {
            "urn:li:container:a": {
                **named("containerProperties", "A"),
                "container": {"container": "urn:li:container:b"},
            },
            "urn:li:container:b": {
                **named("containerProperties", "B"),
                "container": {"container": "urn:li:container:a"},
            },
        }
        assert mapped({ORDERS: {"container": {"container": "urn:li:container:a"}}, **circle})[ORDERS].location == (
            "B",
            "A",
        )
