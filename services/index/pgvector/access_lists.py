"""Interned access lists: equal rules share one id, derived from their content, the same on every engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from psycopg import Connection

from services.access.rule import AccessRule, Level
from services.catalog.model import canonical_json, text_key
from services.index.pgvector.database import Row
from services.sql_files import load_queries

QUERIES = load_queries("pgvector/queries/drafts.sql")


@lru_cache(maxsize=500)
def id_array(acl_ids: tuple[int, ...]) -> str:
    """Ids as the server writes an array of them: to be bound with a cast, for a tenth of what sending a list costs."""
    return f"{{{','.join(map(str, acl_ids))}}}"


def acl_id(rule: AccessRule) -> int:
    """The 63-bit id of an access rule: the key of its canonical form."""
    lists = [rule.groups, rule.users, rule.denied_groups, rule.denied_users]
    return text_key(canonical_json([int(rule.classification), *map(list, lists)]))


def intern_rules(connection: Connection[Row], rules: Iterable[AccessRule]) -> dict[AccessRule, int]:
    """The id of each rule, added where it is new."""
    ids = {rule: acl_id(rule) for rule in rules}
    known = {row["acl_id"] for row in _rows(connection, ids.values())}
    fresh = [_columns(rule, number) for rule, number in ids.items() if number not in known]
    if fresh:
        connection.cursor().executemany(QUERIES["acl_add"], fresh)
    return ids


def rules_by_id(connection: Connection[Row], ids: Iterable[int]) -> dict[int, AccessRule]:
    """The access rules of the ids."""
    return {row["acl_id"]: rule_of(row) for row in _rows(connection, ids)}


def rule_of(row: Mapping[str, Any]) -> AccessRule:
    """One row of the table `acl` as a rule."""
    return AccessRule(
        Level(row["classification"]),
        groups=tuple(row["groups"]),
        users=tuple(row["users"]),
        denied_groups=tuple(row["denied_groups"]),
        denied_users=tuple(row["denied_users"]),
    )


def _rows(connection: Connection[Row], ids: Iterable[int]) -> list[Row]:
    return connection.execute(QUERIES["acl_by_id"], {"acl_ids": list(set(ids))}).fetchall()


def _columns(rule: AccessRule, number: int) -> dict[str, Any]:
    return {
        "acl_id": number,
        "classification": int(rule.classification),
        "groups": list(rule.groups),
        "users": list(rule.users),
        "denied_groups": list(rule.denied_groups),
        "denied_users": list(rule.denied_users),
    }
