"""services.access.keys: a token names its caller while its record is in force, and nothing else does."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from services.access.keys import KeyRecord, authenticate, create_key, key_id_of, principal_of
from services.access.principal import Permission, Principal
from services.access.rule import Level
from services.errors import InvalidRequest

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def made() -> tuple[str, KeyRecord]:
    return create_key(
        "finance-steward",
        ["finance", "audit", "finance"],
        Level.CONFIDENTIAL,
        [Permission.SEARCH, Permission.EXPLAIN],
        now=NOW,
        lifetime=HOUR,
    )


class OneKey:
    """A store that holds one record and counts how often it is asked."""

    def __init__(self, record: KeyRecord) -> None:
        self.record = record
        self.asked = 0

    def add(self, record: KeyRecord) -> None:
        self.record = record

    def find(self, key_id: str) -> KeyRecord | None:
        self.asked += 1
        return self.record if self.record.key_id == key_id else None

    def list(self) -> tuple[KeyRecord, ...]:
        return (self.record,)

    def revoke(self, key_id: str, now: datetime) -> bool:
        found = self.find(key_id)
        self.record = replace(self.record, revoked_at=now)
        return found is not None


def test_a_token_carries_256_random_bits_and_its_record_does_not_hold_it() -> None:
    tokens = {made()[0] for _ in range(50)}
    assert len(tokens) == 50
    token, record = made()
    assert re.fullmatch(r"vouch_[0-9a-f]{16}_[0-9a-f]{64}", token)
    assert key_id_of(token) == record.key_id
    assert len(record.token_hash) == 32
    assert token.rsplit("_", 1)[1] not in repr(record)
    assert token not in repr(record)


def test_a_token_names_its_caller() -> None:
    token, record = made()
    assert principal_of(token, record, NOW) == Principal(
        user="finance-steward",
        groups=("audit", "finance"),
        clearance=Level.CONFIDENTIAL,
        permissions=frozenset({Permission.SEARCH, Permission.EXPLAIN}),
        administrator=False,
    )


def test_a_key_ends_at_its_expiry_and_at_its_revocation() -> None:
    token, record = made()
    assert principal_of(token, record, NOW + HOUR - timedelta(seconds=1)) is not None
    assert principal_of(token, record, NOW + HOUR) is None
    assert principal_of(token, replace(record, revoked_at=NOW), NOW) is None


def test_only_the_very_token_opens_its_record() -> None:
    token, record = made()
    other_token, other = made()
    last = "0" if token[-1] != "0" else "1"
    assert principal_of(token[:-1] + last, record, NOW) is None
    assert principal_of(other_token, record, NOW) is None
    assert principal_of(token, other, NOW) is None
    # The hash covers the key id too: the secret of one key is worth nothing under another's id.
    assert principal_of(token.replace(record.key_id, other.key_id), other, NOW) is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: "",
        lambda token: token.upper(),
        lambda token: token + "0",
        lambda token: token + "\n",
        lambda token: " " + token,
        lambda token: token.removeprefix("vouch_"),
        lambda token: token.replace("_", "-"),
        lambda _: "vouch__",
        lambda _: "\x00\ud800",
        lambda _: "x" * 100_000,
    ],
)
def test_a_malformed_token_names_nobody_and_costs_no_look_up(spoil: object) -> None:
    token, record = made()
    store = OneKey(record)
    assert callable(spoil)
    assert authenticate(spoil(token), store, NOW) is None
    assert store.asked == 0


def test_every_call_looks_the_key_up_again_so_that_a_revocation_holds_at_once() -> None:
    token, record = made()
    store = OneKey(record)
    assert authenticate(token, store, NOW) is not None
    assert authenticate(token, store, NOW) is not None
    assert store.asked == 2
    store.revoke(record.key_id, NOW)
    assert authenticate(token, store, NOW) is None


def test_an_unknown_key_id_names_nobody() -> None:
    token, record = made()
    assert authenticate(token, OneKey(replace(record, key_id="0" * 16)), NOW) is None


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"user": " "}, "user"),
        ({"user": "a\x00b"}, "user"),
        ({"user": "a\nb"}, "user"),
        ({"groups": ["finance", ""]}, "groups"),
        ({"groups": ["\ud800"]}, "groups"),
        ({"permissions": []}, "permissions"),
        ({"lifetime": timedelta(0)}, "lifetime"),
    ],
)
def test_a_key_that_could_never_work_is_refused_with_the_argument_named(changes: dict[str, object], named: str) -> None:
    arguments: dict[str, object] = {"user": "ops", "now": NOW, **changes}
    with pytest.raises(InvalidRequest, match=f"^{named}: "):
        create_key(**arguments)  # type: ignore[arg-type]  # the wrong values are the point


def test_names_are_kept_without_surrounding_blanks() -> None:
    _, record = create_key(" ops ", [" sales "], now=NOW)
    assert (record.user, record.groups) == ("ops", ("sales",))
