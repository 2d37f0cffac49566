"""API keys in PostgreSQL."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from services.access.keys import KeyRecord
from services.access.principal import Permission
from services.access.rule import Level
from services.index.pgvector.database import Database
from services.sql_files import load_queries

QUERIES = load_queries("pgvector/queries/keys.sql")


class PgKeyStore:
    """See `services.access.keys.KeyStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, record: KeyRecord) -> None:
        row = {
            "key_id": record.key_id,
            "token_hash": record.token_hash,
            "user_name": record.user,
            "groups": list(record.groups),
            "clearance": int(record.clearance),
            "permissions": sorted(record.permissions),
            "created_at": record.created_at,
            "expires_at": record.expires_at,
            "revoked_at": record.revoked_at,
        }
        with self._database.transaction() as connection:
            connection.execute(QUERIES["key_add"], row)

    def find(self, key_id: str) -> KeyRecord | None:
        with self._database.transaction() as connection:
            row = connection.execute(QUERIES["key_find"], {"key_id": key_id}).fetchone()
        return _record(row) if row else None

    def list(self) -> tuple[KeyRecord, ...]:
        with self._database.transaction() as connection:
            rows = connection.execute(QUERIES["key_list"]).fetchall()
        return tuple(_record(row) for row in rows)

    def revoke(self, key_id: str, now: datetime) -> bool:
        with self._database.transaction() as connection:
            return connection.execute(QUERIES["key_revoke"], {"key_id": key_id, "now": now}).rowcount == 1


def _record(row: dict[str, Any]) -> KeyRecord:
    return KeyRecord(
        key_id=row["key_id"],
        token_hash=bytes(row["token_hash"]),
        user=row["user_name"],
        groups=tuple(row["groups"]),
        clearance=Level(row["clearance"]),
        permissions=frozenset(map(Permission, row["permissions"])),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
    )
