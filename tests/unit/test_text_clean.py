"""services.text.clean: what no store can keep is replaced and counted; prose comes out free of markup and noise."""

from __future__ import annotations

import json

from services.text.clean import scrub, without_invisible


def test_scrub_replaces_nul_and_lone_surrogates_everywhere_and_counts_them() -> None:
    value = {"na\x00me": "a\x00b", "columns": [{"title": "\ud83d broken"}, "fine 😀", 3, None, True]}

    cleaned, replaced = scrub(value)

    assert cleaned == {"na\ufffdme": "a\ufffdb", "columns": [{"title": "\ufffd broken"}, "fine 😀", 3, None, True]}
    assert replaced == 3
    json.dumps(cleaned, ensure_ascii=False).encode()  # a lone surrogate would raise


def test_scrub_keeps_a_surrogate_pair_that_json_joined() -> None:
    assert scrub(json.loads('"\\ud83d\\ude00"')) == ("😀", 0)


def test_scrub_leaves_the_callers_value_alone_and_keeps_key_order() -> None:
    value = {"b": ["\x00"], "a": {"c": "x"}}

    cleaned, _ = scrub(value)

    assert value == {"b": ["\x00"], "a": {"c": "x"}}
    assert list(cleaned) == ["b", "a"]


def test_scrub_survives_nesting_deeper_than_the_interpreters_recursion_limit() -> None:
    value: list[object] = ["\x00"]
    for _ in range(5_000):
        value = [value]

    cleaned, replaced = scrub(value)

    assert replaced == 1
    while isinstance(cleaned, list):
        cleaned = cleaned[0]
    assert cleaned == "\ufffd"


def test_what_nobody_sees_parts_no_word() -> None:
    assert without_invisible("cus\u00adtomer\u200b or\u2060ders") == "customer orders"
    assert without_invisible("Umsatz\nÜbersicht") == "Umsatz\nÜbersicht"
