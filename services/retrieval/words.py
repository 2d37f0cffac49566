"""The words of a query against the words of the catalog: what is asked of an engine, and what comes of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from services.retrieval.abbreviations import Abbreviations
from services.retrieval.expansion import (
    Alternative,
    QueryWord,
    Run,
    Why,
    expansions,
    other_names,
    phrases,
    query_runs,
    query_words,
    renamed,
    written_together,
)
from services.retrieval.keyword import KeywordQuery, keyword_query
from services.retrieval.model import Understood
from services.retrieval.spelling import Proposal, Vocabulary, is_settled, meant

MENDED_WORDS_LIMIT = 8  # a query with more unknown words is not one with slips
PROPOSALS_AT_ONCE = 300  # proposed words of one word whose visibility one statement asks for

WordFacts = Mapping[str, "TermFacts"]


@dataclass(frozen=True)
class TermFacts:
    """In how many assets a term stands, of all assets, and whether the caller may see one of them."""

    assets: int
    visible: bool


@dataclass(frozen=True)
class LookUp:
    """`terms`: facts of those that any asset has. `glossary`: the names of each glossary term that was found."""

    terms: WordFacts
    glossary: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Reading:
    """What to look for, and how words were understood that stand for more than themselves."""

    keywords: KeywordQuery
    understood: tuple[Understood, ...] = ()


class WordStore(Protocol):
    """Reads of words. What is said of assets is said of those that the access lists let the caller see."""

    def look_up(self, terms: Sequence[str], phrases: Sequence[str], acl_ids: Sequence[int]) -> LookUp:
        """The facts of terms, and the glossary terms that one of the phrases, in normal form, is a name of."""
        ...

    def vocabulary(self, after_seq: int) -> Sequence[tuple[int, str, str]]:
        """(seq, unstemmed word, its term) of the next words added after `after_seq`, of whichever assets, by seq.

        Empty when there are no more.
        """
        ...

    def visible_words(self, words: Iterable[tuple[str, str]], acl_ids: Sequence[int]) -> frozenset[str]:
        """Those of the unstemmed words, given with their terms, that stand in an asset that the caller may see."""
        ...


class QueryReader:
    """Understands queries under a caller's access. Keeps the vocabulary in memory from the first unknown word on.

    `is_common` tells words of the language from slips: who asks for the "least" does not mean the last.
    """

    def __init__(self, store: WordStore, abbreviations: Abbreviations, is_common: Callable[[str], bool]) -> None:
        self._store = store
        self._abbreviations = abbreviations
        self._is_common = is_common
        self._lock = threading.Lock()
        self._vocabulary = Vocabulary()
        self._seq = 0

    def read(self, query: str, corpus_assets: int, acl_ids: Sequence[int]) -> Reading:
        """The query's words, and what of the catalog they may stand for; nothing of it rests on a hidden asset."""
        words = query_words(query)
        if not words:
            return Reading(keyword_query(query, {}, corpus_assets))
        runs = query_runs(query, words)
        alternatives = [
            *renamed(runs, self._abbreviations.other_names, Why.ABBREVIATION),
            *written_together(runs),
        ]
        found = self._store.look_up(_terms(words, alternatives), phrases(runs), acl_ids)
        synonyms = list(renamed(runs, other_names(found.glossary), Why.SYNONYM))
        facts = {**found.terms, **self._facts(synonyms, found.terms, acl_ids)}
        expanded = expansions(words, runs, [*alternatives, *synonyms], _visible(facts))
        unknown = [word for word in words if word.term not in expanded and not _is_visible(word.term, facts)]
        corrections = self._corrections([word.word for word in unknown if word.may_be_misspelt], len(words), acl_ids)
        if corrections:
            facts |= self._facts(corrections, facts, acl_ids)
            singles = [Run((word.word,), (word.term,)) for word in unknown]
            expanded |= expansions(words, singles, corrections, _visible(facts))
        # A word that only hidden assets have is worth what it is worth to everybody; one that stands for others is not.
        frequencies = {term: item.assets for term, item in facts.items() if item.visible or term not in expanded}
        return Reading(keyword_query(query, frequencies, corpus_assets, expanded), understood(expanded))

    def _facts(self, alternatives: Iterable[Alternative], known: WordFacts, acl_ids: Sequence[int]) -> WordFacts:
        missing = sorted({term for item in alternatives for term in item.terms} - known.keys())
        return self._store.look_up(missing, (), acl_ids).terms if missing else {}

    def _corrections(self, unknown: Sequence[str], query_length: int, acl_ids: Sequence[int]) -> list[Alternative]:
        slips = {word for word in unknown if not self._is_common(word)}
        # A query of one word may be one that is still being typed, whatever it means so far.
        doubtful = [word for word in unknown if word in slips or query_length == 1][:MENDED_WORDS_LIMIT]
        if not doubtful:
            return []
        with self._lock:
            while added := self._store.vocabulary(self._seq):
                self._vocabulary.add((word, term) for _, word, term in added)
                self._seq = added[-1][0]
            proposed = {word: self._vocabulary.proposals(word, slips=word in slips) for word in doubtful}
        visible = self._visible_proposals(proposed.values(), acl_ids)
        return [item for word, proposals in proposed.items() for item in meant(word, proposals, visible)]

    def _visible_proposals(self, proposed: Collection[Sequence[Proposal]], acl_ids: Sequence[int]) -> set[str]:
        """Those of the proposed words that the caller can see, as far as they matter: the first ones of each word."""
        visible: set[str] = set()
        for start in range(0, max(map(len, proposed)), PROPOSALS_AT_ONCE):
            open_ones = [items for items in proposed if not is_settled(items[:start], visible)]
            asked = {item.word: item.term for items in open_ones for item in items[start : start + PROPOSALS_AT_ONCE]}
            if asked:
                visible |= self._store.visible_words(asked.items(), acl_ids)
        return visible


def understood(expanded: Mapping[str, Sequence[Alternative]]) -> tuple[Understood, ...]:
    """One entry per run of words and reason. That words were also looked for written together says nothing new."""
    said: dict[tuple[str, Why], dict[str, None]] = {}
    for items in expanded.values():
        for item in items:
            if item.why is not Why.JOINED:
                said.setdefault((item.instead_of, item.why), {})[item.spelled] = None
    return tuple(Understood(word=word, alternatives=tuple(names), why=why) for (word, why), names in said.items())


def _terms(words: Iterable[QueryWord], alternatives: Iterable[Alternative]) -> list[str]:
    return sorted({*(word.term for word in words), *(term for item in alternatives for term in item.terms)})


def _visible(facts: WordFacts) -> list[str]:
    return [term for term, item in facts.items() if item.visible]


def _is_visible(term: str, facts: WordFacts) -> bool:
    return term in facts and facts[term].visible
