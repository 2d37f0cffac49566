"""Small pieces of prose: sentences, enumerations, and what a catalog field says once it is cleaned."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from services.text.clean import is_placeholder, plain_text
from services.text.tokens import normal_form

_LONGEST_REMEMBERED = 200
_SENTENCE_BREAK = re.compile(r"(?<=[.!?])\s|(?<=[。！？])")
_SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？", ":", ";")


def said(text: str | None) -> str:
    """What a field says, on one line; empty when it is absent, a placeholder, or nothing but noise."""
    plain = cleaned(text)
    return "" if is_placeholder(plain) else plain


def cleaned(text: str | None) -> str:
    """As `said` for a name, which may well be "x" or "unknown"."""
    if not text:
        return ""
    return _remembered_plain_text(text) if len(text) <= _LONGEST_REMEMBERED else plain_text(text)


# Column names and stock phrases come again and again, and the keyword fields clean what the narrative has cleaned.
_remembered_plain_text = lru_cache(maxsize=1 << 14)(plain_text)


def opening(text: str, longest: int) -> str:
    """The first sentence of a text, if need be cut at a word so that it has at most `longest` characters."""
    first = _SENTENCE_BREAK.split(text, maxsplit=1)[0]
    return first if len(first) <= longest else first[: longest + 1].rpartition(" ")[0] or first[:longest]


def sentence(text: str) -> str:
    """The text, ended like a sentence; empty stays empty."""
    return text if not text or text.endswith(_SENTENCE_ENDS) else f"{text}."


def enumeration(items: Iterable[str]) -> str:
    """Distinct items in their order, "a, b and c"; blank ones are left out."""
    listed = list(dict.fromkeys(item for item in items if item))
    if len(listed) < 2:
        return "".join(listed)
    return f"{', '.join(listed[:-1])} and {listed[-1]}"


def paragraph(sentences: Iterable[str]) -> str:
    """Sentences one after the other, each ended; blank ones are left out."""
    return " ".join(sentence(text) for text in sentences if text)


def distinct(texts: Iterable[str]) -> list[str]:
    """The texts in their order, without blanks and without those that say the same words as an earlier one."""
    by_form: dict[str, str] = {}
    for text in texts:
        if text:
            by_form.setdefault(normal_form(text) or text, text)
    return list(by_form.values())
