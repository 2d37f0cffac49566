"""What else the words of a query may stand for: abbreviations, synonyms, words written together. Pure.

An alternative belongs to a word of the query and is worth less than the word itself (`DISCOUNTS`). Where several words
stand for one word (the long form of an abbreviation, say), each is worth its part of the discount, so that an asset
with all of them has about what one with the word itself has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

from services.text.tokens import code_words, normal_form, spoken

_CONSONANT_Y = re.compile(r"[^aeiouy]y$")
_LONG_PLURAL = re.compile(r"(?:s|x|z|ch|sh)es$")  # "addresses"; those of which the e belongs to the word are harmless
WORDS_LIMIT = 64  # distinct words of a query; a longer text is represented by its first ones
RUN_WORDS_LIMIT = 3
ALTERNATIVES_LIMIT = 12  # of one word


class Why(StrEnum):
    """How an alternative came about."""

    ABBREVIATION = "abbreviation"
    SYNONYM = "synonym"
    SPELLING = "spelling"
    PREFIX = "prefix"
    JOINED = "joined"


# What a posting of an alternative is worth of one of the word itself. Abbreviations are ambiguous: at 0.7 one table
# of 1,034 public questions falls below the tenth place, at 0.8 two, and first places gain.
DISCOUNTS: Mapping[Why, float] = MappingProxyType(
    {Why.ABBREVIATION: 0.7, Why.SYNONYM: 0.8, Why.SPELLING: 0.7, Why.PREFIX: 0.5, Why.JOINED: 0.8}
)


@dataclass(frozen=True)
class QueryWord:
    """A distinct word of a query, folded, with its term in the index.

    `may_be_misspelt` is False of what stands in capitals or has a digit: who writes a code means it.
    """

    word: str
    term: str
    may_be_misspelt: bool


@dataclass(frozen=True)
class Run:
    """Neighbouring words of a query, and the terms of those that count."""

    words: tuple[str, ...]
    terms: tuple[str, ...]

    @property
    def spelled(self) -> str:
        return " ".join(self.words)


@dataclass(frozen=True)
class Alternative:
    """What else may stand for the words `instead_of`: `terms`, each at `discount`; `spelled` is how it is shown."""

    instead_of: str
    spelled: str
    terms: tuple[str, ...]
    discount: float
    why: Why


Expansions = Mapping[str, Sequence[Alternative]]  # by the term of the word that they stand for
NO_EXPANSIONS: Expansions = MappingProxyType({})


def alternative(instead_of: str, spelled: str, terms: tuple[str, ...], why: Why) -> Alternative:
    """At the discount of its kind, shared by its terms."""
    return Alternative(instead_of, spelled, terms, DISCOUNTS[why] / len(terms), why)


def query_words(query: str) -> tuple[QueryWord, ...]:
    """The distinct words of a query in order of appearance, each term once; at most WORDS_LIMIT."""
    codes = code_words(query)
    words: dict[str, QueryWord] = {}
    for item in spoken(query):
        plain = item.word.isalpha() and item.word not in codes and not item.joined
        words.setdefault(item.token, QueryWord(item.word, item.token, plain))
        if len(words) == WORDS_LIMIT:
            break
    return tuple(words.values())


def query_runs(query: str, words: Sequence[QueryWord]) -> tuple[Run, ...]:
    """The runs of one to three words of a query that begin and end with a word that counts, shorter ones first."""
    known = {word.term for word in words}
    spelled = normal_form(query).split()[: 2 * WORDS_LIMIT]
    terms = [tuple(term for term in plain_terms(word) if term in known) for word in spelled]
    return tuple(
        Run(tuple(spelled[start:end]), tuple(dict.fromkeys(term for part in terms[start:end] for term in part)))
        for length in range(1, RUN_WORDS_LIMIT + 1)
        for start in range(len(spelled) - length + 1)
        if terms[start] and terms[(end := start + length) - 1]
    )


def plain_terms(name: str) -> tuple[str, ...]:
    """The distinct terms of a name's words, without the joined form of identifiers."""
    return tuple(dict.fromkeys(item.token for item in spoken(name) if not item.joined))


def phrases(runs: Iterable[Run]) -> tuple[str, ...]:
    """The normal forms by which a glossary is asked for these runs: each as it stands, and in its other number."""
    return tuple(dict.fromkeys(form for run in runs for form in _numbers(run.spelled)))


def _numbers(spelled: str) -> Iterator[str]:
    """A name, and what it may be in the singular or the plural."""
    yield spelled
    if not (spelled.isascii() and spelled[-1].isalpha()):
        return
    if _LONG_PLURAL.search(spelled):
        yield spelled[:-2]
    if spelled.endswith("ies"):
        yield f"{spelled[:-3]}y"
    if spelled.endswith("s") and not spelled.endswith("ss"):
        yield spelled[:-1]
    elif _CONSONANT_Y.search(spelled):
        yield f"{spelled[:-1]}ies"
    else:
        yield f"{spelled}s"


def other_names(things: Iterable[Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """By each name the other names of the same thing, all in normal form; `things` are given by their names."""
    found: dict[str, dict[str, None]] = {}
    for names in things:
        forms = dict.fromkeys(form for name in names if (form := normal_form(name)))
        for form in forms:
            found.setdefault(form, {}).update((other, None) for other in forms if other != form)
    return {form: tuple(others) for form, others in found.items() if others}


def renamed(runs: Iterable[Run], names: Mapping[str, Sequence[str]], why: Why) -> Iterator[Alternative]:
    """The alternatives that other names give: of abbreviations, or of a glossary."""
    for run in {run.spelled: run for run in runs}.values():
        for name in dict.fromkeys(name for form in _numbers(run.spelled) for name in names.get(form, ())):
            terms = plain_terms(name)
            if terms:
                yield alternative(run.spelled, name, terms, why)


def written_together(runs: Iterable[Run]) -> Iterator[Alternative]:
    """Neighbouring words as one: "order header" also stands in `OrderHeader` and `orderheader`."""
    for run in runs:
        if len(run.words) > 1:
            for item in spoken("_".join(run.words)):
                if item.joined:
                    yield alternative(run.spelled, item.word, (item.token,), Why.JOINED)


def expansions(
    words: Sequence[QueryWord], runs: Iterable[Run], alternatives: Iterable[Alternative], visible: Iterable[str]
) -> dict[str, tuple[Alternative, ...]]:
    """The alternatives of each word of the query, in the order of the words; those of the highest discount first.

    An alternative counts when the caller can see each of its terms. What is a word of the query itself is no
    alternative of another one: nothing counts twice. All words that a run replaces have its alternatives.
    """
    seen, own = set(visible), {word.term for word in words}
    of_run = {run.spelled: run.terms for run in runs}
    found: dict[str, list[Alternative]] = {}
    for item in alternatives:
        new = tuple(term for term in item.terms if term not in own)
        if new and seen.issuperset(item.terms):
            for term in of_run[item.instead_of]:
                found.setdefault(term, []).append(replace(item, terms=new))
    return {
        term: tuple(sorted(dict.fromkeys(found[term]), key=lambda item: -item.discount)[:ALTERNATIVES_LIMIT])
        for term in (word.term for word in words)
        if term in found
    }
