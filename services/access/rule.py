"""Who may see what: one pure function over an asset's access rule and a principal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from services.access.principal import Principal

NOBODY = ""  # the name of no user: a list of it alone lets nobody in, where an empty one lets in all


class Level(IntEnum):
    """Classification and clearance levels, least first."""

    PUBLIC = 0
    INTERNAL = 1
    CONFIDENTIAL = 2
    RESTRICTED = 3

    @property
    def label(self) -> str:
        return self.name.capitalize()


def parse_level(word: str | None, default: Level) -> Level:
    """The level a classification word names. Missing or blank is `default`; an unknown word is Restricted."""
    text = (word or "").strip()
    if not text:
        return default
    return Level.__members__.get(text.upper(), Level.RESTRICTED)


@dataclass(frozen=True)
class AccessRule:
    """An asset's access list, normalised: the lists are sorted, so equal rules compare equal."""

    classification: Level
    groups: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    denied_groups: tuple[str, ...] = ()
    denied_users: tuple[str, ...] = ()


def access_rule(
    classification: str | None,
    groups: Iterable[str] = (),
    users: Iterable[str] = (),
    denied_groups: Iterable[str] = (),
    denied_users: Iterable[str] = (),
    *,
    default: Level = Level.INTERNAL,
) -> AccessRule:
    """The normalised rule of an access list as a catalog writes it."""
    return AccessRule(
        parse_level(classification, default),
        *(tuple(sorted(set(names))) for names in (groups, users, denied_groups, denied_users)),
    )


def may_see(rule: AccessRule, principal: Principal) -> bool:
    """True when clearance reaches the classification, the lists are empty or name the principal, no denial does."""
    if principal.administrator:
        return True
    if principal.clearance < rule.classification:
        return False
    groups = set(principal.groups)
    if principal.user in rule.denied_users or groups & set(rule.denied_groups):
        return False
    open_to_all = not rule.groups and not rule.users
    return open_to_all or principal.user in rule.users or bool(groups & set(rule.groups))


def narrowed(one: AccessRule, other: AccessRule) -> AccessRule:
    """A rule that lets in nobody but whom both let in; the stricter of the two when one is.

    Sound, not complete: who is on the one list by name and on the other by group is left out.
    """
    lists = [(rule.groups, rule.users) for rule in (one, other) if rule.groups or rule.users]
    groups, users = (set.intersection(*(set(pair[place]) for pair in lists)) if lists else set() for place in (0, 1))
    if lists and not groups and not users:
        users = {NOBODY}
    return AccessRule(
        max(one.classification, other.classification),
        groups=tuple(sorted(groups)),
        users=tuple(sorted(users)),
        denied_groups=tuple(sorted({*one.denied_groups, *other.denied_groups})),
        denied_users=tuple(sorted({*one.denied_users, *other.denied_users})),
    )


def visible_ids(rules: Mapping[int, AccessRule], principal: Principal) -> list[int]:
    """The ids of the interned rules that let the principal in, ascending; both engines filter by them."""
    return sorted(acl_id for acl_id, rule in rules.items() if may_see(rule, principal))


def at_least_as_visible(neighbour: AccessRule, asset: AccessRule) -> bool:
    """True when everybody who may see `asset` may see `neighbour` too, as far as the rules alone can tell.

    Sound, not complete: a False only keeps a name out of a narrative.
    """
    if neighbour.classification > asset.classification:
        return False
    if not set(neighbour.denied_users) <= set(asset.denied_users):
        return False
    if not set(neighbour.denied_groups) <= set(asset.denied_groups):
        return False
    if not neighbour.groups and not neighbour.users:
        return True
    if not asset.groups and not asset.users:
        return False
    return set(asset.groups) <= set(neighbour.groups) and set(asset.users) <= set(neighbour.users)
