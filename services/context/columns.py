"""What a narrative tells of columns, and of the values in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from services.access.rule import Level
from services.catalog.model import Asset
from services.catalog.parts import Column
from services.context.facts import shown_terms, term_name, term_place
from services.context.labels import Surroundings, name_as_words
from services.context.prose import enumeration, said, sentence
from services.context.sensitivity import shows_values
from services.text.tokens import normal_form

_LONGEST_VALUE = 60
_WORD = re.compile(r"[^\W\d_]{2}")


def column_entries(columns: Iterable[Column], around: Surroundings) -> Iterator[str]:
    """One line per column that says more than its name, then one sentence with the names of all others."""
    described = False
    bare: list[str] = []
    for column in columns:
        name, entry = name_as_words(column.name), _entry(column, around)
        if entry == name:
            bare.append(name)
        else:
            described = True
            yield sentence(entry)
    yield from _bare_columns(list(dict.fromkeys(filter(None, bare))), described)


def _bare_columns(names: list[str], described: bool) -> Iterator[str]:
    if len(names) == 1:
        yield f"{'Another' if described else 'The'} column is {names[0]}."
    elif names:
        yield f"{'Other' if described else 'The'} columns are {enumeration(names)}."


def _entry(column: Column, around: Surroundings) -> str:
    """ "cust id (Customer), number of the customer, meaning Customer of Party"."""
    name, title, description = name_as_words(column.name), said(column.title), said(column.description)
    same_title = normal_form(title) == normal_form(name)
    parts = [f"{name} ({title})" if name and title and not same_title else name or title]
    if normal_form(description) not in (normal_form(name), normal_form(title)):
        parts.append(description)
    terms = enumeration(
        _term_phrase(term_name(term, around), term_place(term)) for term in shown_terms(column.terms, around)
    )
    if terms:
        parts.append(f"meaning {terms}")
    told = [part for part in parts if part]
    return ", ".join((*(part.rstrip(".") for part in told[:-1]), *told[-1:]))


def _term_phrase(name: str, place: str) -> str:
    return f"{name} of {place}" if name and place else name


def value_entries(
    asset: Asset, own_level: Level, sensitive_names: frozenset[str], values_per_column: int
) -> Iterator[str]:
    """One line per column whose values may be told and are words: "Country may be France, Peru or Spain"."""
    for column in asset.columns:
        if not column.top_values or not shows_values(column, asset, own_level, sensitive_names):
            continue
        values = list(dict.fromkeys(filter(None, map(_telling_value, column.top_values))))[:values_per_column]
        name = said(column.title) or name_as_words(column.name)
        if values and name:
            # Sorted: a catalog orders values by how often they occur, and that may change every day.
            yield f"Values of {name} are {enumeration(sorted(values))}."


def _telling_value(value: str) -> str:
    """The value when it has words; numbers, dates, codes of one letter and long texts tell nothing here."""
    if len(value) > _LONGEST_VALUE or not _WORD.search(value):
        return ""
    return said(value)
