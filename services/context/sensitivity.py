"""Which columns' values must stay out of every text about an asset."""

from __future__ import annotations

import re
from collections.abc import Iterable

from services.access.rule import Level, parse_level
from services.catalog.model import Asset
from services.catalog.parts import Column, TermLink
from services.text.tokens import normal_form

_PATH_MARK = re.compile(r"[./>:|\\]")


def shows_values(column: Column, asset: Asset, own_level: Level, sensitive_names: frozenset[str]) -> bool:
    """True when sample and top values of the column may appear in texts about the asset.

    False when the column is classified above the asset, or when it, or the asset as a whole, bears a sensitive tag or
    term or one below such a tag or term. An unknown classification word is the highest level.
    """
    if parse_level(column.classification, default=own_level) > own_level:
        return False
    words = [*_hierarchy_words(column.tags, column.terms), *_hierarchy_words(asset.tags, asset.terms)]
    sensitive = {normal_form(name) for name in sensitive_names}
    return sensitive.isdisjoint(form for word in (*words, column.classification or "") for form in _forms(word))


def _hierarchy_words(tags: Iterable[Iterable[str]], terms: Iterable[TermLink]) -> Iterable[str]:
    for path in tags:
        yield from path
    for term in terms:
        yield from (word for word in (term.name, term.domain, term.category, term.subcategory) if word)


def _forms(word: str) -> Iterable[str]:
    """A word and, should it be a path written as one ("PII.Email"), each of its parts."""
    yield normal_form(word)
    yield from map(normal_form, _PATH_MARK.split(word))
