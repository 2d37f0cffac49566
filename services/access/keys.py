"""API keys: how a token is made, what is kept of it, and which caller it names.

A token is `vouch_<key id>_<secret>`: 16 hex digits to find the record by, 64 hex digits (256 random bits) that nobody
can guess. Only a SHA-256 of the token is kept. A slow password hash would add nothing: it protects secrets that people
choose, and a search through 2**256 is hopeless at any speed; its cost would fall on every request instead.

A key is rotated by creating a second one for the same user and revoking the first when its callers have moved.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from services.access.principal import Permission, Principal
from services.access.rule import Level
from services.errors import InvalidRequest

KEY_ID_BYTES = 8
SECRET_BYTES = 32
DEFAULT_LIFETIME = timedelta(days=365)

_TOKEN = re.compile(rf"vouch_([0-9a-f]{{{2 * KEY_ID_BYTES}}})_[0-9a-f]{{{2 * SECRET_BYTES}}}")
_CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True)
class KeyRecord:
    """What is kept of a key. `token_hash` is 32 bytes; times are aware; `revoked_at` is None while it is in force."""

    key_id: str
    token_hash: bytes
    user: str
    groups: tuple[str, ...]
    clearance: Level
    permissions: frozenset[Permission]
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None = None

    def in_force(self, now: datetime) -> bool:
        return self.revoked_at is None and now < self.expires_at


class KeyStore(Protocol):
    """Where key records are kept. Raises StoreUnavailable when it cannot be reached."""

    def add(self, record: KeyRecord) -> None: ...

    def find(self, key_id: str) -> KeyRecord | None: ...

    def list(self) -> tuple[KeyRecord, ...]:
        """Every key, the expired and revoked too, oldest first."""
        ...

    def revoke(self, key_id: str, now: datetime) -> bool:
        """True when that revoked it; False when there is no such key or it was revoked before."""
        ...


def create_key(
    user: str,
    groups: Iterable[str] = (),
    clearance: Level = Level.PUBLIC,
    permissions: Iterable[Permission] = (Permission.SEARCH,),
    *,
    now: datetime,
    lifetime: timedelta = DEFAULT_LIFETIME,
) -> tuple[str, KeyRecord]:
    """A new token, to be shown once, and the record to keep. Raises InvalidRequest naming the argument."""
    granted = frozenset(permissions)
    if not granted:
        raise InvalidRequest("permissions: a key needs at least one; known are: " + ", ".join(Permission))
    if lifetime <= timedelta(0):
        raise InvalidRequest("lifetime: a key must be valid for some time")
    key_id = secrets.token_hex(KEY_ID_BYTES)
    token = f"vouch_{key_id}_{secrets.token_hex(SECRET_BYTES)}"
    record = KeyRecord(
        key_id=key_id,
        token_hash=_hash(token),
        user=_clean_name("user", user),
        groups=tuple(sorted({_clean_name("groups", group) for group in groups})),
        clearance=clearance,
        permissions=granted,
        created_at=now,
        expires_at=now + lifetime,
    )
    return token, record


def key_id_of(token: str) -> str | None:
    """The key id that a well-formed token carries; None for anything else."""
    match = _TOKEN.fullmatch(token)
    return match[1] if match else None


def principal_of(token: str, record: KeyRecord, now: datetime) -> Principal | None:
    """The caller that the token names, when it is this record's and the record is in force."""
    genuine = hmac.compare_digest(_hash(token), record.token_hash)  # takes the same time wherever they differ
    if not genuine or not record.in_force(now):
        return None
    return Principal(user=record.user, groups=record.groups, clearance=record.clearance, permissions=record.permissions)


def authenticate(token: str, store: KeyStore, now: datetime) -> Principal | None:
    """The caller that the token names, or None. Nothing is cached: a revocation holds for the next request."""
    key_id = key_id_of(token)
    record = store.find(key_id) if key_id else None
    return principal_of(token, record, now) if record else None


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _clean_name(argument: str, name: str) -> str:
    """User and group names compare exactly with access lists, so what could never be equal is refused here."""
    name = name.strip()
    if not name or _CONTROL.search(name):
        raise InvalidRequest(f"{argument}: a name must have visible characters and no control characters")
    return name
