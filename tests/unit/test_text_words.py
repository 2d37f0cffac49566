"""services.text.identifiers and services.text.tokens: names as words, texts as tokens."""

from __future__ import annotations

import pytest

from services.text.identifiers import spelled_as_words, split_identifier
from services.text.tokens import code_words, normal_form, query_tokens, spoken, tokens


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cust_ord_hdr_v2", "cust ord hdr v2"),
        ("fctBookingEUR", "fct booking eur"),
        ("HTMLParser", "html parser"),
        ("shop.public.order-items", "shop public order items"),
        ("userIDsList", "user ids list"),
        ("order2cash", "order 2 cash"),
        ("address1", "address 1"),
        ("iso4217", "iso 4217"),
        ("V2Orders", "v2 orders"),
        ("b2b_q3_FY23", "b2b q3 fy23"),
        ("__init__", "init"),
        ("ÄrztlicheDaten_Übersicht", "ärztliche daten übersicht"),
        ("cafe\u0301Name", "café name"),
        ("顧客ID表", "顧客 id 表"),
        ("हिन्दी_नाम", "हिन्दी नाम"),
        ("---", ""),
    ],
)
def test_identifiers_split_into_words(name: str, words: str) -> None:
    assert spelled_as_words(name) == words
    assert split_identifier(name) == tuple(words.split())


def test_a_long_name_without_breaks_is_split_in_linear_time() -> None:
    assert len(split_identifier("Ab1" * 100_000)) == 100_000


def test_identifiers_give_their_words_and_the_whole() -> None:
    assert tokens("cust_ord_hdr") == ["cust", "ord", "hdr", "custordhdr"]


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("it_all", "itAll"),
        ("it_all", "it all"),
        ("ISO 4217 codes", "iso4217"),
        ("NPI", "npi"),
        ("schema v2", "V2"),
        ("PostgreSQL tables", "postgresql"),
        ("e-mail", "email"),
        ("Customers' orders", "customer order"),
        ("invoicing", "invoices"),
        ("STRASSE", "straße"),
        ("ﬁnance", "finance"),
        ("顧客注文", "顧客"),
        ("userIDs", "user id"),
        ("Umsatzübersicht", "umsatzubersicht"),
        ("umsatz_ubersicht", "Übersicht"),
        ("Café", "CAFE"),
        ("naïve", "naive"),  # both are stemmed once they are the same
        ("Łódź", "lodz"),
        ("Ørsted", "orsted"),
        ("Straßen", "strassen"),
        ("cafe\u0301", "café"),
    ],
)
def test_another_spelling_finds_it(written: str, asked: str) -> None:
    assert set(query_tokens(asked)) & set(tokens(written)), (query_tokens(asked), tokens(written))


def test_other_scripts_keep_their_marks_and_are_not_stemmed() -> None:
    assert tokens("Заказы йод") == ["заказы", "йод"]
    assert tokens("ガレージ") == ["ガレ", "レー", "ージ"]
    assert tokens("हिन्दी") == ["हिन्दी"]


def test_words_come_with_their_tokens_and_identifiers_also_joined() -> None:
    assert spoken("Cust_Orders' of") == [("cust", "cust", False), ("orders", "order", False),
                                         ("custorders", "custord", True)]  # fmt: skip


def test_codes_are_what_stands_in_capitals_or_has_a_digit() -> None:
    assert code_words("NPI of iso4217 and Address, the ID") == {"npi", "iso", "4217", "id"}


def test_stop_words_go_unless_nothing_else_is_left() -> None:
    assert tokens("what are the orders of this month") == ["order", "month"]
    assert tokens("what is it") == ["what", "is", "it"]
    assert query_tokens("To be or not to be") == ("to", "be", "or", "not")


def test_query_tokens_are_distinct_and_in_order() -> None:
    assert query_tokens("orders by order date, ordered") == ("order", "date")


def test_chinese_gives_pairs_and_a_single_character_itself() -> None:
    assert tokens("顧客注文") == ["顧客", "客注", "注文"]
    assert tokens("表") == ["表"]
    assert len(tokens("顧客注文" * 1_000)) == 3_999


def test_dates_and_encoded_data_are_not_joined_to_endless_tokens() -> None:
    assert tokens("2024-01-02") == ["2024", "01", "02"]
    assert max(map(len, tokens("A" * 5_000 + " " + "ab_" * 500))) <= 64


@pytest.mark.parametrize("spelling", ["cust_ord_hdr", "custOrdHdr", "Cust ORD hdr", " cust-ord.hdr "])
def test_spellings_of_one_name_have_one_normal_form(spelling: str) -> None:
    assert normal_form(spelling) == "cust ord hdr"


def test_accents_make_no_other_name() -> None:
    assert normal_form("Größe_Übersicht") == normal_form("grosse ubersicht")


def test_the_normal_form_is_not_stemmed_and_empty_without_words() -> None:
    assert normal_form("Orders") != normal_form("Order")
    assert normal_form(" -- ") == ""
