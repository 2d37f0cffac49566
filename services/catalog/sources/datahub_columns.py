"""The columns of a dataset or report, from every aspect that speaks of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from services.catalog.parts import Column, Relationship, RelationshipKind
from services.catalog.sources.datahub_aspects import Aspect, simple_field_path, urn_kind, urn_parts
from services.catalog.sources.datahub_files import Entity
from services.catalog.sources.datahub_lookup import FieldNotes, Lookup
from services.catalog.sources.datahub_mapping_common import tag_paths, tag_urns, term_links, terms_of

_NOTHING = Aspect("")
_NO_NOTES = FieldNotes()


def dataset_columns(entity: Entity, lookup: Lookup) -> tuple[Column, ...]:
    """The columns in schema order, a path that simplifies to an earlier one left out.

    What a person wrote (editableSchemaMetadata, then documentation) wins over what was ingested; terms and tags of all
    three are united.
    """
    edits = _by_path(entity.aspect("editableSchemaMetadata").parts("editableSchemaFieldInfo"))
    profiles = _by_path(full_profile(entity).parts("fieldProfiles"))
    notes = lookup.field_notes.get(entity.urn, {})
    columns: dict[str, Column] = {}
    for described in entity.aspect("schemaMetadata").parts("fields"):
        path = _path(described)
        note = notes.get(path, _NO_NOTES)
        if path and path not in columns and not note.removed:
            edit, profile = edits.get(path, _NOTHING), profiles.get(path, _NOTHING)
            columns[path] = _column(path, described, edit, note, profile, lookup)
    return tuple(columns.values())


def _column(path: str, described: Aspect, edit: Aspect, note: FieldNotes, profile: Aspect, lookup: Lookup) -> Column:
    terms = [*term_links(edit.part("glossaryTerms"), lookup), *terms_of(note.terms, lookup)]
    terms += term_links(described.part("glossaryTerms"), lookup)
    tags = [*tag_urns(edit.part("globalTags")), *note.tags, *tag_urns(described.part("globalTags"))]
    return Column(
        name=path,
        data_type=described.text("nativeDataType") or _type_class(described),
        title=described.text("label"),
        description=edit.text("description") or note.documentation or described.text("description"),
        terms=tuple({link.id: link for link in terms}.values()),
        tags=tuple((name,) for name in lookup.named(tags)),
        nullable=described.flag("nullable"),
        **_profiled(profile),
    )


def _profiled(profile: Aspect) -> dict[str, Any]:
    frequencies = sorted(profile.parts("distinctValueFrequencies"), key=lambda found: -(found.count("frequency") or 0))
    return {
        "null_ratio": profile.number("nullProportion"),
        "distinct_count": profile.count("uniqueCount"),
        "min": profile.text("min"),
        "max": profile.text("max"),
        "top_values": tuple(value for found in frequencies if (value := found.text("value"))),
    }


def report_columns(entity: Entity, lookup: Lookup) -> tuple[Column, ...]:
    """The fields that a chart or dashboard shows, each name once; those of removed datasets are left out."""
    columns: dict[str, Column] = {}
    for shown in entity.aspect("inputFields").parts("fields"):
        origin, described = shown.text("schemaFieldUrn") or "", shown.part("schemaField")
        path = _path(described) or (_field(origin)[1] if origin else "")
        if path and path not in columns and lookup.visible(origin):
            columns[path] = Column(
                name=path,
                data_type=described.text("nativeDataType") or _type_class(described),
                title=described.text("label"),
                description=described.text("description"),
                terms=term_links(described.part("glossaryTerms"), lookup),
                tags=tag_paths(described.part("globalTags"), lookup),
                nullable=described.flag("nullable"),
            )
    return tuple(columns.values())


def foreign_keys(entity: Entity, lookup: Lookup) -> tuple[Relationship, ...]:
    """The declared keys of the schema; those that lead to something removed are left out."""
    return tuple(
        Relationship(
            kind=RelationshipKind.FOREIGN_KEY,
            columns=tuple(_field(urn)[1] for urn in key.texts("sourceFields")),
            target=target,
            target_columns=tuple(_field(urn)[1] for urn in key.texts("foreignFields")),
            confirmed=True,
        )
        for key in entity.aspect("schemaMetadata").parts("foreignKeys")
        if (target := key.text("foreignDataset"))
        and all(map(lookup.visible, (target, *key.texts("sourceFields"), *key.texts("foreignFields"))))
    )


def full_profile(entity: Entity) -> Aspect:
    """The profile of the whole dataset, else nothing: that of a partition or sample says little about the rest."""
    profile = entity.aspect("datasetProfile")
    return profile if profile.part("partitionSpec").text("type") in (None, "FULL_TABLE") else _NOTHING


def _by_path(parts: Iterable[Aspect]) -> dict[str, Aspect]:
    return {_path(part): part for part in parts}


def _path(part: Aspect) -> str:
    return simple_field_path(part.text("fieldPath") or "")


def _field(urn: str) -> tuple[str, str]:
    """(dataset urn, simple field path) of a schemaField urn."""
    parts = urn_parts(urn) if urn_kind(urn) == "schemaField" else ()
    return (parts[0], simple_field_path(parts[1])) if len(parts) == 2 else ("", urn)


def _type_class(described: Aspect) -> str | None:
    """DataHub's own type, for want of a native one: {"com.linkedin.schema.NumberType": {}} -> "number"."""
    return next(
        (key.rpartition(".")[2].removesuffix("Type").lower() for key in described.part("type").part("type").value), None
    )
