"""The keyword side of stage one: what a question's words are worth. The sums themselves run in the engine.

Each word of the query is a group of terms: the word itself, discount 1, and its alternatives, each at its discount. The
terms of a group add up before saturation, as one word would. For an asset with the posting weights w:

    group weight  = sum(discount x w over the group's terms)
    keyword score = sum(idf x group weight / (group weight + SATURATION x (1 - LENGTH_SHARE
                                                              + LENGTH_SHARE x length / mean length)))
                    / full_match(sum(idf over the groups of the query's words))

Neighbouring words that the index also has written together are a group of their own on top, at JOINED_SHARE of its idf.

It is absolute: it does not depend on what the other candidates match.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from services.retrieval.expansion import NO_EXPANSIONS, Alternative, Expansions, Why, query_words
from services.text.tokens import normal_form

SATURATION = 0.6
LENGTH_SHARE = 0.5
UNKNOWN_IDF_SHARE = 0.5  # a word that no asset has: it is missing, but it may also be noise
# "order header" beside `order_header`: a hint that the words belong together. As an alternative of either word it would
# make an asset with both words elsewhere worth as much.
JOINED_SHARE = 0.25
# What no asset can be asked to match as a whole: a question of more words than these many unknown ones are worth. Most
# words of a long question frame it, and a table that has the few telling ones has what can be had of it.
LONG_QUERY_WORDS = 3
LONG_QUERY_GROWTH = 1 / 3
# So many postings may be read for proposing candidates; common words above it only count in scoring. 1 ms of CPU for
# 1,000 postings, and the words that a budget of this size leaves out are worth little.
POSTINGS_BUDGET = 6000


@dataclass(frozen=True)
class QueryTerm:
    """A known term that stands for a word of the query, its `group`; a term may stand in several groups.

    `idf` is the group's. A `rare` term proposes candidates, every one of them counts in scoring.
    """

    term: str
    group: int
    idf: float
    discount: float  # what a posting of it is worth of one of the word itself, 0..1
    rare: bool


@dataclass(frozen=True)
class KeywordQuery:
    """A query's known terms, and the sum of idf that counts as a match of all of it."""

    terms: tuple[QueryTerm, ...]
    total_idf: float
    whole_query: str  # in the normal form of whole names


def keyword_query(
    query: str, frequencies: Mapping[str, int], corpus_assets: int, expanded: Expansions = NO_EXPANSIONS
) -> KeywordQuery:
    """What to look for. `frequencies`: in how many of the `corpus_assets` assets each term stands.

    A word is worth what it is worth by itself, however common its alternatives are: "quantity" stays rare where every
    table has a `qty`. One that no asset has is worth what its alternatives are.
    """
    words = query_words(query)
    groups = [_Group.of(word.term, expanded.get(word.term, ()), frequencies) for word in words]
    known = [group for group in groups if group.discounts]
    worth = [idf(group.assets, corpus_assets) for group in known]
    for term in _joined_terms(expanded, frequencies):
        known.append(_Group({term: 1.0}, frequencies[term]))
        worth.append(JOINED_SHARE * idf(frequencies[term], corpus_assets))
    rare = rare_groups([sum(frequencies[term] for term in group.discounts) for group in known])
    terms = tuple(
        QueryTerm(term, number, worth[number], discount, number in rare)
        for number, group in enumerate(known)
        for term, discount in group.discounts.items()
    )
    unknown = sum(not group.discounts for group in groups)
    total = sum(worth[: len(words) - unknown]) + unknown * UNKNOWN_IDF_SHARE * idf(0, corpus_assets)
    return KeywordQuery(terms, full_match(total, corpus_assets), normal_form(query))


def full_match(total_idf: float, corpus_assets: int) -> float:
    """The sum of idf that counts as a full match of a query whose words are worth `total_idf` together.

    All of it up to LONG_QUERY_WORDS words as rare as can be; beyond, it grows by the power LONG_QUERY_GROWTH. Without
    that the keyword scores of long questions are so small that vector similarity alone decides: bench, 314 questions of
    27 words on average, recall@5 58.0 % instead of 62.0 %.
    """
    usual = LONG_QUERY_WORDS * idf(0, corpus_assets)
    return total_idf if total_idf <= usual else usual * (total_idf / usual) ** LONG_QUERY_GROWTH


@dataclass(frozen=True)
class _Group:
    """The known terms that stand for one word, each with its discount, and in how many assets that word counts."""

    discounts: Mapping[str, float]
    assets: int

    @staticmethod
    def of(term: str, alternatives: Sequence[Alternative], frequencies: Mapping[str, int]) -> _Group:
        discounts = {term: 1.0} if frequencies.get(term) else {}
        assets = 0
        for item in alternatives:
            new = [other for other in item.terms if frequencies.get(other) and other not in discounts]
            # Where no asset has the word by itself, the name in which it is written together is all there is of it.
            if new and (item.why is not Why.JOINED or not frequencies.get(term)):
                discounts.update(dict.fromkeys(new, item.discount))
                # Several terms that say one thing stand together in as many assets as the rarest of them at most.
                assets += min(frequencies[other] for other in new)
        return _Group(discounts, frequencies.get(term) or assets)


def _joined_terms(expanded: Expansions, frequencies: Mapping[str, int]) -> list[str]:
    """The terms in which neighbouring words of the query stand written together, each once."""
    joined = (item for items in expanded.values() for item in items if item.why is Why.JOINED)
    return list(dict.fromkeys(term for item in joined for term in item.terms if frequencies.get(term)))


def rare_groups(postings: Sequence[int]) -> frozenset[int]:
    """The groups whose terms propose candidates, from how many postings each group has.

    The rarest first, equals in the given order, as long as all together stay within POSTINGS_BUDGET; at least one.
    """
    order = sorted(range(len(postings)), key=lambda group: postings[group])
    read = list(accumulate(postings[group] for group in order))
    return frozenset(group for place, group in enumerate(order) if place == 0 or read[place] <= POSTINGS_BUDGET)


def idf(assets: int, corpus_assets: int) -> float:
    """Inverse document frequency as in BM25: ln(1 + (N - n + 0.5) / (n + 0.5)), never negative."""
    return math.log1p((max(corpus_assets, assets) - assets + 0.5) / (assets + 0.5))


def keyword_score(matched_idf: float, total_idf: float, *, whole: bool) -> float:
    """0..1; 1 when the whole query is one of the asset's names, titles or synonyms."""
    if whole:
        return 1.0
    return min(1.0, max(0.0, matched_idf / total_idf)) if total_idf > 0 else 0.0
