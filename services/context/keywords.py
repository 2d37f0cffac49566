"""What the keyword index knows of an asset: weighted tokens, a length, and its whole names."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from services.access.rule import AccessRule
from services.catalog.model import Asset
from services.catalog.parts import Column, CustomField, TermLink
from services.context.facts import shown_terms, term_definition, term_name, term_place
from services.context.labels import Neighbour, Surroundings, surroundings
from services.context.narrative import NarrativeRules, containers
from services.context.prose import cleaned, said
from services.context.sensitivity import shows_values
from services.text.tokens import Spoken, normal_form, spoken


@dataclass(frozen=True)
class KeywordFields:
    """How much a token counts by the field it stands in."""

    names: float = 3.0  # name and title
    synonyms: float = 2.0
    terms: float = 1.5
    location: float = 1.0
    columns: float = 1.0
    tags: float = 1.0
    data_products: float = 1.0
    details: float = 1.0  # what only the asset's own type has: domain, report type, language
    descriptions: float = 0.3
    column_descriptions: float = 0.3
    custom_fields: float = 0.3
    values: float = 0.1


_USUAL_FIELD_TOKENS = 40  # about twenty columns, or a paragraph
WORDS_LIMIT = 500  # words of one asset that spelling is compared with
_SHORTEST_WORD, _LONGEST_WORD = 4, 40  # letters of such a word: shorter ones are like too many others
DEFAULT_FIELDS = KeywordFields()


@dataclass(frozen=True)
class KeywordDocument:
    """`terms`: token -> field-weighted frequency; `length`: the same weights over all tokens, for normalisation.

    `words`: unstemmed word -> token, of the words that a misspelt one may have meant.
    """

    terms: Mapping[str, float]
    length: float
    words: Mapping[str, str]


def keyword_document(
    asset: Asset,
    neighbours: Mapping[str, Neighbour],
    own_access: AccessRule,
    rules: NarrativeRules,
    fields: KeywordFields = DEFAULT_FIELDS,
) -> KeywordDocument:
    """The keyword document of an asset; `neighbours` as for `narrative.compose`.

    Per field a token counts weight x sqrt(frequency) / (1 + ln(size / usual size)), the divisor at least 1; fields
    add up. So neither a word that stands in every column nor a table of a thousand columns drowns the rest.

    Custom fields and values give no `words`: much of what stands there is encoded, and some of it sensitive.
    """
    around = surroundings(neighbours, own_access)
    weighted: defaultdict[str, float] = defaultdict(float)
    words: dict[str, str] = {}

    def add(weight: float, texts: Iterable[str | None]) -> list[Spoken]:
        said_here = [item for text in texts if text for item in spoken(text)]
        frequencies = Counter(item.token for item in said_here)
        crowding = 1.0 + math.log(max(1.0, frequencies.total() / _USUAL_FIELD_TOKENS))
        for token, frequency in frequencies.items():
            weighted[token] += weight * math.sqrt(frequency) / crowding
        return said_here

    for weight, texts in _told_fields(asset, around, fields):
        words.update((item.word, item.token) for item in add(weight, texts) if _is_word(item))
    add(fields.custom_fields, map(said, _custom_fields(around.told(asset.custom_fields))))
    add(fields.values, _values(asset, own_access, rules))
    return KeywordDocument(dict(weighted), sum(weighted.values()), dict(islice(words.items(), WORDS_LIMIT)))


def _is_word(item: Spoken) -> bool:
    """Something that people spell: of letters alone, no identifier joined together, no pair of a CJK text."""
    return _SHORTEST_WORD <= len(item.word) <= _LONGEST_WORD and item.word.isalpha() and not item.joined


def whole_names(asset: Asset) -> tuple[str, ...]:
    """The normal forms that a whole query may equal: name, title, and the name behind its location.

    The location may be cut from the outside ("public.orders" for "shop.public.orders"). A name in camel case also
    stands without its humps, as people type it.
    """
    path = (*containers(asset), asset.name)
    qualified = (".".join(path[start:]) for start in range(len(path) - 1))
    return _normal_forms((asset.name, asset.title, *qualified))


def whole_synonyms(asset: Asset) -> tuple[str, ...]:
    """The normal forms of the synonyms: as good a match as a name, but no proof that this very asset is meant."""
    return _normal_forms(asset.synonyms)


def _normal_forms(names: Iterable[str | None]) -> tuple[str, ...]:
    forms = (normal_form(spelling) for name in names if name for spelling in (name, name.casefold()))
    return tuple(dict.fromkeys(form for form in forms if form))


def _told_fields(
    asset: Asset, around: Surroundings, fields: KeywordFields
) -> Iterator[tuple[float, Iterable[str | None]]]:
    """The texts of each field with its weight, most telling first. Access lists and classifications are in none."""
    terms = shown_terms(asset.terms, around)
    columns = asset.columns
    column_terms = shown_terms((term for column in columns for term in column.terms), around)
    column_tags = (path for column in columns for path in column.tags)
    yield fields.names, (cleaned(asset.name) or asset.name, said(asset.title))
    yield fields.synonyms, map(said, asset.synonyms)
    yield fields.terms, (term_name(term, around) for term in terms)
    yield fields.location, map(cleaned, containers(asset))
    yield fields.columns, (*_column_words(columns), *(term_name(term, around) for term in column_terms))
    yield fields.tags, (said(tag) for path in (*asset.tags, *column_tags) for tag in path)
    yield fields.data_products, (around.label_or_name(product) for product in asset.data_products)
    yield fields.details, _details(asset, around)
    yield fields.descriptions, _descriptions(asset, (*terms, *column_terms))
    yield fields.column_descriptions, (said(column.description) for column in columns)


def _details(asset: Asset, around: Surroundings) -> Iterator[str | None]:
    of = asset.attributes
    words = (of.file_type, of.report_type, of.method, of.endpoint, of.job_type, of.language, of.database_name)
    places = (of.domain, of.category, of.subcategory, of.parent_subdomain, of.story_zone)
    yield from map(said, (*words, *places))
    for reference in (of.parent, of.parent_report, of.parent_story, *of.child_stories):
        yield around.label_or_name(reference) if reference else None
    for term in shown_terms(asset.terms, around):
        yield term_place(term)


def _column_words(columns: Iterable[Column]) -> Iterator[str]:
    for column in columns:
        yield cleaned(column.name)
        if normal_form(column.title or "") != normal_form(column.name):
            yield said(column.title)


def _descriptions(asset: Asset, terms: Iterable[TermLink]) -> Iterator[str]:
    own, of = asset.descriptions, asset.attributes
    yield from map(said, (own.business, own.source, own.technical, of.definition, of.description, of.body))
    yield from map(term_definition, terms)


def _custom_fields(fields: Iterable[CustomField]) -> Iterator[str]:
    for item in fields:
        yield item.name
        if item.value is not None and not isinstance(item.value, bool):
            yield str(item.value)


def _values(asset: Asset, own: AccessRule, rules: NarrativeRules) -> Iterator[str]:
    for column in asset.columns:
        if column.top_values and shows_values(column, asset, own.classification, rules.sensitive_names):
            yield from map(said, column.top_values)
