"""The public showcase catalog, whole: counts, known facts, and the same bytes twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from services.catalog.model import Asset, canonical_json
from services.catalog.sources.base import PAGE_SIZE, Ending, Outcome, Page
from services.catalog.sources.datahub import DataHubFileSource

SNOWFLAKE_ORDER_DETAILS = (
    "urn:li:dataset:(urn:li:dataPlatform:snowflake,b2fd91.order_entry_db.analytics.order_details,PROD)"
)
DBT_ORDER_DETAILS = "urn:li:dataset:(urn:li:dataPlatform:dbt,b2fd91.ORDER_ENTRY_DB.analytics.order_details,PROD)"


@pytest.fixture(scope="module")
def showcase(shared_folder: Path) -> DataHubFileSource:
    return DataHubFileSource("showcase", shared_folder / "data" / "datahub-showcase")


@pytest.fixture(scope="module")
def pages(showcase: DataHubFileSource) -> list[Page]:
    *pages, ending = showcase.listing()
    assert ending == Ending(Outcome.COMPLETE)
    return [page for page in pages if isinstance(page, Page)]


@pytest.fixture(scope="module")
def assets(pages: list[Page]) -> dict[str, Asset]:
    return {record.id: Asset(**record.payload()) for page in pages for record in page.records}


def test_every_entity_is_an_asset_and_nothing_is_rejected(pages: list[Page], assets: dict[str, Asset]) -> None:
    kinds = Counter(asset_id.split(":")[2] for asset_id in assets)
    assert kinds == {
        "dataset": 67,
        "chart": 12,
        "dashboard": 3,
        "dataJob": 23,
        "glossaryTerm": 10,
        "tag": 6,
        "dataProduct": 5,
        "document": 18,
        "container": 5,
    }
    assert Counter(asset.object_type.value for asset in assets.values())["file"] == 12
    assert [page.rejected for page in pages if page.rejected] == []
    assert all(len(page.records) <= PAGE_SIZE for page in pages)
    assert sum(len(page.records) for page in pages) == len(assets)


def test_known_marks_of_trust(assets: dict[str, Asset]) -> None:
    assert sum(("Authoritative Source",) in asset.tags for asset in assets.values()) == 1
    assert sum(any(term.name == "Certified" for term in asset.terms) for asset in assets.values()) == 1
    fields = {(custom.name, custom.value) for asset in assets.values() for custom in asset.custom_fields}
    assert ("business_critical", "True") in fields
    assert {value for name, value in fields if name == "contains_pii"} == {"True", "False"}


def test_every_dataset_carries_its_structured_properties_by_name(assets: dict[str, Asset]) -> None:
    datasets = [asset for asset in assets.values() if asset.id.startswith("urn:li:dataset:")]
    values = [{custom.name: custom.value for custom in asset.custom_fields} for asset in datasets]
    assert all(isinstance(fields["Data Quality Score"], float) for fields in values)
    assert all(str(fields["Data Owner Escalation Contact"]).startswith("Person ") for fields in values)
    assert all(asset.data_quality_score is None for asset in datasets)


def test_one_well_known_table(assets: dict[str, Asset]) -> None:
    table = assets[SNOWFLAKE_ORDER_DETAILS]
    assert (table.name, table.location) == ("ORDER_DETAILS", ("ORDER_ENTRY_DB", "ANALYTICS"))
    assert table.siblings == (DBT_ORDER_DETAILS,)
    assert "Order Entry Analytics" in {assets[product].name for product in table.data_products}
    assert DBT_ORDER_DETAILS in table.lineage.upstream
    assert table.descriptions.business == "Details of orders."
    assert len({column.name for column in table.columns}) == len(table.columns) == 55


def test_names_and_places_are_readable(assets: dict[str, Asset]) -> None:
    shown = [
        *(name for asset in assets.values() for name in (asset.name, *asset.location)),
        *(step for asset in assets.values() for path in asset.tags for step in path),
        *(term.name for asset in assets.values() for term in asset.terms),
        *(role.name for asset in assets.values() for role in asset.governance_roles),
    ]
    assert [name for name in shown if name.startswith("urn:") or not name.strip()] == []
    assert {term.name for asset in assets.values() for term in asset.terms} <= {
        asset.name for asset in assets.values() if asset.object_type == "term"
    }


def test_documents_have_bodies_and_hang_together(assets: dict[str, Asset]) -> None:
    stories = {asset.id: asset for asset in assets.values() if asset.object_type == "data_story"}
    assert all(story.attributes.body and story.attributes.story_zone and story.title for story in stories.values())
    parents = [story.attributes.parent_story for story in stories.values() if story.attributes.parent_story]
    assert len(parents) == 17
    assert set(parents) <= set(stories)
    assert sum(len(story.attributes.child_stories) for story in stories.values()) == 17
    assert {link.target for story in stories.values() for link in story.relationships} <= set(assets)


def test_a_second_listing_is_the_same_to_the_byte(showcase: DataHubFileSource, pages: list[Page]) -> None:
    first = [canonical_json(record.payload()) for page in pages for record in page.records]
    again = [page for page in showcase.listing() if isinstance(page, Page)]
    assert [canonical_json(record.payload()) for page in again for record in page.records] == first


def test_probe_counts_the_entities(showcase: DataHubFileSource) -> None:
    assert showcase.probe().startswith(
        "67 datasets, 12 charts, 3 dashboards, 14 containers, 23 data jobs, 10 glossary terms, 6 tags, "
        "5 data products, 18 documents; 3 files in "
    )
