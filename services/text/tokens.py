"""The one tokenizer: what the keyword index stores and what a query asks for are cut by the same rules."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import snowballstemmer

from services.text.identifiers import split_identifier

_IDENTIFIER = re.compile(r"\w+(?:-\w+)*")
_APOSTROPHE = re.compile(r"['’](?:s\b)?", re.IGNORECASE)
_CJK_RUN = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
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


def tokens(text: str) -> list[str]:
    """The tokens of a text in order, repeats included: folded, stemmed, without stop words.

    An identifier gives its words and, when it has several, all of them joined: `it_all` stays findable as "itall".
    Stop words stay where nothing else is left, of an identifier or of the whole text. Writing without spaces
    (Chinese, Japanese, Korean) gives pairs of neighbouring characters.
    """
    words = _IDENTIFIER.findall(_APOSTROPHE.sub("", text if text.isascii() else unicodedata.normalize("NFKC", text)))
    found = [token for word in words for token in _expanded(word)]
    return found or [token for word in words for token in _spoken(split_identifier(word))]


def query_tokens(text: str) -> tuple[str, ...]:
    """The distinct tokens of a query in order of appearance; the stop words when it consists of nothing else."""
    return tuple(dict.fromkeys(tokens(text)))


def normal_form(text: str) -> str:
    """A name as it is compared with a whole query: folded words with single spaces, not stemmed.

    Empty when the name has no letter and no digit.
    """
    return " ".join(word.casefold() for word in split_identifier(text))


def _expanded(word: str) -> tuple[str, ...]:
    return _remembered_expansion(word) if len(word) <= _LONGEST_REMEMBERED else _expand(word)


def _expand(identifier: str) -> tuple[str, ...]:
    words = split_identifier(identifier)
    if len(words) == 1:
        return () if words[0] in STOP_WORDS else _spoken(words)
    telling = tuple(word for word in words if word not in STOP_WORDS) or words
    joined = "".join(words)
    if joined.isdecimal() or len(joined) > _LONGEST_WORD or _CJK_RUN.search(joined):
        return _spoken(telling)
    return (*_spoken(telling), *_spoken((joined,)))


_remembered_expansion = lru_cache(maxsize=1 << 16)(_expand)


def _spoken(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(token for word in words for token in _word_tokens(word.casefold()))


def _word_tokens(word: str) -> tuple[str, ...]:
    if word.isascii():
        return (_stem(word),)
    spoken: list[str] = []
    position = 0
    for run in _CJK_RUN.finditer(word):
        spoken += [word[position : run.start()], *_pairs(run[0])]
        position = run.end()
    return tuple(token[:_LONGEST_WORD] for token in (*spoken, word[position:]) if token)


def _pairs(run: str) -> list[str]:
    return [run[index : index + 2] for index in range(max(len(run) - 1, 1))]


def _stem(word: str) -> str:
    if len(word) < _SHORTEST_STEMMED or not word.isalpha() or len(word) > _LONGEST_WORD:
        return word[:_LONGEST_WORD]
    # A stemmer holds the word it works on, so threads must not share one; making one costs little.
    return str(snowballstemmer.stemmer("english").stemWord(word))
