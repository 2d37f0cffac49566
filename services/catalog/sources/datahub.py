"""DataHub from its exported MCP (metadata change proposal) files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from services.catalog.model import CatalogRecord
from services.catalog.sources.base import PAGE_SIZE, Ending, Outcome, Page, Rejection
from services.catalog.sources.datahub_aspects import MalformedAspect
from services.catalog.sources.datahub_facts import build_lookup
from services.catalog.sources.datahub_files import PAYLOAD_KEPT, Contents, Entity, read_contents
from services.catalog.sources.datahub_lookup import Lookup
from services.catalog.sources.datahub_mapping_common import nameless_links
from services.catalog.sources.datahub_mapping_data import is_schema_like, map_container, map_dataset, map_job
from services.catalog.sources.datahub_mapping_meaning import (
    map_chart,
    map_dashboard,
    map_document,
    map_product,
    map_tag,
    map_term,
)
from services.catalog.sources.validation import explain
from services.errors import SourceError

_MAPPINGS: dict[str, Callable[[Entity, Lookup], CatalogRecord]] = {
    "chart": map_chart,
    "container": map_container,
    "dashboard": map_dashboard,
    "dataJob": map_job,
    "dataProduct": map_product,
    "dataset": map_dataset,
    "document": map_document,
    "glossaryTerm": map_term,
    "tag": map_tag,
}
_PLURALS = {
    "dataset": "datasets",
    "chart": "charts",
    "dashboard": "dashboards",
    "container": "containers",
    "dataJob": "data jobs",
    "glossaryTerm": "glossary terms",
    "tag": "tags",
    "dataProduct": "data products",
    "document": "documents",
}
# Entities that are read for what they say of others: names, hierarchies, notes on columns.
_SUPPORTING = frozenset(
    {"corpGroup", "corpuser", "dataFlow", "dataPlatform", "dataPlatformInstance", "domain", "glossaryNode"}
    | {"ownershipType", "schemaField", "structuredProperty"}
)


@dataclass(frozen=True)
class DataHubFileSource:
    """A file of MCPs (a JSON array, or JSON Lines by its ending) or a folder of them, index.json giving the order.

    The aspects of all entities are held in memory while it is listed, since any entity may refer to any other; each
    is let go once it is mapped, and columns exist only in the page at hand. Ids are DataHub's urns. The listing is
    COMPLETE when the files held at least one readable proposal.
    """

    name: str
    path: Path
    overlay: bool = False

    def listing(self) -> Iterator[Page | Ending]:
        contents = self._contents()
        if not contents.entities:
            yield Page((), tuple(contents.rejected))
            yield Ending(Outcome.FAILED, f"{self.path} holds no proposal; that is not taken for an empty catalog")
            return
        yield from self._pages(contents)
        yield Ending(Outcome.COMPLETE)

    def probe(self) -> str:
        contents = self._contents()
        lookup, _ = build_lookup(contents.entities)
        kinds = Counter(entity.kind for entity in contents.entities.values() if entity.urn not in lookup.hidden)
        told = ", ".join(f"{kinds[kind]} {word}" for kind, word in _PLURALS.items() if kinds[kind])
        return f"{told or 'nothing to list'}; {len(contents.files)} files in {self.path}"

    def _contents(self) -> Contents:
        try:
            return read_contents(self.path)
        except SourceError as error:
            raise SourceError(f"source {self.name!r}: {error}") from error

    def _pages(self, contents: Contents) -> Iterator[Page]:
        lookup, broken = build_lookup(contents.entities)
        rejected = [*contents.rejected]
        rejected += (_rejection(contents.entities[urn], error) for urn, error in broken.items())
        notices = list(_notices(contents, lookup))
        records: list[CatalogRecord] = []
        nameless: set[str] = set()
        for urn in list(contents.entities):
            entity = contents.entities.pop(urn)  # so that its schema can go once it is mapped
            if urn in lookup.hidden:
                continue
            try:
                record = _record(entity, lookup, overlay=self.overlay)
                nameless |= nameless_links(entity, lookup)
            except MalformedAspect as error:
                rejected.append(_rejection(entity, str(error)))
                continue
            if record is not None:
                records.append(record)
            if len(records) == PAGE_SIZE:
                yield Page(tuple(records), tuple(rejected), tuple(notices))
                records, rejected, notices = [], [], []
        if nameless:
            example = min(nameless)
            notices.append(f"left out links to {len(nameless)} things without a name here, such as {example}")
        if records or rejected or notices:
            yield Page(tuple(records), tuple(rejected), tuple(notices))


def _record(entity: Entity, lookup: Lookup, *, overlay: bool) -> CatalogRecord | None:
    """The asset that an entity is, or None when it is none. Raises MalformedAspect."""
    mapping = _MAPPINGS.get(entity.kind)
    if mapping is None or (entity.kind == "container" and not is_schema_like(entity)):
        return None
    try:
        record = mapping(entity, lookup)
    except ValidationError as error:
        raise MalformedAspect(explain(error)) from error
    if not overlay:
        return record
    # What was only read off the urn must not win over what the owner knows.
    guessed: dict[str, object] = {}
    if entity.urn not in lookup.names:
        guessed["name"] = None
    if not entity.aspect("browsePathsV2") and entity.urn not in lookup.parents:
        guessed["location"] = ()
    return record.model_copy(update=guessed)


def _rejection(entity: Entity, error: str) -> Rejection:
    payload = json.dumps(entity.aspects, sort_keys=True)[:PAYLOAD_KEPT]
    return Rejection(entity.urn, f"{entity.place}: {error}", payload, asset_id=entity.urn)


def _notices(contents: Contents, lookup: Lookup) -> Iterator[str]:
    visible = [entity for entity in contents.entities.values() if entity.urn not in lookup.hidden]
    unknown = Counter(entity.kind for entity in visible if entity.kind not in _MAPPINGS.keys() | _SUPPORTING)
    if unknown:
        told = ", ".join(f"{kind} ({count})" for kind, count in sorted(unknown.items()))
        yield f"left out entities of types that are not mapped: {told}"
    if contents.replaced_characters:
        yield f"NUL or lone surrogate replaced by U+FFFD ({contents.replaced_characters} times)"
