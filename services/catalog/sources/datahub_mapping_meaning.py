"""What data means and how it is shown: reports, glossary terms, tags, data products, documents -> catalog records."""

from __future__ import annotations

from collections.abc import Iterator

from services.catalog.model import CatalogRecord, ObjectType
from services.catalog.parts import Attributes, Descriptions
from services.catalog.sources.datahub_aspects import Aspect, last_part
from services.catalog.sources.datahub_columns import report_columns
from services.catalog.sources.datahub_facts import product_assets
from services.catalog.sources.datahub_files import Entity
from services.catalog.sources.datahub_lookup import Lookup
from services.catalog.sources.datahub_mapping_common import (
    associations,
    custom_fields,
    descriptions,
    domain_name,
    location,
    name_and_title,
    shared_fields,
    usage,
)

_RELATED_TERMS = ("isRelatedTerms", "hasRelatedTerms", "values", "relatedTerms")


def map_chart(entity: Entity, lookup: Lookup) -> CatalogRecord:
    """A chart as a report; its parent is the dashboard that shows it, when there is exactly one."""
    shown_on = lookup.dashboards.get(entity.urn, frozenset())
    parent = next(iter(shown_on)) if len(shown_on) == 1 else None
    return _report(entity, lookup, "editableChartProperties", "Chart", parent)


def map_dashboard(entity: Entity, lookup: Lookup) -> CatalogRecord:
    """A dashboard as a report."""
    return _report(entity, lookup, "editableDashboardProperties", "Dashboard", None)


def _report(entity: Entity, lookup: Lookup, edited: str, report_type: str, parent: str | None) -> CatalogRecord:
    """BI tools key their reports by ids of no meaning, so the title is the name. Its "queries" are its views."""
    info = entity.aspect(f"{entity.kind}Info")
    return CatalogRecord(
        **shared_fields(entity, lookup),
        object_type=ObjectType.REPORT,
        name=(info.text("title") or last_part(entity.urn)).strip(),
        location=location(entity, lookup),
        descriptions=descriptions(entity, info.text("description"), edited),
        url=info.text("externalUrl") or info.text(f"{entity.kind}Url"),
        updated_at=info.part("lastModified").moment("lastModified"),
        custom_fields=custom_fields(entity, lookup, info),
        columns=report_columns(entity, lookup),
        usage=usage(entity, "viewCountLast30Days"),
        attributes=Attributes(report_type=_subtype(entity) or (report_type if info else None), parent_report=parent),
    )


def map_term(entity: Entity, lookup: Lookup) -> CatalogRecord:
    """A glossary term; its nodes are its category and subcategory, and its location."""
    info, link = entity.aspect("glossaryTermInfo"), lookup.terms.get(entity.urn)
    related = entity.aspect("glossaryRelatedTerms")
    return CatalogRecord(
        **shared_fields(entity, lookup),
        object_type=ObjectType.TERM,
        name=link.name if link else last_part(entity.urn),
        location=lookup.path(entity.urn)[:-1] if link else (),
        url=info.text("sourceUrl"),
        custom_fields=custom_fields(entity, lookup, info, domain=False),
        relationships=associations((urn for key in _RELATED_TERMS for urn in related.texts(key)), lookup),
        attributes=Attributes(
            domain=domain_name(entity, lookup),
            category=link.category if link else None,
            subcategory=link.subcategory if link else None,
            definition=info.text("definition"),
        ),
    )


def map_tag(entity: Entity, lookup: Lookup) -> CatalogRecord:
    """A tag; without a definition it is called by its urn."""
    properties = entity.aspect("tagProperties")
    return CatalogRecord(
        **shared_fields(entity, lookup),
        object_type=ObjectType.TAG,
        name=lookup.names.get(entity.urn) or last_part(entity.urn),
        custom_fields=custom_fields(entity, lookup, properties),
        attributes=Attributes(description=properties.text("description")),
    )


def map_product(entity: Entity, lookup: Lookup) -> CatalogRecord:
    """A data product, associated with its assets. People write its description, so that is the business one."""
    properties = entity.aspect("dataProductProperties")
    domains = entity.aspect("domains").texts("domains")
    above = (lookup.parents[urn] for urn in domains if lookup.visible(urn) and urn in lookup.parents)
    return CatalogRecord(
        **shared_fields(entity, lookup),
        object_type=ObjectType.DATA_PRODUCT,
        name=lookup.names.get(entity.urn) or last_part(entity.urn),
        descriptions=Descriptions(business=properties.text("description")),
        url=properties.text("externalUrl"),
        custom_fields=custom_fields(entity, lookup, properties, domain=False),
        relationships=associations(product_assets(entity), lookup),
        attributes=Attributes(
            domain=domain_name(entity, lookup), parent_subdomain=", ".join(lookup.named(above)) or None
        ),
    )


def map_document(entity: Entity, lookup: Lookup) -> CatalogRecord:
    """A document as a data story: its text is the body, its subtype the zone, its related assets associations."""
    info = entity.aspect("documentInfo")
    name, title = name_and_title(last_part(entity.urn), info.text("title"))
    parent, author = lookup.parents.get(entity.urn), info.part("created").text("actor")
    return CatalogRecord(
        **shared_fields(entity, lookup),
        object_type=ObjectType.DATA_STORY,
        name=name,
        title=title,
        url=info.part("source").text("externalUrl"),
        updated_at=info.moment("lastModified"),
        custom_fields=custom_fields(entity, lookup, info),
        relationships=associations(_related(info), lookup),
        attributes=Attributes(
            story_zone=_subtype(entity),
            parent_story=parent if parent and lookup.visible(parent) else None,
            child_stories=tuple(sorted(lookup.children.get(entity.urn, ()))),
            author=lookup.name(author) if author else None,
            body=info.part("contents").text("text"),
        ),
    )


def _related(info: Aspect) -> Iterator[str]:
    for key, field in (("relatedAssets", "asset"), ("relatedDocuments", "document")):
        yield from (urn for related in info.parts(key) if (urn := related.text(field)))


def _subtype(entity: Entity) -> str | None:
    return next(iter(entity.aspect("subTypes").texts("typeNames")), None)
