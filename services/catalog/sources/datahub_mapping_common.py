"""What all DataHub entities say in the same way: owners, terms, tags, custom fields, place, lineage."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from services.catalog.parts import (
    Certification,
    CertificationStatus,
    CustomField,
    Descriptions,
    GovernanceRole,
    Lineage,
    Relationship,
    RelationshipKind,
    TermLink,
    Usage,
)
from services.catalog.sources.datahub_aspects import Aspect, documented, is_opaque, last_part, urn_kind, urn_parts
from services.catalog.sources.datahub_files import Entity
from services.catalog.sources.datahub_lookup import Lookup

_SYSTEM_OWNERSHIP = "__system__"
_UNSAID_OWNERSHIP = ("", "none", "custom")


def shared_fields(entity: Entity, lookup: Lookup) -> dict[str, Any]:
    """The fields of a record that do not depend on its type, as keyword arguments of CatalogRecord.

    Data products by urn: who may not see a product is not to read its name.
    """
    return {
        "id": entity.urn,
        "governance_roles": governance_roles(entity, lookup),
        "terms": term_links(entity.aspect("glossaryTerms"), lookup),
        "tags": tag_paths(entity.aspect("globalTags"), lookup),
        "data_products": tuple(sorted(lookup.products.get(entity.urn, ()))),
        "certification": certification(entity, lookup),
        "lineage": Lineage(
            upstream=tuple(sorted(lookup.upstream.get(entity.urn, ()))),
            downstream=tuple(sorted(lookup.downstream.get(entity.urn, ()))),
        ),
    }


def governance_roles(entity: Entity, lookup: Lookup) -> tuple[GovernanceRole, ...]:
    """Owners by name, in their order, each (role, name) once; the derived map `ownerTypes` is not read."""
    pairs: dict[tuple[str, str], None] = {}
    for owner in entity.aspect("ownership").parts("owners"):
        urn = owner.text("owner")
        name = lookup.names.get(urn) or last_part(urn) if urn and lookup.visible(urn) else None
        if name:
            pairs[_role(owner, lookup), name] = None
    return tuple(GovernanceRole(role=role, name=name) for role, name in pairs)


def _role(owner: Aspect, lookup: Lookup) -> str:
    """owner, steward or custodian where the ownership type says so, else the type's own words.

    Business, technical and data owners are all owners; so is whoever stands there without a type.
    """
    type_urn = owner.text("typeUrn")
    said = (lookup.name(type_urn) if type_urn else owner.text("type")) or ""
    words = said.removeprefix(_SYSTEM_OWNERSHIP).replace("_", " ").strip()
    lowered = words.lower()
    for role in ("steward", "custodian", "owner"):
        if role in lowered:
            return role
    if lowered in _UNSAID_OWNERSHIP:
        return "owner"
    return words if type_urn else lowered


def term_links(aspect: Aspect, lookup: Lookup) -> tuple[TermLink, ...]:
    """The linked terms, each once, in their order."""
    return terms_of((urn for link in aspect.parts("terms") if (urn := link.text("urn"))), lookup)


def terms_of(urns: Iterable[str], lookup: Lookup) -> tuple[TermLink, ...]:
    links = {link.id: link for urn in urns if (link := lookup.term(urn))}
    return tuple(links.values())


def tag_urns(aspect: Aspect) -> tuple[str, ...]:
    return tuple(urn for tag in aspect.parts("tags") if (urn := tag.text("tag")))


def tag_paths(aspect: Aspect, lookup: Lookup) -> tuple[tuple[str, ...], ...]:
    """Tags as paths of one step (DataHub's tags have no parents), each once, in their order."""
    return tuple((name,) for name in lookup.named(tag_urns(aspect)))


def certification(entity: Entity, lookup: Lookup) -> Certification | None:
    """A deprecated asset is cautioned: it can still be used, but earns no trust and carries a warning.

    Not "inactive" (it may well be fed until its end) and not "violated" (no rule was broken). DataHub certifies
    nothing by itself, so every other asset has none.
    """
    deprecation = entity.aspect("deprecation")
    if not deprecation.flag("deprecated"):
        return None
    actor = deprecation.text("actor")
    return Certification(
        status=CertificationStatus.CAUTIONED, type="Deprecated", by=lookup.name(actor) if actor else None
    )


def custom_fields(
    entity: Entity, lookup: Lookup, properties: Aspect, *, domain: bool = True
) -> tuple[CustomField, ...]:
    """Domain, platform and deprecation note, then structured properties and custom properties, each sorted by name.

    `properties` is the aspect with the `customProperties` map. Its values stay text; so "True" is text, too.
    `domain=False` is for the types that have an attribute of their own for it.
    """
    bag = properties.part("customProperties").value
    platform = platform_urn(entity)
    first = {
        "Domain": domain_name(entity, lookup) if domain else None,
        "Platform": lookup.name(platform) if platform and "platform" not in bag else None,
        "Deprecation Note": entity.aspect("deprecation").text("note"),
    }
    return (
        *(CustomField(name=name, value=value) for name, value in first.items() if value),
        *sorted(_structured(entity, lookup), key=lambda custom: custom.name),
        *(CustomField(name=name, value=_scalar(bag[name])) for name in sorted(bag) if name.strip()),
    )


def _structured(entity: Entity, lookup: Lookup) -> Iterable[CustomField]:
    for assigned in entity.aspect("structuredProperties").parts("properties"):
        urn = assigned.text("propertyUrn")
        name = lookup.name(urn) if urn else None
        values = [_readable(value, lookup) for value in assigned.scalars("values")]
        known = [value for value in values if value is not None]
        if name and known:
            yield CustomField(name=name, value=known[0] if len(known) == 1 else ", ".join(map(_spelled, known)))


def _readable(value: str | int | float | bool, lookup: Lookup) -> str | int | float | bool | None:
    """The value itself, or the name of the entity it refers to (None when that was removed)."""
    if isinstance(value, str) and urn_kind(value):
        return lookup.names.get(value) or last_part(value) if lookup.visible(value) else None
    return value


def _spelled(value: str | int | float | bool) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _scalar(value: Any) -> str | int | float | bool | None:
    if value is None or isinstance(value, (str, int, float)):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def nameless_links(entity: Entity, lookup: Lookup) -> set[str]:
    """Urns of terms, tags and domains that the entity links, that were not removed, and that nothing gives a name."""
    terms = {urn for link in entity.aspect("glossaryTerms").parts("terms") if (urn := link.text("urn"))}
    others = {*tag_urns(entity.aspect("globalTags")), *entity.aspect("domains").texts("domains")}
    unnamed = {urn for urn in terms if not lookup.term(urn)} | {urn for urn in others if not lookup.name(urn)}
    return {urn for urn in unnamed if lookup.visible(urn)}


def domain_name(entity: Entity, lookup: Lookup) -> str | None:
    return ", ".join(lookup.named(entity.aspect("domains").texts("domains"))) or None


def platform_urn(entity: Entity) -> str | None:
    """The data platform: as its own aspect says, else as the urn does."""
    stated = entity.aspect("dataPlatformInstance").text("platform")
    if stated:
        return stated
    if entity.kind == "dataset":
        stated = entity.aspect("datasetKey").text("platform") or urn_parts(entity.urn)[0]
        return stated if urn_kind(stated) == "dataPlatform" else None
    if entity.kind in ("chart", "dashboard"):
        return f"urn:li:dataPlatform:{urn_parts(entity.urn)[0]}"
    return None


def location(entity: Entity, lookup: Lookup) -> tuple[str, ...]:
    """The browse path by names, outermost first; without one, the containers. Steps without a name are left out."""
    steps = tuple(entity.aspect("browsePathsV2").parts("path"))
    if steps:
        urns = (step.text("urn") or step.text("id") or "" for step in steps)
        return tuple(name for urn in urns if (name := lookup.name(urn) if urn_kind(urn) else urn))
    return lookup.path(parent) if (parent := lookup.parents.get(entity.urn)) else ()


def name_and_title(technical: str, display: str | None, edited: str | None = None) -> tuple[str, str | None]:
    """(name, title): the technical name and, when it is another one, the name for people.

    A display name that spells the same word in another case is how the platform itself writes the technical name, and
    so takes its place; so it does when the technical one is a GUID.
    """
    display = display.strip() if display else None
    title = edited.strip() if edited else display
    if display and (is_opaque(technical) or technical.lower() == display.lower()):
        technical = display
    return technical, title if title != technical else None


def descriptions(entity: Entity, ingested: str | None, edited: str) -> Descriptions:
    """`ingested` as the source's text; what people wrote, in the aspect `edited` or as documentation, as business's.

    The texts stay as they came, markup and all.
    """
    written = entity.aspect(edited).text("description") or documented(entity.aspect("documentation"))
    return Descriptions(source=ingested, business=written)


def usage(entity: Entity, queries_key: str) -> Usage:
    """The last 30 days; `queries_key` is the field that counts what a query is to this type."""
    features = entity.aspect("usageFeatures")
    return Usage(queries_30d=features.count(queries_key), users_30d=features.count("uniqueUserCountLast30Days"))


def associations(targets: Iterable[str], lookup: Lookup) -> tuple[Relationship, ...]:
    """Links that a person made from one thing to others, each once, in their order."""
    return tuple(
        Relationship(kind=RelationshipKind.ASSOCIATION, target=urn, confirmed=True)
        for urn in dict.fromkeys(targets)
        if lookup.visible(urn)
    )
