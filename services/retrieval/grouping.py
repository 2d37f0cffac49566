"""Near-duplicates: one table seen through several systems must not fill the list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from services.retrieval.ranking import Ranked


def group_siblings(ranked: Sequence[Ranked]) -> list[Ranked]:
    """One entry per group, in the given order: the first of its siblings, with the ids of the others.

    Siblings are assets that a source declares to be the same thing, and assets of the same type, name and columns.
    """
    groups = _Groups([item.candidate.asset_key for item in ranked])
    shapes: dict[int, int] = {}
    for item in ranked:
        key, shape = item.candidate.asset_key, item.candidate.shape
        for sibling in item.candidate.siblings:
            groups.join(key, sibling)
        if shape is not None:
            groups.join(key, shapes.setdefault(shape, key))
    first: dict[int, Ranked] = {}
    others: dict[int, list[str]] = {}
    for item in ranked:
        group = groups.find(item.candidate.asset_key)
        if group in first:
            others.setdefault(group, []).append(item.id)
        else:
            first[group] = item
    return [replace(item, siblings=tuple(sorted(others.get(group, [])))) for group, item in first.items()]


class _Groups:
    """Disjoint sets over the given keys; others are ignored (a sibling that was not found, or may not be seen)."""

    def __init__(self, keys: Sequence[int]) -> None:
        self._parent = {key: key for key in keys}

    def find(self, key: int) -> int:
        while self._parent[key] != key:
            self._parent[key] = self._parent[self._parent[key]]
            key = self._parent[key]
        return key

    def join(self, one: int, other: int) -> None:
        if one in self._parent and other in self._parent:
            self._parent[self.find(one)] = self.find(other)
