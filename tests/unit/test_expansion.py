"""What the words of a query may stand for: abbreviations, other names, words written together, slips of spelling."""

from __future__ import annotations

import pytest

from services.errors import RulesError
from services.retrieval.abbreviations import load_abbreviations, parse_abbreviations
from services.retrieval.expansion import (
    ALTERNATIVES_LIMIT,
    DISCOUNTS,
    WORDS_LIMIT,
    Alternative,
    Why,
    alternative,
    expansions,
    other_names,
    phrases,
    query_runs,
    query_words,
    renamed,
    written_together,
)
from services.retrieval.spelling import COMPLETIONS_LIMIT, Vocabulary, is_settled, meant
from services.text.tokens import tokens


def vocabulary(*words: str) -> Vocabulary:
    known = Vocabulary()
    known.add((word, tokens(word)[0]) for word in words)
    return known


def meanings(word: str, known: Vocabulary, hidden: frozenset[str] = frozenset()) -> dict[str, Why]:
    proposals = known.proposals(word)
    return {item.spelled: item.why for item in meant(word, proposals, {p.word for p in proposals} - hidden)}


def expanded(query: str, why: Why, *things: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """By the term of a query's word, the discounts of what stands for it, every term being visible."""
    words = query_words(query)
    runs = query_runs(query, words)
    given = list(written_together(runs) if why is Why.JOINED else renamed(runs, other_names(things), why))
    found = expansions(words, runs, given, {term for item in given for term in item.terms})
    return {term: {other: item.discount for item in items for other in item.terms} for term, items in found.items()}


@pytest.mark.parametrize(
    ("query", "term", "others"),
    [
        ("cust", "cust", {"custom"}),
        ("customers", "custom", {"cust", "cst"}),
        ("quantities", "quantiti", {"qti", "qnti"}),
        ("curr", "curr", {"currenc", "current"}),
        ("year to date", "year", {"ytd"}),
        ("year to date", "date", {"ytd"}),
        ("ytd", "ytd", {"year", "date"}),
    ],
)
def test_shipped_abbreviations_stand_for_long_forms_and_the_other_way_round(
    query: str, term: str, others: set[str]
) -> None:
    words = query_words(query)
    runs = query_runs(query, words)
    given = list(renamed(runs, load_abbreviations().other_names, Why.ABBREVIATION))
    found = expansions(words, runs, given, {part for item in given for part in item.terms})
    assert {part for item in found[term] for part in item.terms} >= others


def test_a_word_with_the_same_stem_is_not_abbreviated_alike() -> None:
    runs = query_runs("departing", query_words("departing"))
    assert list(renamed(runs, load_abbreviations().other_names, Why.ABBREVIATION)) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("abbreviations:\n  cust: [customer]\n  qty: quantity\n", 3),
        ("abbreviations:\n  no: [number]\n", 1),
        ("abbreviations:\n  cust id: [customer id]\n", 2),
        ("abbreviations:\n  cust:\n    - customer\n    - one two three four\n", 4),
        ("abbreviations:\n  cust: [Cust]\n", 2),
        ("abbreviations:\n  cust: []\n", 2),
        ("abbreviations:\n  cust: [customer]\n  cust: [custom]\n", 3),
        ("abbreviations:\n  cust: [customer]\nsynonyms: {}\n", 3),
        ("abbreviations: [cust]\n", 1),
        ("", 1),
    ],
)
def test_a_wrong_file_of_abbreviations_is_refused_by_line(text: str, line: int) -> None:
    with pytest.raises(RulesError, match=f"^x.yaml, line {line}: "):
        parse_abbreviations(text, "x.yaml")


def test_each_word_of_a_run_has_the_one_word_that_says_it() -> None:
    found = expanded("annual recurring revenue by region", Why.SYNONYM, ("Annual Recurring Revenue", "ARR"))
    assert found == {term: {"arr": DISCOUNTS[Why.SYNONYM]} for term in ("annual", "recur", "revenu")}


def test_several_words_that_say_one_share_its_discount() -> None:
    found = expanded("ARR by region", Why.SYNONYM, ("ARR", "Annual Recurring Revenue"))
    assert found == {"arr": dict.fromkeys(("annual", "recur", "revenu"), pytest.approx(0.8 / 3))}


def test_what_is_a_word_of_the_query_is_no_alternative_of_another() -> None:
    assert expanded("customer client", Why.SYNONYM, ("customer", "client")) == {}
    found = expanded("sales order", Why.SYNONYM, ("sales order", "customer order"))
    assert found == {"sale": {"custom": 0.4}, "order": {"custom": 0.4}}


def test_an_alternative_counts_only_when_each_of_its_terms_is_visible() -> None:
    words = query_words("arr")
    runs = query_runs("arr", words)
    given = [alternative("arr", "annual revenue", ("annual", "revenu"), Why.SYNONYM)]
    assert expansions(words, runs, given, {"annual"}) == {}
    assert set(expansions(words, runs, given, {"annual", "revenu"})) == {"arr"}


