"""All entities of an export -> the lookup that the mapping of each one uses."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from services.catalog.parts import TermLink
from services.catalog.sources.datahub_aspects import (
    MalformedAspect,
    documented,
    is_opaque,
    last_part,
    simple_field_path,
    urn_kind,
    urn_parts,
)
from services.catalog.sources.datahub_files import Entity
from services.catalog.sources.datahub_lineage import dashboard_charts, flows
from services.catalog.sources.datahub_lookup import FieldNotes, Lookup, ancestry

# Where an entity's name for people stands, best first: (aspect, field).
_NAMES: dict[str, tuple[tuple[str, str], ...]] = {
    "chart": (("chartInfo", "title"),),
    "container": (("containerProperties", "name"),),
    "corpGroup": (("corpGroupInfo", "displayName"),),
    "corpuser": (
        ("corpUserEditableInfo", "displayName"),
        ("corpUserInfo", "displayName"),
        ("corpUserInfo", "fullName"),
    ),
    "dashboard": (("dashboardInfo", "title"),),
    "dataFlow": (("dataFlowInfo", "name"),),
    "dataJob": (("dataJobInfo", "name"),),
    "dataPlatform": (("dataPlatformInfo", "displayName"), ("dataPlatformInfo", "name")),
    "dataProduct": (("dataProductProperties", "name"),),
    "dataset": (("datasetProperties", "name"),),
    "document": (("documentInfo", "title"),),
    "domain": (("domainProperties", "name"),),
    "glossaryNode": (("glossaryNodeInfo", "name"),),
    "glossaryTerm": (("glossaryTermInfo", "name"), ("glossaryTermKey", "name")),
    "ownershipType": (("ownershipTypeInfo", "name"),),
    "structuredProperty": (("propertyDefinition", "displayName"), ("propertyDefinition", "qualifiedName")),
    "tag": (("tagProperties", "name"), ("tagKey", "name")),
}

# What holds an entity: (aspect, field). A document says it one level deeper.
_HOLDERS = {
    "container": ("container", "container"),
    "chart": ("container", "container"),
    "dashboard": ("container", "container"),
    "dataset": ("container", "container"),
    "dataJob": ("dataJobInfo", "flowUrn"),
    "domain": ("domainProperties", "parentDomain"),
    "glossaryNode": ("glossaryNodeInfo", "parentNode"),
    "glossaryTerm": ("glossaryTermInfo", "parentNode"),
}


def build_lookup(entities: Mapping[str, Entity]) -> tuple[Lookup, dict[str, str]]:
    """The lookup over all entities, and the error of each entity whose part in it cannot be read (by urn).

    Such an entity counts as hidden: nothing is known for certain about it, not even that it was not removed.
    """
    facts = _Facts()
    broken: dict[str, str] = {}
    # What is hidden must be known before anything is said of the rest, hence two rounds.
    for take in (facts.take_state, facts.take):
        for entity in entities.values():
            if entity.urn not in facts.hidden:
                try:
                    take(entity)
                except MalformedAspect as error:
                    broken[entity.urn] = str(error)
                    facts.hidden.add(entity.urn)
    return facts.lookup(), broken


@dataclass
class _Facts:
    hidden: set[str] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)
    definitions: dict[str, str | None] = field(default_factory=dict)  # of each term
    term_domains: dict[str, tuple[str, ...]] = field(default_factory=dict)
    flows: set[tuple[str, str]] = field(default_factory=set)  # (upstream, downstream)
    products: set[tuple[str, str]] = field(default_factory=set)  # (asset, data product)
    dashboards: set[tuple[str, str]] = field(default_factory=set)  # (chart, dashboard)
    field_notes: dict[str, dict[str, FieldNotes]] = field(default_factory=lambda: defaultdict(dict))

    def take_state(self, entity: Entity) -> None:
        removed = entity.deleted or entity.aspect("status").flag("removed")
        # A draft is shown to nobody but its authors, so it is treated like what was removed.
        draft = entity.aspect("documentInfo").part("status").text("state") == "UNPUBLISHED"
        if removed or draft:
            self.hidden.add(entity.urn)
        if removed and entity.kind == "schemaField":
            self._note_field(entity, FieldNotes(removed=True))

    def take(self, entity: Entity) -> None:
        name, parent, flowing = _name(entity), _parent(entity), set(flows(entity))
        if entity.kind == "schemaField":
            self._note_field(entity, _field_notes(entity))
        elif entity.kind == "dashboard":
            self.dashboards.update((chart, entity.urn) for chart in dashboard_charts(entity))
        elif entity.kind == "dataProduct":
            self.products.update((asset, entity.urn) for asset in product_assets(entity))
        elif entity.kind == "glossaryTerm":
            self.term_domains[entity.urn] = entity.aspect("domains").texts("domains")
            self.definitions[entity.urn] = entity.aspect("glossaryTermInfo").text("definition")
        if name:
            self.names[entity.urn] = name
        if parent:
            self.parents[entity.urn] = parent
        self.flows |= flowing

    def _note_field(self, entity: Entity, notes: FieldNotes) -> None:
        parts = urn_parts(entity.urn)
        if len(parts) == 2:
            self.field_notes[parts[0]][simple_field_path(parts[1])] = notes

    def lookup(self) -> Lookup:
        hidden = frozenset(self.hidden)
        bare = Lookup(hidden=hidden, names=self.names, parents=self.parents)
        terms = {urn: link for urn in self.definitions if (link := self._term_link(urn, bare))}
        documents = ((parent, urn) for urn, parent in self.parents.items() if urn_kind(urn) == "document")
        return Lookup(
            hidden=hidden,
            names=self.names,
            parents=self.parents,
            terms=terms,
            guids=_guids(terms),
            upstream=_grouped(((down, up) for up, down in self.flows), hidden),
            downstream=_grouped(self.flows, hidden),
            products=_grouped(self.products, hidden),
            dashboards=_grouped(self.dashboards, hidden),
            children=_grouped(documents, hidden),
            table_counts=self._table_counts(),
            field_notes=dict(self.field_notes),
        )

    def _term_link(self, urn: str, bare: Lookup) -> TermLink | None:
        name = bare.name(urn)
        if name is None:
            return None
        *nodes, _ = bare.path(urn)
        return TermLink(
            id=urn,
            name=name,
            domain=", ".join(bare.named(self.term_domains[urn])) or None,
            category=nodes[0] if nodes else None,
            subcategory=" > ".join(nodes[1:]) or None,
            definition=self.definitions[urn],
        )

    def _table_counts(self) -> dict[str, int]:
        datasets = (urn for urn in self.parents if urn_kind(urn) == "dataset")
        return Counter(holder for urn in datasets for holder in ancestry(urn, self.parents)[1:])


def product_assets(entity: Entity) -> tuple[str, ...]:
    """The assets that a data product holds, in its order."""
    assets = entity.aspect("dataProductProperties").parts("assets")
    return tuple(urn for asset in assets if (urn := asset.text("destinationUrn")))


def _name(entity: Entity) -> str | None:
    found = (entity.aspect(aspect).text(key) for aspect, key in _NAMES.get(entity.kind, ()))
    return next((name.strip() for name in found if name), None)


def _parent(entity: Entity) -> str | None:
    if entity.kind == "document":
        return entity.aspect("documentInfo").part("parentDocument").text("document")
    aspect, key = _HOLDERS.get(entity.kind, ("", ""))
    return entity.aspect(aspect).text(key)


def _field_notes(entity: Entity) -> FieldNotes:
    return FieldNotes(
        documentation=documented(entity.aspect("documentation")),
        terms=tuple(urn for term in entity.aspect("glossaryTerms").parts("terms") if (urn := term.text("urn"))),
        tags=tuple(urn for tag in entity.aspect("globalTags").parts("tags") if (urn := tag.text("tag"))),
    )


def _grouped(pairs: Iterable[tuple[str, str]], hidden: frozenset[str]) -> dict[str, frozenset[str]]:
    """First of a pair -> all of its seconds; loops and pairs with something hidden left out."""
    groups: dict[str, set[str]] = defaultdict(set)
    for first, second in pairs:
        if first != second and not hidden & {first, second}:
            groups[first].add(second)
    return {first: frozenset(seconds) for first, seconds in groups.items()}


def _guids(terms: Iterable[str]) -> dict[str, str]:
    found: dict[str, list[str]] = defaultdict(list)
    for urn in terms:
        if is_opaque(key := last_part(urn)):
            found[key.rpartition(".")[2]].append(urn)
    return {guid: urns[0] for guid, urns in found.items() if len(urns) == 1}
