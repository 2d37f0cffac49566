"""Technical names as words: `cust_ord_hdr_v2` is "cust ord hdr v2"."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_CASELESS = "ª"  # stands for letters of scripts without capitals; never in an ASCII name
_RUN = re.compile(f"[A-Za-z0-9{_CASELESS}]+")
_PIECE = re.compile(f"[A-Z]{{2,}}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|{_CASELESS}+")
_CAPITALISED = re.compile(r"[A-Z][a-z]")
_SHORT_LETTERS = 2
_LONGEST_REMEMBERED = 80  # column names come again and again; long texts are not worth their memory


def split_identifier(name: str) -> tuple[str, ...]:
    """The words of a name, lower-cased: split at punctuation, spaces, camel humps, and between letters and digits.

    A digit stays with one or two letters ("v2", "q3", "b2b") and leaves longer words ("address1" is "address", "1"):
    so "iso4217", "ISO-4217" and "ISO 4217" have the same words. An acronym keeps its plural ("userIDs": "user ids").
    """
    return _remembered_split(name) if len(name) <= _LONGEST_REMEMBERED else _split(name)


def spelled_as_words(name: str) -> str:
    """A name as lower-case words with single spaces between them."""
    return " ".join(split_identifier(name))


def _split(name: str) -> tuple[str, ...]:
    shape = name
    if not name.isascii():
        name = unicodedata.normalize("NFKC", name)
        shape = _ascii_shape(name)
    return tuple(
        name[start:end].lower()
        for run in _RUN.finditer(shape)
        for start, end in _word_spans(shape, run.start(), run.end())
    )


_remembered_split = lru_cache(maxsize=1 << 16)(_split)


def _ascii_shape(name: str) -> str:
    """As many characters, each the ASCII one of its kind: then one pattern serves all scripts."""
    shape: list[str] = []
    for character in name:
        if character.isdecimal():
            shape.append("0")
        elif character.isupper():
            shape.append("A")
        elif character.islower():
            shape.append("a")
        elif character.isalpha():
            shape.append(_CASELESS)
        elif shape and unicodedata.category(character).startswith("M"):
            shape.append(shape[-1].lower())  # an accent or vowel sign goes with its letter
        else:
            shape.append(" ")
    return "".join(shape)


def _word_spans(shape: str, run_start: int, run_end: int) -> list[tuple[int, int]]:
    """Spans of the words of one run of letters and digits."""
    spans: list[tuple[int, int]] = []
    previous_letters = previous_digits = False  # whether the last piece is a short letter run, or ends in digits
    for match in _PIECE.finditer(shape, run_start, run_end):
        start, end = match.span()
        digits = shape[start].isdigit()
        short_letters = not digits and end - start <= _SHORT_LETTERS
        joins = (digits and previous_letters) or (
            previous_digits and short_letters and not _CAPITALISED.match(shape, start)
        )
        if joins:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
        previous_letters, previous_digits = short_letters, digits
    return spans
