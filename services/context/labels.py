"""Which other assets a narrative may name, and by which words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from services.access.rule import AccessRule, at_least_as_visible
from services.catalog.model import Asset, ObjectType
from services.catalog.parts import CustomField
from services.context.prose import cleaned, said
from services.text.identifiers import spelled_as_words
from services.text.tokens import normal_form

_ID_LIKE = re.compile(r"[^\s:./]*[:./]\S*")  # a custom field may hold an id; a plain word or sentence is none
_RAW_ID = re.compile(r"\S+:\S+|\d+")


@dataclass(frozen=True)
class Neighbour:
    """What is known of an asset that another one refers to."""

    asset_id: str
    object_type: ObjectType
    name: str
    title: str | None
    access: AccessRule


def reference_ids(asset: Asset) -> tuple[str, ...]:
    """Every id that the asset's narrative may name, each once, in the order of the asset's fields.

    Some fields hold ids in one catalog and names in another; what turns out to be no id is simply not found.
    """
    attributes = asset.attributes
    references = (
        *asset.lineage.upstream,
        *asset.lineage.downstream,
        *(relationship.target for relationship in asset.relationships),
        *(term.id for term in asset.terms),
        *(term.id for column in asset.columns for term in column.terms),
        *asset.data_products,
        attributes.parent_report,
        attributes.parent_story,
        attributes.parent,
        *attributes.child_stories,
        *(value for value in _texts(asset.custom_fields) if _ID_LIKE.fullmatch(value)),
    )
    return tuple(dict.fromkeys(reference for reference in references if reference and reference != asset.id))


def _texts(fields: Iterable[CustomField]) -> Iterator[str]:
    return (field.value for field in fields if isinstance(field.value, str))


def visible_neighbours(own: AccessRule, neighbours: Iterable[Neighbour]) -> Mapping[str, Neighbour]:
    """By id, the neighbours that everybody who may see the asset may see too."""
    return {item.asset_id: item for item in neighbours if at_least_as_visible(item.access, own)}


@dataclass(frozen=True)
class Surroundings:
    """The assets around one asset: those that may be named, and the ids of those that may not."""

    visible: Mapping[str, Neighbour]
    hidden_ids: frozenset[str]

    def label(self, asset_id: str) -> str | None:
        """The words for an asset known by id; None when it is unknown, hidden, or has no words."""
        neighbour = self.visible.get(asset_id)
        return neighbour_label(neighbour) if neighbour else None

    def told(self, fields: Iterable[CustomField]) -> Iterator[CustomField]:
        """The custom fields that may be told: one with a hidden id is left out, a visible id gives way to its words."""
        for field in fields:
            if field.value in self.hidden_ids:
                continue
            known = isinstance(field.value, str) and field.value in self.visible
            yield field.model_copy(update={"value": self.label(str(field.value))}) if known else field

    def label_or_name(self, reference: str) -> str | None:
        """As `label`; a reference that no asset answers to is taken for a name, unless it looks like a raw id."""
        if reference in self.hidden_ids:
            return None
        if reference in self.visible:
            return self.label(reference)
        name = said(reference)
        return None if not name or _RAW_ID.fullmatch(name) else name


def surroundings(neighbours: Mapping[str, Neighbour], own: AccessRule) -> Surroundings:
    """Divides all known neighbours of an asset (not a selection: what is missing here counts as no asset)."""
    visible = visible_neighbours(own, neighbours.values())
    return Surroundings(visible, frozenset(neighbours.keys() - visible.keys()))


def neighbour_label(neighbour: Neighbour) -> str | None:
    """Title and name as words, "Order headers (ord hdr)"; one of them where they are the same; None without words."""
    name, title = name_as_words(neighbour.name), said(neighbour.title)
    if title and name and normal_form(title) != normal_form(name):
        return f"{title} ({name})"
    return title or name or None


def name_as_words(name: str) -> str:
    """A technical name as words, "ord hdr"; what is words already stays as it is written, "Net revenue".

    Empty when the name is no more than a URL or a hash.
    """
    plain = cleaned(name)
    words = spelled_as_words(plain)
    return plain if plain.lower() == words else words
