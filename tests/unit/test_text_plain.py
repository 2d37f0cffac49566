"""services.text.clean.plain_text: the words of catalog prose, without markup, addresses and invisible characters."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.text.clean import is_placeholder, plain_text

QUARTER_MEGABYTE = 250_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**Bold**, *emphasis*, __strong__ and ~~struck~~", "Bold, emphasis, strong and struck"),
        ("the `cust_ord_hdr` table", "the cust_ord_hdr table"),
        ('see [the guide](https://wiki.example/a_(b)?c=d "Guide") first', "see the guide first"),
        (
            "[![logo](https://x.example/i.png)](https://x.example) text [ref][1]\n[1]: https://x.example",
            "logo text ref",
        ),
        (
            "# Orders #\n\nOne row\n- per order\n- [x] done\n1. first\n> quoted",
            "Orders. One row; per order; done; first; quoted",
        ),
        ("| Code | Meaning |\n|:----|---:|\n| A | `open` |", "Code Meaning. A open"),
        ("```sql\nselect 1\n```", "select 1"),
        (r"snake\_case and \*literal\*", "snake_case and literal"),
        ("<p>Net&nbsp;<b>rev</b>enue</p><br/>per day", "Net revenue; per day"),
        ("Supports:\n* stock\n* Orders\nof a day", "Supports: stock. Orders of a day"),
        ("soft\nbreak, hard<br>break\n", "soft break, hard break"),
        ("customers ─── orders", "customers orders"),
        ("<table><tr><td>Code</td><td>Name</td></tr></table>", "Code Name"),
        ("before<script>alert('<b>')</script><style>p {}</style><!-- note --> after", "before after"),
        ('<ac:macro ac:name="info">kept</ac:macro>', "kept"),
        ("&amp;nbsp;twice &amp;lt;p&amp;gt;escaped", "twice; escaped"),
        ("A &lt; B &amp; C", "A < B & C"),
        ("List<String> of <customer id>", "List String of customer id"),
        ("count(*) and 2 * 3 * 4 and a < b", "count(*) and 2 * 3 * 4 and a < b"),
        ("at 10:30, e.g. v1.2 - or not", "at 10:30, e.g. v1.2 - or not"),
    ],
)
def test_markup_goes_and_words_stay(text: str, expected: str) -> None:
    assert plain_text(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see https://x.example/a?b=1&c=2. Then", "see. Then"),
        ("docs (https://x.example/a) here", "docs here"),
        ("<https://x.example> or www.example.org/x", "or"),
        ("load s3://bucket/key.parquet daily", "load daily"),
        ("urn:li:dataset:(urn:li:dataPlatform:snowflake,db.orders,PROD) feeds it", "feeds it"),
        ("id 550E8400-e29b-41d4-a716-446655440000 of", "id of"),
        ("commit d41d8cd98f00b204e9800998ecf8427e!", "commit!"),
        ("write to mailto:sales-ops@example.org please", "write to please"),
        ("img data:image/png;base64,iVBORw0KGgo= end", "img end"),
        ("order 12345678 of 2024-01-02", "order 12345678 of 2024-01-02"),
    ],
)
def test_addresses_and_hashes_go_with_the_brackets_around_them(text: str, expected: str) -> None:
    assert plain_text(text) == expected


def test_invisible_characters_go_and_controls_part_words() -> None:
    assert plain_text("zero\u200bwidth \u202ereversed\u202c soft\u00adhyphen\ufeff bell\x07rings \x1b[31mred") == (
        "zerowidth reversed softhyphen bell rings red"
    )


@pytest.mark.parametrize(
    "text", ["Number of the customer", "Umsatz (netto), in €", "顧客の注文", "cust_id", "e.g. 3.5"]
)
def test_plain_words_are_left_alone(text: str) -> None:
    assert plain_text(text) == text


@settings(deadline=None)
@given(st.text())
def test_whatever_comes_in_one_line_of_visible_text_comes_out(text: str) -> None:
    plain = plain_text(text)

    assert plain == " ".join(plain.split())
    assert not [character for character in plain if unicodedata.category(character) in ("Cc", "Cs")]
    assert "**" not in plain
    assert "http://" not in plain


HOSTILE = """
< <!-- <a_ <a_" <script> [a]( [ ]( *a_ _a_ &amp; \\ http:// a. # | > ~ urn:a: 12345678-1234- a words_ <b>x</b>_ (http://x)_
"""


@pytest.mark.parametrize("unit", [unit.replace("_", " ") for unit in HOSTILE.split()] + [" ", "\n", "_a "])
def test_long_texts_of_anything_take_linear_time(unit: str) -> None:
    text = unit * (QUARTER_MEGABYTE // len(unit))
    started = time.process_time()

    plain_text(text)

    # It takes about a tenth of a second; a pattern that is quadratic takes minutes.
    assert time.process_time() - started < 3.0


@pytest.mark.parametrize("text", ["", " ", "-", "N/A", "n.a.", "TBD", "???", "No description.", "none"])
def test_placeholders_say_nothing(text: str) -> None:
    assert is_placeholder(text)


@pytest.mark.parametrize("text", ["No", "Description of orders", "0", "Unknown customers"])
def test_short_words_are_no_placeholders(text: str) -> None:
    assert not is_placeholder(text)
