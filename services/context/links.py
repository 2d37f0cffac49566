"""Sentences about the assets around an asset: keys, joins, lineage. Only by name, and only what may be named."""

from __future__ import annotations

from collections.abc import Iterator

from services.catalog.model import Asset
from services.catalog.parts import Lineage, Relationship, RelationshipKind
from services.context.labels import Surroundings, name_as_words
from services.context.prose import enumeration

_OPENINGS = {
    RelationshipKind.FOREIGN_KEY: "It refers to",
    RelationshipKind.JOIN: "It is joined with",
    RelationshipKind.ASSOCIATION: "It is associated with",
}


def relationship_sentences(asset: Asset, around: Surroundings) -> Iterator[str]:
    """One line per kind of relationship: "It refers to customer by cust id and itself by parent id"."""
    for kind, opening in _OPENINGS.items():
        phrases = enumeration(
            _partner(relationship, asset.id, around)
            for relationship in asset.relationships
            if relationship.kind == kind
        )
        if phrases:
            yield f"{opening} {phrases}."


def _partner(relationship: Relationship, own_id: str, around: Surroundings) -> str:
    label = "itself" if relationship.target == own_id else around.label(relationship.target)
    columns = enumeration(map(name_as_words, relationship.columns))
    return f"{label} by {columns}" if label and columns else label or ""


def lineage_sentences(lineage: Lineage, around: Surroundings) -> Iterator[str]:
    """What the asset is made from and what is made from it."""
    for opening, ids in (("It is derived from", lineage.upstream), ("It feeds", lineage.downstream)):
        labels = enumeration(around.label(asset_id) or "" for asset_id in ids)
        if labels:
            yield f"{opening} {labels}."
