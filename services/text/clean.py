"""Cleaning: characters that no store can keep, and prose freed of markup and machine noise."""

from __future__ import annotations

import html
import re
from typing import Any

from services.text.markup import without_html, without_markdown

REPLACEMENT = "\ufffd"

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\uffff\U000e0000-\U000e0fff\ud800-\udfff]"
)
_CONTROL = re.compile("\x1b\\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2500-\u259f]")  # and drawn lines
_UNESCAPE_ROUNDS = 3  # exports escape what was escaped already: "&amp;nbsp;"

# Text in which none of these is found has nothing to clean but its spaces; most names and descriptions are such text.
_MARKUP_CHARACTER = re.compile(
    "[<>&*`~|\\\\\\[\\]#\n\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2500-\u259f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff"
    "\U000e0000-\U000e0fff\ud800-\udfff]"
)
_LINE_START = re.compile(r"\s*+[-+\d]")
_EDGE_UNDERSCORE = re.compile(r"\b_|_\b")
_LONG_HEX = re.compile(r"[0-9a-fA-F]{8}")

_NOISE = re.compile(
    r"(?:\bdata:[\w/+.-]{1,80};base64,[\w/+=]*+"
    r"|\b[a-z][a-z0-9+.-]{1,20}://[^\s<>\"]*+"
    r"|\bwww\.[^\s<>\"]*+"
    r"|\b(?:mailto|urn:[a-z0-9-]{1,31}):[^\s<>\"]*+"
    r"|(?<![0-9a-z])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-z])"
    r"|(?<![0-9a-z])(?:sha\d{1,3}:)?[0-9a-f]{32,}+(?![0-9a-z]))",
    re.IGNORECASE,
)
_GONE = "\x00"  # stands where noise was, until the brackets around it are gone too; cannot be in cleaned text
_GONE_BRACKETED = re.compile(r"""[(\[{<"'] ?\x00 ?[)\]}>"']""")
_GONE_BEFORE_MARK = re.compile(r" ?\x00 ?(?=[.,;:!?)\]}])")
_SENTENCE_MARKS = ".,;:!?'\""
_CLOSING_BRACKETS = ")]}"

_PLACEHOLDER_LINES = """
n/a\nna\nn.a\ntbd\ntba\ntbc\ntodo\nto-do\nnone\nnull\nnil\nnan\nunknown\nundefined\nunspecified\nempty\nmissing\nx\nxx\nxxx
no description\nno description available\nno description provided\ndescription pending\nnot available\nnot applicable
not defined\nnot specified\nnot set\nto be defined\nto be determined\nto be done
"""
_PLACEHOLDERS = frozenset(_PLACEHOLDER_LINES.split("\n"))


def scrub(value: Any) -> tuple[Any, int]:
    """A JSON value with NUL and lone surrogates replaced by U+FFFD, in keys too, and how many were replaced.

    The value itself is not changed. Nesting of any depth is fine: containers are walked with a list, not by recursion.
    """
    root: list[Any] = [value]
    pending: list[list[Any] | dict[str, Any]] = [root]
    replaced = 0
    while pending:
        container = pending.pop()
        keyed: list[tuple[Any, Any]] = list(container.items() if isinstance(container, dict) else enumerate(container))
        if isinstance(container, dict):
            container.clear()
        for key, item in keyed:
            if isinstance(key, str):
                key, count = _UNSTORABLE.subn(REPLACEMENT, key)
                replaced += count
            if isinstance(item, str):
                item, count = _UNSTORABLE.subn(REPLACEMENT, item)
                replaced += count
            elif isinstance(item, (dict, list)):
                item = item.copy()
                pending.append(item)
            container[key] = item
    return root[0], replaced


def is_placeholder(text: str) -> bool:
    """True for text that fills a field without saying anything: "N/A", "TBD", "-", "no description"."""
    return text.strip(" \t\n.-–—?!*_").casefold() in _PLACEHOLDERS


def plain_text(text: str) -> str:
    """The words of a text on one line: no HTML or Markdown markup, URLs, urns, hashes, uuids or invisible characters.

    The words of links, headings, table cells and code spans stay; the content of scripts and comments does not. Where
    layout parts blocks (a heading, a list item, a table row), punctuation does it instead.
    """
    if not _may_hold_markup(text):
        return " ".join(text.split())
    text = _without_controls(text)
    if "<" in text:
        text = without_html(text)
    return _without_noise(without_markdown(text))


def without_invisible(text: str) -> str:
    """The text without what nobody sees: soft hyphens, zero-width, bidi and variation characters."""
    return text if text.isascii() else _INVISIBLE.sub("", text)


def _may_hold_markup(text: str) -> bool:
    lowered = text.lower()
    return bool(
        _MARKUP_CHARACTER.search(text)
        or _LINE_START.match(text)
        or ("_" in text and _EDGE_UNDERSCORE.search(text))
        or (":" in text and ("://" in text or "urn:" in lowered or "mailto:" in lowered))
        or "www." in lowered
        or ";base64" in lowered
        or _LONG_HEX.search(text)
    )


def _without_controls(text: str) -> str:
    for _ in range(_UNESCAPE_ROUNDS):
        unescaped = html.unescape(text) if "&" in text else text
        if unescaped == text:
            break
        text = unescaped
    return without_invisible(_CONTROL.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n")))


def _without_noise(text: str) -> str:
    text = _NOISE.sub(_gone, text)
    if _GONE not in text:
        return text
    text = _GONE_BEFORE_MARK.sub("", _GONE_BRACKETED.sub(" ", text))
    return " ".join(text.replace(_GONE, " ").split())


def _gone(match: re.Match[str]) -> str:
    """What replaces a piece of noise: the marks at its end belong to the sentence around it."""
    noise = match[0]
    marks = _SENTENCE_MARKS if "(" in noise else _SENTENCE_MARKS + _CLOSING_BRACKETS
    return _GONE + noise[len(noise.rstrip(marks)) :]
