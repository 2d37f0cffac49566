"""Airflow's spellings of a PostgreSQL connection, as libpq understands them."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from psycopg.conninfo import conninfo_to_dict

from services.catalog.sources.connections import postgres_dsn
from services.errors import SettingsError

SECRET = "p@ss/w:rd"


def as_libpq(value: str | dict[str, Any]) -> dict[str, str]:
    """What libpq reads from the URI made of a connection."""
    text = value if isinstance(value, str) else json.dumps(value)
    found = conninfo_to_dict(postgres_dsn(text, "shop"))
    return {key: str(item) for key, item in found.items()}


FIELDS = {
    "conn_type": "postgres",
    "host": "db.example",
    "login": "reader",
    "password": SECRET,
    "schema": "shop",
    "port": 5433,
}
PARSED = {"host": "db.example", "user": "reader", "password": SECRET, "dbname": "shop", "port": "5433"}


def test_the_json_form() -> None:
    assert as_libpq(FIELDS) == PARSED


def test_the_uri_form_in_both_spellings() -> None:
    for scheme in ("postgres", "postgresql"):
        assert as_libpq(f"{scheme}://reader:{quote(SECRET, safe='')}@db.example:5433/shop") == PARSED


@pytest.mark.parametrize("as_text", [True, False])
def test_extras_that_libpq_knows_count_and_the_hooks_own_do_not(as_text: bool) -> None:
    extra = {"sslmode": "require", "connect_timeout": 3, "keepalives": True, "cursor": "dictcursor", "iam": False}
    parsed = as_libpq({**FIELDS, "extra": json.dumps(extra) if as_text else extra})
    assert parsed == {**PARSED, "sslmode": "require", "connect_timeout": "3", "keepalives": "1"}


def test_extras_in_a_uri_flat_and_nested() -> None:
    nested = quote(json.dumps({"sslmode": "require", "cursor": {"a": 1}}))
    parsed = as_libpq(f"postgres://db.example/shop?__extra__={nested}&connect_timeout=3&cursor=dictcursor")
    assert parsed == {"host": "db.example", "dbname": "shop", "sslmode": "require", "connect_timeout": "3"}


def test_a_folder_with_a_socket_is_a_host() -> None:
    parsed = as_libpq({"conn_type": "postgres", "host": "/run/postgresql", "port": 5432, "schema": "shop"})
    assert parsed == {"host": "/run/postgresql", "port": "5432", "dbname": "shop"}
    assert as_libpq("postgres:///shop?host=/run/postgresql") == {"host": "/run/postgresql", "dbname": "shop"}


def test_an_ipv6_address_is_a_host() -> None:
    assert as_libpq({**FIELDS, "host": "::1"}) == {**PARSED, "host": "::1"}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (f"mysql://u:{SECRET}@h/d", "is no postgres:// URI and no JSON"),
        (SECRET, "is no postgres:// URI and no JSON"),
        (f"postgres://u:{quote(SECRET, safe='')}@[h/d", "is not a valid URI"),
        ('{"conn_type": "mysql"}', "has conn_type 'mysql', not 'postgres'"),
        ("{}", "has conn_type None"),
        (f'{{"password": "{SECRET}"', "is not valid JSON"),
        (f'{{"conn_type": "postgres", "password": "{SECRET}", "extra": "sslmode"}}', "is not valid JSON"),
        ('{"conn_type": "postgres", "extra": "[1]"}', "its extra must be a JSON object"),
        ('{"conn_type": "postgres", "extra": [1]}', "its extra must be a JSON object"),
    ],
)
def test_what_is_no_connection_is_named_without_its_value(value: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        postgres_dsn(value, "shop")
    assert f"connection 'shop' {said}" in str(caught.value) or f"connection 'shop': {said}" in str(caught.value)
    assert SECRET not in str(caught.value)
