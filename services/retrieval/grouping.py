"""Near-duplicates: one table seen through several systems must not fill the list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from services.retrieval.ranking import Candidate, Ranked, Relevant


def group_siblings(ranked: Sequence[Ranked]) -> list[Ranked]:
    """One entry per group, in the given order: the first of its siblings, with the ids of the others.

    Siblings are assets that a source declares to be the same thing, and assets of the same type, name and columns.
    """
    group_of = groups([item.candidate for item in ranked])
    first: dict[int, Ranked] = {}
    others: dict[int, list[str]] = {}
    for item in ranked:
        group = group_of[item.candidate.asset_key]
        if group in first:
            others.setdefault(group, []).append(item.id)
        else:
            first[group] = item
    return [
        replace(item, siblings=tuple(sorted(others[group]))) if group in others else item
        for group, item in first.items()
    ]


def in_first_groups(relevant: Iterable[Relevant], group_limit: int) -> tuple[list[Relevant], int]:
    """All members of the first `group_limit` groups, in the given order, and how many groups these are.

    So forty shards of one table take one place among the candidates, not forty.
    """
    items = list(relevant)
    group_of = groups([item.candidate for item in items])
    first = list(dict.fromkeys(group_of[item.candidate.asset_key] for item in items))[:group_limit]
    kept = frozenset(first)
    return [item for item in items if group_of[item.candidate.asset_key] in kept], len(first)


def groups(candidates: Sequence[Candidate]) -> dict[int, int]:
    """The group of each candidate, by asset key; equal numbers are one group."""
    sets = _DisjointSets([item.asset_key for item in candidates])
    shapes: dict[int, int] = {}
    for item in candidates:
        for sibling in item.siblings:
            sets.join(item.asset_key, sibling)
        if item.shape is not None:
            sets.join(item.asset_key, shapes.setdefault(item.shape, item.asset_key))
    return {item.asset_key: sets.find(item.asset_key) for item in candidates}


class _DisjointSets:
    """Over the given keys; others are ignored (a sibling that was not found, or may not be seen)."""

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
