"""Numbers of quality as people write them, read as a share 0..1 of their scale."""

from __future__ import annotations

import re
from collections.abc import Mapping

from services.trust.names import Words, words_of
from services.trust.values import (
    VALUE_LENGTH_LIMIT,
    RawValue,
    Reading,
    ValueWords,
    blank,
    is_blank,
    plain,
    read,
    unreadable,
)

_NUMBER = r"([0-9]{1,12}(?:[.,][0-9]{1,12})?|[.,][0-9]{1,12})"
_BARE = re.compile(_NUMBER)
_PERCENT = re.compile(_NUMBER + r"\s*(?:%|percent|per cent|pct\.?)", re.IGNORECASE)
_FRACTION = re.compile(_NUMBER + r"\s*(?:/|of|out of)\s*" + _NUMBER, re.IGNORECASE)
_LARGEST = 1e12
_YEARS = range(1900, 2101)

PERCENT_SCALE = 100.0


def read_share(
    value: RawValue, scale: float | None, grades: Mapping[Words, float], vocabulary: ValueWords
) -> Reading[float]:
    """The share 0..1 that a value tells.

    A value that carries its own scale (95%, 4/5) is read by it; else `scale` (the number that is best) holds; without
    one, 0 < v < 1 is a share, 1 < v <= 100 a percentage, 0 is 0, and a bare 1 could be either: unknown. Ranges,
    bounds (">90"), and numbers off their scale are unknown too. `grades` are words that a rule gives a share.
    """
    if value is None:
        return blank()
    if isinstance(value, bool):
        return unreadable("a yes or no where a number belongs")
    if isinstance(value, int | float):
        return _on_scale(float(value), scale) if abs(value) < _LARGEST else unreadable("off its scale")
    text = plain(value)
    if (share := grades.get(words_of(text[:VALUE_LENGTH_LIMIT]))) is not None:
        return read(share)
    if is_blank(text, vocabulary):
        return blank()
    explicit = read_explicit_share(text)
    if explicit is not None:
        return explicit
    if _BARE.fullmatch(text):
        return _on_scale(_number(text), scale)
    return unreadable("not a number")


def read_explicit_share(text: str) -> Reading[float] | None:
    """The share that a text with its own scale tells ("95 %", "4/5", "18 of 20"); None when it has no own scale."""
    if percent := _PERCENT.fullmatch(text):
        return _share(_number(percent[1]), PERCENT_SCALE)
    if fraction := _FRACTION.fullmatch(text):
        whole = _number(fraction[2])
        if whole in _YEARS and "/" in text:
            return unreadable("a month, not a fraction")
        return _share(_number(fraction[1]), whole)
    return None


def _number(text: str) -> float:
    return float(text.replace(",", "."))


def _on_scale(number: float, scale: float | None) -> Reading[float]:
    if scale is not None:
        return _share(number, scale)
    if number == 1:
        return unreadable("a bare 1: of 1 or of 100?")
    return _share(number, 1.0 if number < 1 else PERCENT_SCALE)


def _share(part: float, whole: float) -> Reading[float]:
    if not 0 <= part <= whole or whole == 0:
        return unreadable("off its scale")
    return read(abs(part) / whole)
