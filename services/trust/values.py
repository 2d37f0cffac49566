"""Values as people write them: yes and no, placeholders, days. What cannot be read is unknown, never yes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Generic, TypeVar

from services.text.clean import plain_text
from services.trust.names import Words, is_negated_compound, words_of

RawValue = bool | int | float | str | None
Said = TypeVar("Said")

VALUE_LENGTH_LIMIT = 120  # characters; what is longer is prose, not a value
_PLACEHOLDER_LENGTH = 40  # characters; what is longer is no placeholder
_LEAD_LENGTH = 12  # characters in which a leading placeholder must end

_HEAD_END = re.compile(r"\s*[:;,(\[–—]|\s+-")  # what sets a word off from its explanation: "No - retired"
_DECIMAL = re.compile(r"[0-9]+(?:[.,][0-9]+)?")
_ISO_DAY = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?:[T ].*)?")
_WRITTEN_DAY = re.compile(r"([0-9]{1,2})([./])([0-9]{1,2})\2([0-9]{4})")


class Legibility(StrEnum):
    """Whether a value could be read. Only what was READ counts; an UNREADABLE one is reported."""

    READ = "read"
    BLANK = "blank"  # nothing was filled in, or a placeholder
    UNREADABLE = "unreadable"


@dataclass(frozen=True)
class Reading(Generic[Said]):
    """What a value says; `said` is None unless it was read. `why` explains an unreadable value in a few words."""

    legibility: Legibility
    said: Said | None = None
    why: str = ""


@dataclass(frozen=True)
class ValueWords:
    """The vocabulary of values, normalised by `words_of`; symbols (no words) stand in `yes_signs` and `no_signs`."""

    yes: frozenset[Words]
    no: frozenset[Words]
    yes_signs: frozenset[str]
    no_signs: frozenset[str]
    placeholders: frozenset[Words]
    unsettled: frozenset[Words]
    leading_placeholders: frozenset[Words]
    negations: frozenset[str]
    negating_prefixes: frozenset[str]
    fillers: frozenset[str]


def blank() -> Reading[Said]:
    return Reading(Legibility.BLANK)


def read(said: Said) -> Reading[Said]:
    return Reading(Legibility.READ, said)


def unreadable(why: str) -> Reading[Said]:
    return Reading(Legibility.UNREADABLE, why=why)


def plain(text: str) -> str:
    """The text without markup, full-width and composed characters made plain (％ -> %, ½ -> 1/2), ends trimmed."""
    if "<" in text and ">" in text:
        text = plain_text(text)
    return unicodedata.normalize("NFKC", text).replace("⁄", "/").replace("\ufe0f", "").strip()


def is_number(value: RawValue) -> bool:
    """True for a number, or a text that is nothing but one."""
    if isinstance(value, str):
        return _DECIMAL.fullmatch(plain(value)) is not None
    return isinstance(value, int | float) and not isinstance(value, bool)


def says_something(text: str | None, vocabulary: ValueWords) -> bool:
    """True when a text is there and more than a placeholder ("TBD", "-", "N/A", "TBD - ask the steward")."""
    if text is None:
        return False
    if "<" in text or "&" in text:  # an editor's empty paragraph is still empty
        text = plain_text(text)
    if len(text) > _PLACEHOLDER_LENGTH:
        spoken = any(char.isalnum() for char in text)
    else:
        words = words_of(text)
        spoken = bool(words) and words not in vocabulary.placeholders
    head = _HEAD_END.search(text, 0, _LEAD_LENGTH)
    return spoken and not (head and words_of(text[: head.start()]) in vocabulary.leading_placeholders)


def is_blank(text: str, vocabulary: ValueWords) -> bool:
    """True for the value of a signal that says nothing, or that nothing is settled yet ("pending")."""
    return not says_something(text, vocabulary) or words_of(text[:VALUE_LENGTH_LIMIT]) in vocabulary.unsettled


def read_yes_no(value: RawValue, phrases: Mapping[Words, bool], vocabulary: ValueWords) -> Reading[bool]:
    """Yes or no: a boolean, 1 or 0, a spelling of the vocabulary, or the signal's own words ("CDE", "not a CDE").

    `phrases` are the words that the signal itself is stated with. More than that ("yes, until June") is not guessed.
    """
    if value is None:
        return blank()
    if isinstance(value, bool):
        return read(value)
    if isinstance(value, int | float):
        return _read_one_or_zero(value)
    text = plain(value)
    if text in vocabulary.yes_signs or text in vocabulary.no_signs:
        return read(text in vocabulary.yes_signs)
    if len(text) > VALUE_LENGTH_LIMIT:
        return unreadable("a long text")
    words = words_of(text)
    if words not in phrases and is_blank(text, vocabulary):
        return blank()
    if "?" in text:
        return unreadable("a question")
    if _DECIMAL.fullmatch(text):
        return _read_one_or_zero(float(text.replace(",", ".")))
    return _read_yes_no_words(text, words, phrases, vocabulary)


def _read_one_or_zero(number: float) -> Reading[bool]:
    return read(number == 1) if number in (0, 1) else unreadable("a number that is neither 1 nor 0")


def _read_yes_no_words(text: str, words: Words, phrases: Mapping[Words, bool], vocabulary: ValueWords) -> Reading[bool]:
    core = tuple(word for word in words if word not in vocabulary.fillers)
    if words in phrases or core in phrases:  # "CDE", "is a CDE"
        return read(phrases.get(words, phrases.get(core, False)))
    if _spelled(words, vocabulary.yes):
        return read(True)
    if _spelled(words, vocabulary.no) or _negates(core, phrases, vocabulary):
        return read(False)
    if words_of(_head(text)) in vocabulary.no:  # "No - retired in favour of the hub"
        return read(False)
    if core[:1] in vocabulary.yes and phrases.get(core[1:]):  # "yes, certified"
        return read(True)
    return unreadable("neither a yes nor a no")


def _head(text: str) -> str:
    return _HEAD_END.split(text[:VALUE_LENGTH_LIMIT], maxsplit=1)[0]


def _spelled(words: Words, spellings: frozenset[Words]) -> bool:
    """True for a spelling, or several of the same meaning: "Y - Yes"."""
    return words in spellings or (bool(words) and all((word,) in spellings for word in words))


def _negates(core: Words, phrases: Mapping[Words, bool], vocabulary: ValueWords) -> bool:
    """True for the signal's own words under a negation: "not certified", "non-CDE", "unauthoritative"."""
    stated = [phrase for phrase, yes in phrases.items() if yes]
    if len(core) == 1:
        return any(is_negated_compound(core[0], "".join(phrase), vocabulary.negating_prefixes) for phrase in stated)
    negated = core[:1] in vocabulary.no or bool(core and core[0] in vocabulary.negations)
    return negated and core[1:] in stated


def read_day(value: RawValue) -> Reading[datetime]:
    """The first instant (UTC) of a day as people write it; of two ways to read it, the earlier day.

    Understood: 2026-03-31 (a time behind it is ignored), 31.03.2026, 31/03/2026 and 03/31/2026.
    """
    if value is None or (isinstance(value, str) and not words_of(value)):
        return blank()
    text = plain(str(value))
    if iso := _ISO_DAY.fullmatch(text):
        days = _days((iso[1], iso[2], iso[3]))
    elif written := _WRITTEN_DAY.fullmatch(text):
        first, separator, second, year = written.groups()
        day_first, month_first = (year, second, first), (year, first, second)
        days = _days(day_first) if separator == "." else _days(day_first, month_first)
    else:
        return unreadable("not a day")
    if not days:
        return unreadable("not a day of the calendar")
    return read(datetime.combine(min(days), datetime.min.time(), tzinfo=UTC))


def _days(*orders: tuple[str, str, str]) -> list[date]:
    days = []
    for year, month, day in orders:
        try:
            days.append(date(int(year), int(month), int(day)))
        except ValueError:
            continue
    return days