def test_the_alternatives_of_a_word_are_the_dearest_and_limited() -> None:
    words = query_words("thing")
    runs = query_runs("thing", words)
    given = [Alternative("thing", f"a{number}", (f"a{number}",), number / 100, Why.SYNONYM) for number in range(30)]
    found = expansions(words, runs, given, {item.spelled for item in given})["thing"]
    assert [item.discount for item in found] == [number / 100 for number in range(29, 29 - ALTERNATIVES_LIMIT, -1)]


def test_a_glossary_is_asked_for_runs_in_both_numbers_that_begin_and_end_with_a_word_that_counts() -> None:
    query = "the cost of goods by city"
    asked = set(phrases(query_runs(query, query_words(query))))
    assert asked >= {"cost", "costs", "cost of goods", "cost of good", "goods by city", "goods by cities", "cities"}
    assert not {"the cost", "of goods", "of", "by city"} & asked


def test_neighbouring_words_also_stand_for_the_name_that_they_make() -> None:
    found = expanded("order header", Why.JOINED)
    assert found == {term: {"orderhead": DISCOUNTS[Why.JOINED]} for term in ("order", "header")}
    assert set(expanded("ISO 4217 codes", Why.JOINED)["4217"]) >= {"iso4217"}
    assert expanded("it all", Why.JOINED) == {term: {"ital": 0.8} for term in ("it", "all")}
    assert expanded("who indicators", Why.JOINED) == {}
    assert expanded("order_header", Why.JOINED) == {}
    assert expanded("顧客 注文", Why.JOINED) == {}


def test_words_are_distinct_by_term_and_limited() -> None:
    words = query_words("Orders of the order, NPI and iso4217 or v2")
    assert [(word.word, word.may_be_misspelt) for word in words] == [
        ("orders", True),
        ("npi", False),
        ("iso", False),
        ("4217", False),
        ("iso4217", False),
        ("v2", False),
    ]
    assert len(query_words(" ".join(f"w{number}" for number in range(300)))) == WORDS_LIMIT
    assert query_runs(" ?! ", query_words(" ?! ")) == ()


@pytest.mark.parametrize(
    ("typed", "intended"),
    [
        ("custmer", "customer"),
        ("custoemr", "customer"),
        ("ucstomer", "customer"),
        ("revenu", "revenue"),
        ("inventroy", "inventory"),
        ("invemtroy", "inventory"),
        ("umsatzubersich", "umsatzubersicht"),
        ("заказн", "заказы"),
    ],
)
def test_slips_are_mended(typed: str, intended: str) -> None:
    assert intended in meanings(typed, vocabulary(intended, "unrelated"))


@pytest.mark.parametrize(
    ("typed", "known"),
    [
        ("bank", "rank"),  # the first letter is right, or swapped with the second
        ("ordre", "other"),  # two edits need eight letters
        ("inventory", "infantry"),
        ("cat", "cart"),
    ],
)
def test_what_is_too_far_is_not_meant(typed: str, known: str) -> None:
    assert Why.SPELLING not in meanings(typed, vocabulary(known)).values()


def test_of_the_words_that_can_be_seen_the_closest_are_meant_and_all_of_them() -> None:
    known = vocabulary("countries", "counties", "contrives")
    assert meanings("countires", known) == {"countries": Why.SPELLING, "counties": Why.SPELLING}
    assert meanings("contries", known) == {"countries": Why.SPELLING, "contrives": Why.SPELLING}
    seen = meanings("contries", known, hidden=frozenset({"countries", "contrives"}))
    assert seen == {"counties": Why.SPELLING}


def test_the_beginning_of_a_word_stands_for_the_shortest_that_begin_so() -> None:
    known = vocabulary("shipment", "shipments", "shipper", "shop")
    assert meanings("shipm", known) == {"shipment": Why.PREFIX, "shipments": Why.PREFIX}
    assert meanings("sh", known) == {}
    many = vocabulary(*(f"ship{'a' * number}" for number in range(1, 20)))
    assert list(meanings("shi", many)) == [f"ship{'a' * number}" for number in range(1, COMPLETIONS_LIMIT + 1)]


def test_a_vocabulary_grows_and_the_newest_term_of_a_word_holds() -> None:
    known = vocabulary("customer")
    known.add([("customer", "customer"), ("custom", "custom")])
    assert {(item.word, item.term) for item in known.proposals("custome")} >= {("customer", "customer")}
    assert len(known.proposals("customr")) == 2


def test_what_is_meant_is_settled_once_enough_completions_are_seen() -> None:
    proposals = vocabulary("shop", *(f"shi{'a' * number}" for number in range(1, 400))).proposals("shi")
    words = [item.word for item in proposals]
    last = set(words[-COMPLETIONS_LIMIT:])
    assert len(words) == 399
    assert [item.spelled for item in meant("shi", proposals, last)] == words[-COMPLETIONS_LIMIT:]
    assert is_settled(proposals, last)
    assert not is_settled(proposals[:-1], last)
    assert not is_settled(proposals, set())
    # A slip of spelling is no completion: the closest of all that can be seen are meant.
    slips = vocabulary(*(f"customer{letter}" for letter in "abcdefgh")).proposals("customrea")
    assert not is_settled(slips, {item.word for item in slips})
