"""What is said of datasets, schemas, jobs, reports, data products and documents in particular."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from services.catalog.model import Asset, CatalogRecord
from services.catalog.parts import CustomField, Descriptions, Relationship, RelationshipKind

Mapped = Callable[[Mapping[str, Mapping[str, Any]]], dict[str, CatalogRecord]]

ORDERS = "urn:li:dataset:(urn:li:dataPlatform:snowflake,shop.sales.orders,PROD)"
CUSTOMERS = "urn:li:dataset:(urn:li:dataPlatform:snowflake,shop.sales.customers,PROD)"
RAW = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/raw/orders.csv,PROD)"
JOB = "urn:li:dataJob:(urn:li:dataFlow:(airflow,nightly,prod),load_orders)"
FLOW = "urn:li:dataFlow:(airflow,nightly,prod)"
CHART = "urn:li:chart:(looker,elements.1)"
BOARD = "urn:li:dashboard:(looker,dashboards.1)"
PRODUCT = "urn:li:dataProduct:orders360"
DOMAIN = "urn:li:domain:sales"
USER = "urn:li:corpuser:finance-stewards"
GONE = {"status": {"removed": True}}


def named(aspect: str, name: str) -> dict[str, Any]:
    return {aspect: {"name": name}}


class TestDatasets:
    def test_descriptions_stay_apart_and_as_they_came(self, mapped: Mapped) -> None:
        documentation = {"documentations": [{"documentation": " "}, {"documentation": "From **notes**."}]}
        found = mapped(
            {
                ORDERS: {
                    "datasetProperties": {"description": "Ingested."},
                    "editableDatasetProperties": {"description": "\n# Edited"},
                    "documentation": documentation,
                },
                CUSTOMERS: {"documentation": documentation, "datasetProperties": {"description": ""}},
            }
        )
        assert found[ORDERS].descriptions == Descriptions(source="Ingested.", business="\n# Edited")
        assert found[CUSTOMERS].descriptions == Descriptions(business="From **notes**.")

    def test_usage_statistics_url_time_and_view_logic(self, mapped: Mapped) -> None:
        found = mapped(
            {
                ORDERS: {
                    "usageFeatures": {"queryCountLast30Days": 261, "uniqueUserCountLast30Days": 4},
                    "storageFeatures": {"rowCount": 270200, "sizeInBytes": 1505280},
                    "datasetProperties": {
                        "externalUrl": "https://example.org/orders",
                        "lastModified": {"time": 1769558967676},
                    },
                    "viewProperties": {"viewLanguage": "SQL", "viewLogic": "select 1", "materialized": False},
                },
                CUSTOMERS: {"datasetProperties": {"lastModified": {"time": 0}}},
            }
        )
        orders = found[ORDERS]
        assert orders.usage.model_dump(exclude_defaults=True) == {"queries_30d": 261, "users_30d": 4}
        assert orders.statistics.model_dump(exclude_defaults=True) == {"row_count": 270200, "size_bytes": 1505280}
        assert orders.url == "https://example.org/orders"
        assert orders.updated_at == datetime(2026, 1, 28, 0, 9, 27, 676000, tzinfo=UTC)
        assert (orders.attributes.language, orders.attributes.source_code) == ("SQL", "select 1")
        assert orders.descriptions.technical is None
        assert found[CUSTOMERS].updated_at is None

    def test_siblings_are_declared_without_itself_and_what_is_gone(self, mapped: Mapped) -> None:
        siblings = {"siblings": [RAW, CUSTOMERS, ORDERS, "urn:li:dataset:(x,y,PROD)"], "primary": True}
        found = mapped({ORDERS: {"siblings": siblings}, CUSTOMERS: GONE, RAW: {"siblings": {"siblings": [RAW]}}})
        assert Asset(**found[ORDERS].payload()).siblings == (RAW, "urn:li:dataset:(x,y,PROD)")
        assert found[RAW].extra == {}

    @pytest.mark.parametrize(
        ("properties", "file_type"),
        [
            ({}, "csv"),
            ({"customProperties": {"schema_inferred_from": "s3://lake/a/part-0.c000.snappy.parquet"}}, "csv"),
        ],
    )
    def test_file_type_by_the_ending(self, mapped: Mapped, properties: dict[str, Any], file_type: str) -> None:
        assert mapped({RAW: {"datasetProperties": properties}})[RAW].attributes.file_type == file_type

    def test_a_folder_of_files_takes_the_type_of_its_sample(self, mapped: Mapped) -> None:
        urn = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/raw/orders,PROD)"
        sample = {"customProperties": {"schema_inferred_from": "s3://lake/raw/orders/part-0.c000.snappy.parquet"}}
        assert mapped({urn: {"datasetProperties": sample}})[urn].attributes.file_type == "parquet"
        assert mapped({urn: {}})[urn].attributes.file_type is None

    def test_a_schema_knows_its_database_and_its_tables(self, mapped: Mapped) -> None:
        found = mapped(
            {
                "urn:li:container:db": {
                    "containerProperties": {"name": "SHOP", "description": "The shop."},
                    "subTypes": {"typeNames": ["Database"]},
                },
                "urn:li:container:schema": {
                    **named("containerProperties", "SALES"),
                    "subTypes": {"typeNames": ["Schema"]},
                    "container": {"container": "urn:li:container:db"},
                },
                ORDERS: {"container": {"container": "urn:li:container:schema"}},
                CUSTOMERS: {"container": {"container": "urn:li:container:schema"}, **GONE},
            }
        )
        database, schema = found["urn:li:container:db"], found["urn:li:container:schema"]
        assert (database.name, database.descriptions.source) == ("SHOP", "The shop.")
        assert (database.attributes.database_name, database.attributes.table_count) == ("SHOP", 1)
        assert (schema.attributes.database_name, schema.attributes.table_count) == ("SHOP", 1)
        assert schema.location == ("SHOP",)


class TestLineage:
    def test_every_statement_of_flow_is_told_on_both_sides_once_and_without_loops(self, mapped: Mapped) -> None:
        upstreams = {"upstreams": [{"dataset": urn, "type": "COPY"} for urn in (RAW, RAW, ORDERS)]}
        found = mapped(
            {
                ORDERS: {"upstreamLineage": upstreams},
                RAW: {},
                CHART: {"chartInfo": {"title": "c", "inputs": [{"string": ORDERS}], "inputEdges": []}},
                BOARD: {
                    "dashboardInfo": {
                        "title": "b",
                        "charts": [CHART],
                        "chartEdges": [{"destinationUrn": CHART}],
                        "datasets": [CUSTOMERS],
                        "datasetEdges": [{"destinationUrn": ORDERS}],
                        "dashboards": [{"destinationUrn": "urn:li:dashboard:(looker,2)"}],
                    }
                },
                JOB: {
                    "dataJobInputOutput": {
                        "inputDatasets": [RAW],
                        "inputDatasetEdges": [{"destinationUrn": RAW}],
                        "inputDatajobs": ["urn:li:dataJob:(urn:li:dataFlow:(airflow,nightly,prod),first)"],
                        "outputDatasets": [],
                        "outputDatasetEdges": [{"destinationUrn": ORDERS}],
                    }
                },
            }
        )

        def lineage(urn: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
            return found[urn].lineage.upstream, found[urn].lineage.downstream

        assert lineage(RAW) == ((), (JOB, ORDERS))
        assert lineage(JOB) == (("urn:li:dataJob:(urn:li:dataFlow:(airflow,nightly,prod),first)", RAW), (ORDERS,))
        assert lineage(ORDERS) == ((JOB, RAW), (CHART, BOARD))
        assert lineage(CHART) == ((ORDERS,), (BOARD,))
        assert lineage(BOARD) == ((CHART, "urn:li:dashboard:(looker,2)", CUSTOMERS, ORDERS), ())

    def test_a_job_has_its_flow_as_location_and_its_query_as_source_code(self, mapped: Mapped) -> None:
        found = mapped(
            {
                JOB: {
                    "dataJobInfo": {
                        "name": "load_orders",
                        "type": {"string": "COMMAND"},
                        "flowUrn": FLOW,
                        "externalUrl": "https://example.org/job",
                        "description": "Loads.",
                    },
                    "dataTransformLogic": {"transforms": [{"queryStatement": {"value": "insert", "language": "SQL"}}]},
                },
                FLOW: named("dataFlowInfo", "Nightly run"),
            }
        )[JOB]
        assert found.location == ("Nightly run",)
        assert found.attributes.model_dump(exclude_defaults=True) == {
            "job_type": "COMMAND",
            "language": "SQL",
            "source_code": "insert",
        }
        assert (found.url, found.descriptions.source) == ("https://example.org/job", "Loads.")


class TestReports:
    def test_type_parent_url_time_and_views(self, mapped: Mapped) -> None:
        stamps = {"created": {"time": 1}, "lastModified": {"time": 1756485744000}}
        found = mapped(
            {
                CHART: {
                    "chartInfo": {"title": "c", "chartUrl": "https://example.org/c", "lastModified": stamps},
                    "usageFeatures": {"queryCountLast30Days": 0, "viewCountLast30Days": 38},
                },
                BOARD: {
                    "dashboardInfo": {"title": "b", "charts": [CHART], "dashboardUrl": "https://example.org/b"},
                    "editableDashboardProperties": {"description": "For the daily stand-up."},
                    "subTypes": {"typeNames": ["Report"]},
                },
            }
        )
        chart, board = found[CHART], found[BOARD]
        assert (chart.attributes.report_type, chart.attributes.parent_report) == ("Chart", BOARD)
        assert (board.attributes.report_type, board.attributes.parent_report) == ("Report", None)
        assert (chart.url, board.url) == ("https://example.org/c", "https://example.org/b")
        assert chart.updated_at == datetime(2025, 8, 29, 16, 42, 24, tzinfo=UTC)
        assert chart.usage.queries_30d == 38
        assert board.descriptions.business == "For the daily stand-up."

    def test_a_chart_on_two_dashboards_has_no_single_parent(self, mapped: Mapped) -> None:
        other = "urn:li:dashboard:(looker,dashboards.2)"
        shows = {"dashboardInfo": {"title": "b", "charts": [CHART]}}
        assert mapped({CHART: {}, BOARD: shows, other: shows})[CHART].attributes.parent_report is None


class TestProductsAndDocuments:
    def test_a_product_refers_to_its_assets_and_they_to_it(self, mapped: Mapped) -> None:
        found = mapped(
            {
                PRODUCT: {
                    "dataProductProperties": {
                        "name": "Orders 360",
                        "description": "All of orders.",
                        "assets": [{"destinationUrn": ORDERS}, {"destinationUrn": CUSTOMERS}],
                        "customProperties": {"tier": "1"},
                    },
                    "domains": {"domains": [DOMAIN]},
                },
                ORDERS: {},
                CUSTOMERS: GONE,
                DOMAIN: {"domainProperties": {"name": "Commerce", "parentDomain": "urn:li:domain:company"}},
                "urn:li:domain:company": named("domainProperties", "Company"),
            }
        )
        product = found[PRODUCT]
        assert found[ORDERS].data_products == (PRODUCT,)
        assert product.descriptions == Descriptions(business="All of orders.")
        assert product.relationships == (
            Relationship(kind=RelationshipKind.ASSOCIATION, target=ORDERS, confirmed=True),
        )
        assert (product.attributes.domain, product.attributes.parent_subdomain) == ("Commerce", "Company")
        assert product.custom_fields == (CustomField(name="tier", value="1"),)

    def test_a_document_is_a_story_with_body_zone_author_parent_and_children(self, mapped: Mapped) -> None:
        handbook, page = "urn:li:document:handbook", "urn:li:document:orders-page"
        found = mapped(
            {
                handbook: {"documentInfo": {"title": "Handbook", "contents": {"text": "# Handbook"}}},
                page: {
                    "documentInfo": {
                        "title": "Orders",
                        "contents": {"text": "# Orders\n"},
                        "created": {"time": 1769615173327, "actor": USER},
                        "lastModified": {"time": 1769615173327, "actor": USER},
                        "parentDocument": {"document": handbook},
                        "relatedAssets": [{"asset": ORDERS}, {"asset": ORDERS}],
                        "relatedDocuments": [{"document": handbook}],
                        "status": {"state": "PUBLISHED"},
                        "source": {"sourceType": "EXTERNAL", "externalUrl": "https://example.org/page"},
                    },
                    "subTypes": {"typeNames": ["Runbook"]},
                },
            }
        )
        story = found[page]
        assert (story.name, story.title, story.url) == ("orders-page", "Orders", "https://example.org/page")
        assert story.attributes.model_dump(exclude_defaults=True) == {
            "story_zone": "Runbook",
            "parent_story": handbook,
            "author": "finance-stewards",
            "body": "# Orders\n",
        }
        assert [link.target for link in story.relationships] == [ORDERS, handbook]
        assert story.updated_at == datetime(2026, 1, 28, 15, 46, 13, 327000, tzinfo=UTC)
        assert found[handbook].attributes.child_stories == (page,)
