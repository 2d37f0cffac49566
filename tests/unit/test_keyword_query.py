"""What the words of a question are worth."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.retrieval.expansion import WORDS_LIMIT, Why, alternative, query_words
from services.retrieval.keyword import (
    JOINED_SHARE,
    LONG_QUERY_GROWTH,
    LONG_QUERY_WORDS,
    POSTINGS_BUDGET,
    UNKNOWN_IDF_SHARE,
    full_match,
    idf,
    keyword_query,
    keyword_score,
    rare_groups,
)


def test_a_word_is_worth_the_more_the_fewer_assets_have_it() -> None:
    assert idf(1, 1000) == pytest.approx(math.log(1 + 999.5 / 1.5))
    assert idf(1, 1000) > idf(10, 1000) > idf(900, 1000) > 0
    assert idf(1000, 1000) > 0
    # More assets have the word than the corpus counts: never negative, whatever the statistics say.
    assert idf(2000, 1000) >= 0


def test_known_words_carry_their_worth_and_unknown_ones_half_of_the_rarest() -> None:
    query = keyword_query("customer revenue xyzzy", {"custom": 10, "revenu": 20}, 100)
    assert {term.term: term.idf for term in query.terms} == {"custom": idf(10, 100), "revenu": idf(20, 100)}
    assert query.total_idf == pytest.approx(idf(10, 100) + idf(20, 100) + UNKNOWN_IDF_SHARE * idf(0, 100))
    assert query.whole_query == "customer revenue xyzzy"


def test_a_long_question_is_fully_matched_by_less_than_all_of_it() -> None:
    usual = LONG_QUERY_WORDS * idf(0, 1000)
    assert full_match(0.0, 1000) == 0.0
    assert full_match(usual, 1000) == usual
    assert full_match(8 * usual, 1000) == pytest.approx(usual * 8**LONG_QUERY_GROWTH)
    assert usual < full_match(1.01 * usual, 1000) < full_match(2 * usual, 1000) < 2 * usual


def test_repeated_words_count_once_and_function_words_not_at_all() -> None:
    query = keyword_query("the customer of the customers", {"custom": 10}, 100)
    assert [term.term for term in query.terms] == ["custom"]
    assert query.total_idf == idf(10, 100)


def test_the_rarest_words_propose_as_long_as_their_postings_are_few() -> None:
    frequencies = {"tabl": POSTINGS_BUDGET, "custom": 5, "order": POSTINGS_BUDGET - 5}
    query = keyword_query("customer table order", frequencies, 10_000)
    assert {term.term: term.rare for term in query.terms} == {"custom": True, "order": True, "tabl": False}


def test_when_all_words_are_common_the_rarest_proposes() -> None:
    frequencies = {"tabl": 3 * POSTINGS_BUDGET, "order": 2 * POSTINGS_BUDGET}
    query = keyword_query("table order", frequencies, 100_000)
    assert {term.term: term.rare for term in query.terms} == {"tabl": False, "order": True}
    assert rare_groups([]) == frozenset()
    assert rare_groups([3 * POSTINGS_BUDGET, 3 * POSTINGS_BUDGET]) == {0}


@pytest.mark.parametrize("query", ["", "   ", "?!", "\x00\ud800"])
def test_a_question_without_words_is_worth_nothing(query: str) -> None:
    asked = keyword_query(query, {}, 100)
    assert (asked.terms, asked.total_idf, asked.whole_query) == ((), 0.0, "")
    assert keyword_score(0.0, asked.total_idf, whole=False) == 0.0


def test_a_very_long_question_is_represented_by_its_first_words() -> None:
    words = query_words(" ".join(f"word{letter}{other}" for letter in "abcdefghij" for other in "abcdefghij"))
    assert len(words) == WORDS_LIMIT
    assert words[0] == query_words("wordaa")[0]


def test_a_word_keeps_its_worth_beside_its_alternatives() -> None:
    short = alternative("quantity", "qty", ("qti",), Why.ABBREVIATION)
    query = keyword_query("quantity", {"quantiti": 10, "qti": 900}, 1000, {"quantiti": (short,)})
    assert [(term.term, term.idf, term.discount) for term in query.terms] == [
        ("quantiti", idf(10, 1000), 1.0),
        ("qti", idf(10, 1000), short.discount),
    ]
    unknown = keyword_query("quantity", {"qti": 900}, 1000, {"quantiti": (short,)})
    assert [(term.term, term.idf) for term in unknown.terms] == [("qti", idf(900, 1000))]
    assert unknown.total_idf == idf(900, 1000)


def test_words_that_also_stand_written_together_are_a_hint_on_top() -> None:
    plain = keyword_query("order header", {"order": 10, "header": 20}, 100)
    written = alternative("order header", "orderheader", ("orderhead",), Why.JOINED)
    hinted = {"order": (written,), "header": (written,)}
    query = keyword_query("order header", {"order": 10, "header": 20, "orderhead": 2}, 100, hinted)
    assert query.total_idf == plain.total_idf
    assert query.terms[:-1] == plain.terms
    (_, _, hint) = query.terms
    assert (hint.term, hint.group, hint.discount) == ("orderhead", 2, 1.0)
    assert hint.idf == JOINED_SHARE * idf(2, 100)
    assert keyword_query("order header", {"order": 10, "header": 20}, 100, hinted) == plain


def test_an_empty_corpus_knows_no_word() -> None:
    query = keyword_query("customer", {}, 0)
    assert query.terms == ()
    assert query.total_idf > 0


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.booleans())
def test_a_keyword_score_lies_between_none_and_all(matched: float, total: float, named: bool) -> None:
    score = keyword_score(matched, total, whole=named)
    assert 0 <= score <= 1
    if named:
        assert score == 1
