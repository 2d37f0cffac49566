"""The authenticated caller."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Permission(StrEnum):
    """What a key may do beside seeing; each is granted on the server, never by the request."""

    SEARCH = "search"
    EXPLAIN = "explain"
    STEWARD = "steward"
    OPERATE = "operate"
    EXECUTE = "execute"


@dataclass(frozen=True)
class Principal:
    """A user with groups and a clearance (0..3, see `access.rule.Level`). An administrator sees everything."""

    user: str
    groups: tuple[str, ...] = ()
    clearance: int = 0
    permissions: frozenset[Permission] = frozenset({Permission.SEARCH})
    administrator: bool = False


LOCAL_ADMINISTRATOR = Principal(user="local", clearance=3, permissions=frozenset(Permission), administrator=True)
