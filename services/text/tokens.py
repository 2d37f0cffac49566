"""The one tokenizer: what the keyword index stores and what a query asks for are cut by the same rules."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

import snowballstemmer

from services.text.identifiers import split_identifier

_LETTER = "[\\w\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u109f]"  # also the signs that scripts set on letters
_IDENTIFIER = re.compile(f"{_LETTER}+(?:-{_LETTER}+)*")
_APOSTROPHE = re.compile(r"['’](?:s\b)?", re.IGNORECASE)
_CJK_RUN = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_ACCENTED = re.compile("([a-z])[\u0300-\u036f]+")
_UNDECOMPOSED = str.maketrans({"ø": "o", "đ": "d", "ł": "l", "ı": "i", "æ": "ae", "œ": "oe"})  # ß is casefold's
_SHORTEST_STEMMED = 3
_LONGEST_REMEMBERED = 80  # a text without spaces is one long word; it is not worth its memory
_LONGEST_WORD = 64  # beyond lies encoded data, which nobody searches for

_FUNCTION_WORDS = """
a about all am an and any are as at be been being both but by can could did do does doing each few for from had has have
having he her hers him his how i if in into is it its itself just let may me might more most much must my no nor not of
on once only or other our ours out over own please same shall she should so some such than that the their theirs them
then there these they this those through to too under until up us very was we were what when where whether which while
who whom whose why will with within would you your yours
"""
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())


class Spoken(NamedTuple):
    """A word of a text, folded but not stemmed, and its token. `joined`: all words of an identifier put together."""

    word: str
    token: str
    joined: bool = False


def spoken(text: str) -> list[Spoken]:
    """The words of a text with their tokens, in order, repeats included: folded, stemmed, without stop words.

    An identifier gives its words and, when it has several, all of them joined: `it_all` stays findable as "itall".
    Stop words stay where nothing else is left, of an identifier or of the whole text. Writing without spaces
    (Chinese, Japanese, Korean) gives pairs of neighbouring characters. Accents on Latin letters are folded away, so
    that "Übersicht" and "Ubersicht" are one word, and words that are plain Latin then are stemmed as English ones:
    both spellings must give the same token. Words of other scripts are not stemmed.
    """
    identifiers = _identifiers(text)
    found = [item for identifier in identifiers for item in _expanded(identifier)]
    return found or [item for identifier in identifiers for item in _spoken(split_identifier(identifier))]


def tokens(text: str) -> list[str]:
    """The tokens of what is `spoken` in a text."""
    return [item.token for item in spoken(text)]


def code_words(text: str) -> frozenset[str]:
    """The words of identifiers that are in capitals throughout or have a digit, folded: acronyms and codes."""
    codes = (item for item in _identifiers(text) if item.isupper() or any(map(str.isdigit, item)))
    return frozenset(_folded(word) for identifier in codes for word in split_identifier(identifier))


def query_tokens(text: str) -> tuple[str, ...]:
    """The distinct tokens of a query in order of appearance; the stop words when it consists of nothing else."""
    return tuple(dict.fromkeys(tokens(text)))


def normal_form(text: str) -> str:
    """A name as it is compared with a whole query: folded words with single spaces, not stemmed.

    Empty when the name has no letter and no digit.
    """
    return " ".join(map(_folded, split_identifier(text)))


def _identifiers(text: str) -> list[str]:
    return _IDENTIFIER.findall(_APOSTROPHE.sub("", text if text.isascii() else unicodedata.normalize("NFKC", text)))


def _expanded(identifier: str) -> tuple[Spoken, ...]:
    return _remembered_expansion(identifier) if len(identifier) <= _LONGEST_REMEMBERED else _expand(identifier)


def _expand(identifier: str) -> tuple[Spoken, ...]:
    words = split_identifier(identifier)
    if len(words) == 1:
        return () if words[0] in STOP_WORDS else _spoken(words)
    telling = tuple(word for word in words if word not in STOP_WORDS) or words
    joined = "".join(words)
    if joined.isdecimal() or len(joined) > _LONGEST_WORD or _CJK_RUN.search(joined):
        return _spoken(telling)
    return (*_spoken(telling), *(item._replace(joined=True) for item in _spoken((joined,))))


_remembered_expansion = lru_cache(maxsize=1 << 16)(_expand)


def _spoken(words: tuple[str, ...]) -> tuple[Spoken, ...]:
    return tuple(item for word in words for item in _word_tokens(_folded(word)))


def _folded(word: str) -> str:
    """Lower case, and Latin letters without their accents."""
    if word.isascii():
        return word.lower()
    decomposed = unicodedata.normalize("NFD", word.casefold().translate(_UNDECOMPOSED))
    return unicodedata.normalize("NFC", _ACCENTED.sub(r"\1", decomposed))


def _word_tokens(word: str) -> tuple[Spoken, ...]:
    if word.isascii():
        return (Spoken(word, _stem(word)),)
    parts: list[str] = []
    position = 0
    for run in _CJK_RUN.finditer(word):
        parts += [word[position : run.start()], *_pairs(run[0])]
        position = run.end()
    return tuple(Spoken(part, part[:_LONGEST_WORD]) for part in (*parts, word[position:]) if part)


def _pairs(run: str) -> list[str]:
    return [run[index : index + 2] for index in range(max(len(run) - 1, 1))]


def _stem(word: str) -> str:
    if len(word) < _SHORTEST_STEMMED or not word.isalpha() or len(word) > _LONGEST_WORD:
        return word[:_LONGEST_WORD]
    # A stemmer holds the word it works on, so threads must not share one; making one costs little.
    return str(snowballstemmer.stemmer("english").stemWord(word))
