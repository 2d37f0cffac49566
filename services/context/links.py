"""Sentences about the assets around an asset: keys, joins, lineage. Only by name, and only what may be named."""

from __future__ import annotations

from collections.abc import Iterator

from services.catalog.model import Asset, Lineage, Relationship, RelationshipKind
from services.context.labels import Surroundings, name_as_words
from services.context.prose import enumeration

_VERBS = {
    RelationshipKind.FOREIGN_KEY: "It refers to",
    RelationshipKind.JOIN: "It is joined with",
    RelationshipKind.ASSOCIATION: "It is associated with",
}


def relationship_sentences(asset: Asset, around: Surroundings) -> Iterator[str]:
    """One line per relationship: "It refers to customer by cust id"."""
    seen: set[str] = set()
    for relationship in asset.relationships:
        label = "itself" if relationship.target == asset.id else around.label(relationship.target)
        if not label:
            continue
        columns = enumeration(map(name_as_words, relationship.columns))
        line = f"{_verb(relationship)} {label}{f' by {columns}' if columns else ''}."
        if line not in seen:
            seen.add(line)
            yield line


def _verb(relationship: Relationship) -> str:
    return _VERBS[relationship.kind]


def lineage_sentences(lineage: Lineage, around: Surroundings) -> Iterator[str]:
    """What the asset is made from and what is made from it."""
    for opening, ids in (("It is derived from", lineage.upstream), ("It feeds", lineage.downstream)):
        labels = enumeration(around.label(asset_id) or "" for asset_id in ids)
        if labels:
            yield f"{opening} {labels}."
