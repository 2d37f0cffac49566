"""One asset out of what several sources say of it: the owner's record, and overlays on top.

A non-null field of an overlay wins; lists are united, the owner's entries first; columns unite by name. Taking an
overlay's record away and merging again takes only its fields away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from services.catalog.model import canonical_json

# Entries of these lists are the same thing when their names agree; a later entry's fields win.
NAMED_LISTS = frozenset({"columns", "custom_fields"})


def merge_payloads(payloads: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The payload that records of one id amount to, the owner's first. Plain JSON in, plain JSON out.

    The payloads are not changed; the result may share parts with them, so it is to be read, not written.
    `payloads` are those of `CatalogRecord.payload()`; absent and null fields do not win over anything.
    """
    merged: dict[str, Any] = {}
    for payload in payloads:
        merged = _merge_objects(merged, payload)
    return merged


def _merge_objects(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        if value is None:
            continue
        merged[key] = _merge_values(key, below.get(key), value)
    return merged


def _merge_values(key: str, below: Any, above: Any) -> Any:
    if isinstance(below, dict) and isinstance(above, dict):
        return _merge_objects(below, above)
    if isinstance(below, list) and isinstance(above, list):
        named = key in NAMED_LISTS and all(map(_has_name, (*below, *above)))
        return _unite_named(below, above) if named else _unite(below, above)
    return above


def _has_name(item: Any) -> bool:
    # Below `extra` a list of that key may hold anything.
    return isinstance(item, dict) and isinstance(item.get("name"), str)


def _unite(below: list[Any], above: list[Any]) -> list[Any]:
    seen = {canonical_json(item) for item in below}
    return below + [item for item in above if canonical_json(item) not in seen]


def _unite_named(below: list[dict[str, Any]], above: list[dict[str, Any]]) -> list[dict[str, Any]]:
    merged = {item["name"]: item for item in below}
    # A list that names one thing twice keeps both entries: only entries of the overlay are folded in.
    if len(merged) < len(below):
        return _unite(below, above)
    for item in above:
        merged[item["name"]] = _merge_objects(merged.get(item["name"], {}), item)
    return list(merged.values())
