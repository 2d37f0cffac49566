"""Sentences about what people attached to an asset: terms, tags, custom fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from services.catalog.parts import CustomField, TermLink
from services.context.labels import Surroundings
from services.context.prose import opening, said, sentence
from services.text.identifiers import spelled_as_words
from services.text.tokens import normal_form

_LONGEST_DEFINITION = 200
_NUMBER = re.compile(r"[-+~<>=≈]*\s*\d[\d.,:/'\s]*\s*[%‰]?(?:\s*(?:of|out of|/)\s*\d[\d.,]*)?")
_DATE = re.compile(
    r"\d{4}-\d{1,2}(?:-\d{1,2})?|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}/\d{1,2}/\d{1,2}"
    r"|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+\d{1,4}\b"
    r"|\b\d{1,2}\.?\s+(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b",
    re.IGNORECASE,
)
_MEASURED = frozenset(
    ["quality", "dq", "usage", "rating", "ratings", "rows", "row", "score", "count", "queries", "users", "popularity"]
)


def shown_terms(terms: Iterable[TermLink], around: Surroundings) -> list[TermLink]:
    """The terms that may be named: those that are no asset of their own, or one that is visible enough."""
    return [term for term in terms if term.id is None or term.id not in around.hidden_ids]


def term_sentences(terms: Iterable[TermLink], around: Surroundings) -> Iterator[str]:
    """One line per term: its name, its place in the glossary, and in short what it means.

    The rest of a long definition is the term's own to tell: repeated on every asset, it would make them all alike.
    """
    for term in shown_terms(terms, around):
        name = term_name(term, around)
        if not name:
            continue
        place = term_place(term)
        definition = term_definition(term)
        meaning = f", which means {definition}" if definition else ""
        yield sentence(f"It is associated with the business term {name}{f' of {place}' if place else ''}{meaning}")


def term_name(term: TermLink, around: Surroundings) -> str:
    """The term's name as linked, or its newer one where the term itself is known and was renamed."""
    linked, label = said(term.name), around.label(term.id) if term.id else None
    return label if label and normal_form(label) != normal_form(linked) else linked


def term_definition(term: TermLink) -> str:
    """The beginning of the term's definition."""
    return opening(said(term.definition), _LONGEST_DEFINITION)


def term_place(term: TermLink) -> str:
    """The hierarchy above a term, innermost first: "Net revenue, Revenue, Finance"."""
    return ", ".join(filter(None, map(said, (term.subcategory, term.category, term.domain))))


def tag_phrases(tags: Iterable[tuple[str, ...]]) -> list[str]:
    """Each tag with its ancestors: "Revenue (under Finance)"."""
    phrases = []
    for path in tags:
        *above, tag = [text for text in map(said, path) if text] or [""]
        phrases.append(f"{tag} (under {', '.join(reversed(above))})" if above else tag)
    return phrases


def custom_field_sentences(fields: Iterable[CustomField]) -> Iterator[str]:
    """One line per field that says something lasting: "The refresh cadence is daily"."""
    for field in fields:
        name, value = spelled_as_words(said(field.name)), _lasting_value(field)
        if name and value:
            yield sentence(f"The {name} is {value}")


def _lasting_value(field: CustomField) -> str:
    """The value in words; empty for numbers, dates and measurements, which change without a change of meaning."""
    if isinstance(field.value, bool):
        return "yes" if field.value else "no"
    if not isinstance(field.value, str):
        return ""
    value = said(field.value)
    if _NUMBER.fullmatch(value) or _DATE.search(value):
        return ""
    measured = not _MEASURED.isdisjoint(spelled_as_words(field.name).split())
    return "" if measured and any(character.isdigit() for character in value) else value
