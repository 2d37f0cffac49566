"""The business-context narrative: what an asset means, told in prose, for whoever may see the asset.

Deterministic, and as steady as the meaning: no numbers of quality, usage, rating or rows and no dates enter, no access
list or access classification, no raw ids; an absent field leaves no trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from services.access.rule import AccessRule
from services.catalog.model import Asset, ObjectType
from services.context.columns import column_entries, value_entries
from services.context.facts import custom_field_sentences, tag_phrases, term_sentences
from services.context.kinds import kind_sentences
from services.context.labels import Neighbour, Surroundings, name_as_words, surroundings
from services.context.links import lineage_sentences, relationship_sentences
from services.context.prose import cleaned, distinct, enumeration, paragraph, said
from services.text.tokens import normal_form

_TYPE_WORDS = {
    ObjectType.API: "API",
    ObjectType.TERM: "business term",
    ObjectType.DATA_PRODUCT: "data product",
    ObjectType.DATA_STORY: "data story",
}


@dataclass(frozen=True)
class NarrativeRules:
    """What an operator may decide about narratives."""

    sensitive_names: frozenset[str]  # tags and terms that hide values, with all below them
    values_per_column: int = 10  # of the at most 50 kept; the keyword fields take them all


@dataclass(frozen=True)
class Section:
    """A part of a narrative under its name. Entries that may be parted stand on lines of their own."""

    name: str
    text: str


@dataclass(frozen=True)
class Narrative:
    """A heading that says what and where the asset is, and sections that are never empty."""

    heading: str
    sections: tuple[Section, ...]

    @property
    def text(self) -> str:
        return "\n".join((self.heading, *(section.text for section in self.sections)))


def compose(
    asset: Asset,
    neighbours: Mapping[str, Neighbour],
    own_access: AccessRule,
    rules: NarrativeRules,
    governance_words: tuple[str, ...] = (),
) -> Narrative:
    """The narrative of an asset.

    `neighbours` holds every known asset among `reference_ids(asset)`, whatever its access: the less visible ones are
    left out here. `governance_words` are the coarse words of its native governance values ("certified").
    """
    around = surroundings(neighbours, own_access)
    sections = (Section(name, text) for name, text in _sections(asset, around, own_access, rules, governance_words))
    return Narrative(heading(asset), tuple(section for section in sections if section.text))


def heading(asset: Asset) -> str:
    """Title, name as words, type, and the name as it stands in its innermost container.

    "Customer order headers: cust ord hdr table (sales.cust_ord_hdr)". Both spellings, because people ask in words
    while an embedding model tells look-alikes apart by the written name. Outer containers are told once, in a section:
    at the head of every chunk of a wide table they would make its chunks alike. What only repeats is left out.
    """
    name, title = name_as_words(asset.name), said(asset.title)
    path = ".".join(part for part in map(cleaned, (*containers(asset)[-1:], asset.name)) if part)
    words = [
        f"{title}:" if title and normal_form(title) != normal_form(name) else "",
        name,
        _TYPE_WORDS.get(asset.object_type, asset.object_type.value),
        f"({path})" if path and path != name else "",
    ]
    return " ".join(word for word in words if word)


def containers(asset: Asset) -> tuple[str, ...]:
    """The location without the asset itself, which some catalogs repeat at its end."""
    location = asset.location
    return location[:-1] if location and location[-1] == asset.name else location


def _sections(
    asset: Asset, around: Surroundings, own: AccessRule, rules: NarrativeRules, governance_words: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    yield "names", paragraph((_sentence_of("It is also called", distinct(map(said, asset.synonyms))), _place(asset)))
    yield "description", _description(asset)
    yield "details", paragraph(kind_sentences(asset, around))
    yield "business terms", "\n".join(term_sentences(asset.terms, around))
    yield "tags", _sentence_of("It is tagged", tag_phrases(asset.tags))
    yield "data products", _sentence_of("It belongs to the data product", _data_products(asset, around))
    yield "custom fields", "\n".join(custom_field_sentences(around.told(asset.custom_fields)))
    yield "governance", _sentence_of("It is known as", governance_words)
    yield "columns", "\n".join(column_entries(asset.columns, around))
    yield "relationships", "\n".join(relationship_sentences(asset, around))
    yield "lineage", "\n".join(lineage_sentences(asset.lineage, around))
    yield "values", "\n".join(value_entries(asset, own.classification, rules.sensitive_names, rules.values_per_column))


def _place(asset: Asset) -> str:
    """The outer containers as words, and the innermost where its words cannot be read off the heading."""
    place = [part for part in map(cleaned, containers(asset)) if part]
    if place and normal_form(place[-1]) == normal_form(place[-1].lower()):
        place.pop()
    return _sentence_of("It stands in", distinct(map(name_as_words, place)))


def _description(asset: Asset) -> str:
    """Business words first, and nothing that only repeats the name.

    The definition of a term, the description of a tag and the body of a story are theirs.
    """
    told = (asset.descriptions.business, asset.attributes.definition, asset.attributes.description)
    technical = (asset.descriptions.source, asset.descriptions.technical, asset.attributes.body)
    known = {normal_form(asset.name), normal_form(asset.title or "")}
    return paragraph(text for text in distinct(map(said, (*told, *technical))) if normal_form(text) not in known)


def _data_products(asset: Asset, around: Surroundings) -> list[str]:
    return [around.label_or_name(product) or "" for product in asset.data_products]


def _sentence_of(opening: str, items: list[str] | tuple[str, ...]) -> str:
    listed = enumeration(items)
    return f"{opening} {listed}." if listed else ""
