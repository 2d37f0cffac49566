"""DataHub's own words: urns, field paths, and aspects read with a type in mind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from services.errors import SourceError

_GUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
# What DataHub encodes inside the parentheses of an urn, and nothing else.
_ENCODED = re.compile("%(2C|28|29)", re.IGNORECASE)
_BRACKETED = re.compile(r"\[[^\]]*\]")


class MalformedAspect(SourceError):
    """An aspect does not have the shape that DataHub's model gives it; names the field."""


@dataclass(frozen=True)
class Aspect:
    """One aspect, or an object inside it, whose fields are read with a type in mind.

    A missing or null field is None or empty. A field of another type raises MalformedAspect with its path. Avro's
    spelling of unions, {"string": "x"}, is read as the "x" inside.
    """

    path: str
    value: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.value)

    def text(self, key: str) -> str | None:
        """The text as it came, or None when it is missing or blank."""
        found = _unwrapped(self.value.get(key))
        if found is None:
            return None
        if not isinstance(found, str):
            raise self._malformed(key, "a text", found)
        return found if found.strip() else None

    def number(self, key: str) -> int | float | None:
        found = self.value.get(key)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, (int, float)) or not isfinite(found):
            raise self._malformed(key, "a number", found)
        return found

    def count(self, key: str) -> int | None:
        """A whole number of things; negative ones (DataHub's "not known") are None."""
        found = self.number(key)
        return None if found is None or found < 0 else int(found)

    def flag(self, key: str) -> bool | None:
        found = self.value.get(key)
        if found is not None and not isinstance(found, bool):
            raise self._malformed(key, "true or false", found)
        return found

    def moment(self, key: str) -> datetime | None:
        """A time in milliseconds since 1970, bare or as an audit stamp. 0 is how DataHub says "never"."""
        millis = self.part(key).number("time") if isinstance(self.value.get(key), dict) else self.number(key)
        if not millis:
            return None
        try:
            return datetime.fromtimestamp(millis / 1000, UTC)
        except (OverflowError, ValueError, OSError) as error:
            raise self._malformed(key, "milliseconds since 1970", millis) from error

    def part(self, key: str) -> Aspect:
        found = self.value.get(key)
        if found is not None and not isinstance(found, dict):
            raise self._malformed(key, "an object", found)
        return Aspect(f"{self.path}.{key}", found or {})

    def parts(self, key: str) -> Iterator[Aspect]:
        for number, item in enumerate(self._list(key)):
            if not isinstance(item, dict):
                raise self._malformed(f"{key}[{number}]", "an object", item)
            yield Aspect(f"{self.path}.{key}[{number}]", item)

    def texts(self, key: str) -> tuple[str, ...]:
        items = tuple(_unwrapped(item) for item in self._list(key))
        for number, item in enumerate(items):
            if not isinstance(item, str):
                raise self._malformed(f"{key}[{number}]", "a text", item)
        return tuple(item for item in items if item.strip())

    def scalars(self, key: str) -> tuple[str | int | float | bool, ...]:
        items = tuple(_unwrapped(item) for item in self._list(key))
        for number, item in enumerate(items):
            if not isinstance(item, (str, int, float)):
                raise self._malformed(f"{key}[{number}]", "a text or a number", item)
        return items

    def _list(self, key: str) -> list[Any]:
        found = self.value.get(key)
        if found is not None and not isinstance(found, list):
            raise self._malformed(key, "a list", found)
        return found or []

    def _malformed(self, key: str, expected: str, found: object) -> MalformedAspect:
        return MalformedAspect(f"{self.path}.{key} should be {expected}, but is {type(found).__name__}")


def _unwrapped(value: Any) -> Any:
    if isinstance(value, dict) and len(value) == 1:
        return next(iter(value.values()))
    return value


def documented(aspect: Aspect) -> str | None:
    """The first text of a `documentation` aspect."""
    return next((text for note in aspect.parts("documentations") if (text := note.text("documentation"))), None)


def urn_kind(urn: str) -> str | None:
    """The entity type of an urn ("dataset"), or None when it is not one."""
    words = urn.split(":", 3)
    return words[2] if len(words) == 4 and words[:2] == ["urn", "li"] and words[2] and words[3] else None


def urn_parts(urn: str) -> tuple[str, ...]:
    """The parts of an urn's key: "urn:li:chart:(looker,a.1)" -> ("looker", "a.1"), "urn:li:tag:x" -> ("x",).

    Only the first comma outside of parentheses splits a schemaField, whose field path may hold commas of its own. A
    text that is no urn is its own only part.
    """
    kind = urn_kind(urn)
    if kind is None:
        return (urn,)
    key = urn.split(":", 3)[3]
    if not (key.startswith("(") and key.endswith(")")):
        return (_decoded(key),)
    parts: list[str] = []
    depth, begin = 0, 1
    for position in range(1, len(key) - 1):
        depth += {"(": 1, ")": -1}.get(key[position], 0)
        if key[position] == "," and depth == 0 and not (kind == "schemaField" and parts):
            parts.append(key[begin:position])
            begin = position + 1
    parts.append(key[begin:-1])
    # A nested urn stays encoded: it is an id, not a text to read.
    return tuple(part if part.startswith("urn:li:") else _decoded(part) for part in parts)


def _decoded(part: str) -> str:
    return _ENCODED.sub(lambda found: chr(int(found[1], 16)), part)


def last_part(urn: str) -> str:
    """What an urn calls its entity, for want of a better name: the last part of its key that is a name."""
    parts = urn_parts(urn)
    if urn_kind(urn) in ("dataset", "dataFlow") and len(parts) == 3:
        return parts[1]  # the third is the environment
    return parts[-1]


def is_opaque(text: str) -> bool:
    """True for a GUID, with or without hyphens and a namespace before it: an id that tells a reader nothing."""
    return _GUID.fullmatch(text.rpartition(".")[2]) is not None


def simple_field_path(path: str) -> str:
    """A field path as a person writes it: "[version=2.0].[type=struct].[type=string].a.b" -> "a.b"."""
    if not path.startswith("[version=2.0]"):
        return path
    return ".".join(word for word in _BRACKETED.sub("", path).split(".") if word)
