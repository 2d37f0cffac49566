"""Names as words: how a field, tag or term name is normalised and matched against the patterns of a signal."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

Words = tuple[str, ...]

NAME_LENGTH_LIMIT = 200  # characters; what is longer is a text, not a name

# An acronym with a plural s ("CDEs") is one word, "DQScore" and "dqScore" are two, digits are words of their own.
_WORD = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_]+")
_APOSTROPHES = re.compile(r"['’ʼ`]")
_NUMBER_OF = re.compile(r"#|\bno(?:\.|\s+of\b)", re.IGNORECASE)


def words_of(text: str) -> Words:
    """Lower-case words of a text: split at case, separators, punctuation and digits; accents and plural s dropped."""
    return _short_words(text) if len(text) <= NAME_LENGTH_LIMIT else _split(text)


@lru_cache(maxsize=16_384)  # names and flags repeat all over a catalog; long texts do not
def _short_words(text: str) -> Words:
    return _split(text)


def _split(text: str) -> Words:
    plain = _APOSTROPHES.sub("", text)
    if not plain.isascii():
        decomposed = unicodedata.normalize("NFKD", plain)
        plain = "".join(char for char in decomposed if not unicodedata.combining(char))
    return tuple(_singular(word.casefold()) for word in _WORD.findall(plain))


def name_words(name: str) -> Words:
    """`words_of` a name, in which % reads as "percent" and "#", "No." and "no of" as "number"."""
    return words_of(_NUMBER_OF.sub(" number ", name.replace("%", " percent ")))


def _singular(word: str) -> str:
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    return word[:-3] + "y" if word.endswith("ies") and len(word) > 4 else word[:-1]


def phrases(texts: Iterable[str]) -> frozenset[Words]:
    """The word sequences of some texts; texts without a word (symbols) are left out."""
    return frozenset(words for text in texts if (words := words_of(text)))


def single_words(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(word for words in phrases(texts) for word in words)


def find_phrase(words: Words, phrase: Words) -> int:
    """Where `phrase` begins in `words` as neighbouring words; -1 when it does not occur."""
    if phrase[0] not in words:
        return -1
    size = len(phrase)
    return next((at for at in range(len(words) - size + 1) if words[at : at + size] == phrase), -1)


@dataclass(frozen=True)
class NameGrammar:
    """The words that decide what a name around a pattern means; all normalised by `words_of`."""

    negations: frozenset[str]
    negations_before: frozenset[str]
    negating_prefixes: frozenset[str]
    affixes: frozenset[str]
    markers: tuple[Words, ...]  # longest first
    neutral: frozenset[str]
    disqualifiers: frozenset[str]

    def without_markers(self, words: Words) -> Words:
        """The words less the first "yes/no" or "Y/N" by which a name says what it wants to be filled with."""
        for marker in self.markers:
            at = find_phrase(words, marker)
            if at > 0:  # a name that is nothing but a marker, or begins with one, keeps it
                return words[:at] + words[at + len(marker) :]
        return words


@dataclass(frozen=True)
class NamePattern:
    """The words that name a signal. `whole`: only neutral words may stand beside them."""

    words: Words
    whole: bool = False

    @property
    def specificity(self) -> tuple[int, Words]:
        """Sort key, most words first, so that the order of the rules cannot matter."""
        return (-len(self.words), self.words)


@dataclass(frozen=True)
class NameHit:
    """A pattern found in a name. `rest` are the other words, in order."""

    pattern: NamePattern
    negated: bool
    rest: Words


def match_name(
    name: str, patterns: Sequence[NamePattern], grammar: NameGrammar, disqualifiers: frozenset[str]
) -> NameHit | None:
    """The first of `patterns` (sorted by `specificity`) that the name is about; None when it is about none.

    A name is not about a signal when a disqualifying word stands beside the pattern ("CDE owner", "DQ target").
    """
    if len(name) > NAME_LENGTH_LIMIT:
        return None
    words = grammar.without_markers(name_words(name))
    unwanted = grammar.disqualifiers | disqualifiers
    for pattern in patterns:
        found = _locate(words, pattern.words, grammar)
        if found is None:
            continue
        before, after, negated = found
        negations_in_front = {word for word in before if word in grammar.negations | grammar.negations_before}
        negations_behind = {word for word in after if word in grammar.negations}
        rest = tuple(word for word in before + after if word not in negations_in_front and word not in negations_behind)
        if unwanted.intersection(rest) or (pattern.whole and not grammar.neutral.issuperset(rest)):
            continue
        return NameHit(pattern, negated or bool(negations_in_front or negations_behind), rest)
    return None


def _locate(words: Words, phrase: Words, grammar: NameGrammar) -> tuple[Words, Words, bool] | None:
    """(words before, words after, negated by a prefix) of a phrase, also when it is run together as one word."""
    at = find_phrase(words, phrase)
    if at >= 0:
        return words[:at], words[at + len(phrase) :], False
    joined = "".join(phrase)
    for index, word in enumerate(words):
        if joined not in word:
            continue
        around = words[:index], words[index + 1 :]
        if (
            word == joined
            or word.removeprefix(joined) in grammar.affixes
            or word.removesuffix(joined) in grammar.affixes
        ):
            return *around, False
        if is_negated_compound(word, joined, grammar.negating_prefixes):
            return *around, True
    return None


def is_negated_compound(word: str, joined: str, prefixes: frozenset[str]) -> bool:
    """True for a negating prefix run together with the phrase: "uncertified", "noncde"."""
    return word.endswith(joined) and word[: len(word) - len(joined)] in prefixes
