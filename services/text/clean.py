"""Cleaning: characters that no store can keep, and prose freed of markup and machine noise."""

from __future__ import annotations

import re
from typing import Any

REPLACEMENT = "\ufffd"

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def scrub(value: Any) -> tuple[Any, int]:
    """A JSON value with NUL and lone surrogates replaced by U+FFFD, in keys too, and how many were replaced.

    The value itself is not changed. Nesting of any depth is fine: containers are walked with a list, not by recursion.
    """
    root: list[Any] = [value]
    pending: list[list[Any] | dict[str, Any]] = [root]
    replaced = 0
    while pending:
        container = pending.pop()
        keyed: list[tuple[Any, Any]] = list(container.items() if isinstance(container, dict) else enumerate(container))
        if isinstance(container, dict):
            container.clear()
        for key, item in keyed:
            if isinstance(key, str):
                key, count = _UNSTORABLE.subn(REPLACEMENT, key)
                replaced += count
            if isinstance(item, str):
                item, count = _UNSTORABLE.subn(REPLACEMENT, item)
                replaced += count
            elif isinstance(item, (dict, list)):
                item = item.copy()
                pending.append(item)
            container[key] = item
    return root[0], replaced
