"""Where data lies and how it moves: datasets, their schemas, and the jobs between them -> catalog records."""

from __future__ import annotations

from services.catalog.model import CatalogRecord, ObjectType
from services.catalog.parts import Attributes, Statistics
from services.catalog.sources.datahub_aspects import Aspect, last_part
from services.catalog.sources.datahub_columns import dataset_columns, foreign_keys, full_profile
from services.catalog.sources.datahub_files import Entity
from services.catalog.sources.datahub_lookup import Lookup
from services.catalog.sources.datahub_mapping_common import (
    custom_fields,
    descriptions,
    location,
    name_and_title,
    platform_urn,
    shared_fields,
    usage,
)

# Platforms whose datasets are files and folders, by the last part of the platform's urn.
_FILE_PLATFORMS = frozenset(
    {"abs", "adls", "adlsgen1", "adlsgen2", "dbfs", "file", "gcs", "hdfs", "minio", "s3", "sftp"}
)
_FILE_TYPES = frozenset({"avro", "csv", "delta", "json", "jsonl", "orc", "parquet", "tsv", "txt", "xls", "xlsx", "xml"})

# Containers that hold tables as a database or a schema does; the rest (folders, workbooks, BI projects, buckets) are
# places only. "Project" means a database in BigQuery and a folder elsewhere.
_SCHEMA_SUBTYPES = frozenset({"catalog", "database", "dataset", "keyspace", "metastore", "namespace", "schema"})
_DATABASE_SUBTYPES = frozenset({"catalog", "database", "metastore", "project"})
_PROJECT_PLATFORM = "urn:li:dataPlatform:bigquery"


def map_dataset(entity: Entity, lookup: Lookup) -> CatalogRecord:
    """A table, or a file when its platform is an object store or a file system.

    A view's logic goes to attributes.source_code: it is code, not a description in prose.
    """
    properties, view = entity.aspect("datasetProperties"), entity.aspect("viewProperties")
    is_file = _is_file(entity)
    *above, leaf = _key_steps(entity, "/" if is_file else ".")
    name, title = name_and_title(leaf, properties.text("name"), entity.aspect("editableDatasetProperties").text("name"))
    return CatalogRecord(
        **shared_fields(entity, lookup),
        object_type=ObjectType.FILE if is_file else ObjectType.TABLE,
        name=name,
        title=title,
        location=location(entity, lookup) or tuple(above),
        descriptions=descriptions(entity, properties.text("description"), "editableDatasetProperties"),
        url=properties.text("externalUrl"),
        updated_at=properties.moment("lastModified"),
        custom_fields=custom_fields(entity, lookup, properties),
        profile_status="Profiled" if full_profile(entity) else None,
        columns=dataset_columns(entity, lookup),
        relationships=foreign_keys(entity, lookup),
        usage=usage(entity, "queryCountLast30Days"),
        statistics=_statistics(entity),
        attributes=Attributes(
            file_type=_file_type(leaf, properties) if is_file else None,
            language=view.text("viewLanguage"),
            source_code=view.text("viewLogic"),
        ),
        extra=_siblings(entity, lookup),
    )


def map_container(entity: Entity, lookup: Lookup) -> CatalogRecord:
    """A schema or database; `database_name` is its own name, or that of the database that holds it."""
    properties = entity.aspect("containerProperties")
    name = properties.text("name") or last_part(entity.urn)
    holder = lookup.parents.get(entity.urn)
    holder_name = lookup.name(holder) if holder else None
    if _subtypes(entity) & _DATABASE_SUBTYPES:
        holder_name = name
    return CatalogRecord(
        **shared_fields(entity, lookup),
        object_type=ObjectType.SCHEMA,
        name=name,
        location=location(entity, lookup),
        descriptions=descriptions(entity, properties.text("description"), "editableContainerProperties"),
        url=properties.text("externalUrl"),
        updated_at=properties.moment("lastModified"),
        custom_fields=custom_fields(entity, lookup, properties),
        attributes=Attributes(database_name=holder_name, table_count=lookup.table_counts.get(entity.urn)),
    )


def is_schema_like(entity: Entity) -> bool:
    """Whether a container is a schema or database, judged by its subtype."""
    subtypes = _subtypes(entity)
    return bool(subtypes & _SCHEMA_SUBTYPES) or ("project" in subtypes and platform_urn(entity) == _PROJECT_PLATFORM)


def map_job(entity: Entity, lookup: Lookup) -> CatalogRecord:
    """A task of a pipeline, as code; its pipeline is its location."""
    info = entity.aspect("dataJobInfo")
    name, title = name_and_title(entity.aspect("dataJobKey").text("jobId") or last_part(entity.urn), info.text("name"))
    statements = (part.part("queryStatement") for part in entity.aspect("dataTransformLogic").parts("transforms"))
    statement = next((part for part in statements if part.text("value")), Aspect(""))
    return CatalogRecord(
        **shared_fields(entity, lookup),
        object_type=ObjectType.CODE,
        name=name,
        title=title,
        location=location(entity, lookup),
        descriptions=descriptions(entity, info.text("description"), "editableDataJobProperties"),
        url=info.text("externalUrl"),
        updated_at=info.moment("lastModified"),
        custom_fields=custom_fields(entity, lookup, info),
        attributes=Attributes(
            job_type=info.text("type"), language=statement.text("language"), source_code=statement.text("value")
        ),
    )


def _is_file(entity: Entity) -> bool:
    platform = platform_urn(entity)
    return platform is not None and last_part(platform).lower() in _FILE_PLATFORMS


def _key_steps(entity: Entity, separator: str) -> tuple[str, ...]:
    """The dataset's key as a path, the dataset itself last; a display name that ends the key is one step."""
    key = entity.aspect("datasetKey").text("name") or last_part(entity.urn)
    display = (entity.aspect("datasetProperties").text("name") or "").strip()
    if display and key.lower().endswith(display.lower()):
        above, leaf = key[: -len(display)], display
    else:
        above, _, leaf = key.strip(separator).rpartition(separator)
    return (*(step for step in above.split(separator) if step), leaf)


def _file_type(name: str, properties: Aspect) -> str | None:
    """The format, by the ending of the file or of the one that its schema was inferred from."""
    sample = properties.part("customProperties").text("schema_inferred_from") or ""
    endings = (text.rpartition(".")[2].lower() for text in (name, sample))
    return next((ending for ending in endings if ending in _FILE_TYPES), None)


def _statistics(entity: Entity) -> Statistics:
    features, profile = entity.aspect("storageFeatures"), full_profile(entity)
    counted = (features.count("rowCount"), profile.count("rowCount"))
    sized = (features.count("sizeInBytes"), profile.count("sizeInBytes"))
    return Statistics(
        row_count=next((count for count in counted if count is not None), None),
        size_bytes=next((count for count in sized if count is not None), None),
    )


def _siblings(entity: Entity, lookup: Lookup) -> dict[str, list[str]]:
    """`extra` with the ids of the same thing seen through other platforms, where there are any."""
    declared = {urn for urn in entity.aspect("siblings").texts("siblings") if lookup.visible(urn)}
    return {"siblings": sorted(declared - {entity.urn})} if declared - {entity.urn} else {}


def _subtypes(entity: Entity) -> set[str]:
    return {subtype.lower() for subtype in entity.aspect("subTypes").texts("typeNames")}
