"""Airflow's two spellings of a connection, as a libpq URI: what both the scheduler and the command line know."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from psycopg.pq import Conninfo

from services.errors import SettingsError

SCHEMES = frozenset({"postgres", "postgresql"})
EXTRA_IN_URI = "__extra__"  # where Airflow puts extras that are not flat


def postgres_dsn(value: str, connection_id: str) -> str:
    """A libpq URI from the URI or JSON form of an Airflow Connection. Raises SettingsError, without the value.

    Of the extras those count that libpq knows (sslmode, ...); the others belong to Airflow's hook.
    """
    text = value.strip()
    if not text.startswith("{"):
        return _uri_from_uri(text, connection_id)
    fields = _mapping(text, connection_id)
    if fields.get("conn_type") not in SCHEMES:
        raise SettingsError(f"connection {connection_id!r} has conn_type {fields.get('conn_type')!r}, not 'postgres'")
    return _uri_from_fields(fields, connection_id)


def _uri_from_uri(text: str, connection_id: str) -> str:
    try:
        parts = urlsplit(text)
    except ValueError:
        # What it says may quote the user and the password.
        raise SettingsError(f"connection {connection_id!r} is not a valid URI") from None
    if parts.scheme not in SCHEMES:
        raise SettingsError(f"connection {connection_id!r} is no postgres:// URI and no JSON")
    given = dict(parse_qsl(parts.query))
    nested = _mapping(given.pop(EXTRA_IN_URI, "{}"), connection_id)
    return f"postgresql://{parts.netloc}{parts.path}{_query(_options({**nested, **given}))}"


def _uri_from_fields(fields: Mapping[str, Any], connection_id: str) -> str:
    login = quote(str(fields.get("login") or ""), safe="")
    password = f":{quote(str(fields['password']), safe='')}" if fields.get("password") else ""
    user = f"{login}{password}@" if login else ""
    host = str(fields.get("host") or "")
    port = f":{fields['port']}" if fields.get("port") else ""
    extra = fields.get("extra") or {}
    options = _options(_mapping(extra if isinstance(extra, str) else json.dumps(extra), connection_id))
    if host.startswith("/"):  # a folder with a unix socket has no place in the authority of a URI
        options["host"] = host
        if fields.get("port"):
            options["port"] = str(fields["port"])
        host = port = ""
    elif ":" in host:
        host = f"[{host}]"
    return f"postgresql://{user}{host}{port}/{quote(str(fields.get('schema') or ''), safe='')}{_query(options)}"


def _query(options: Mapping[str, str]) -> str:
    return f"?{urlencode(options)}" if options else ""


def _mapping(text: str, connection_id: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise SettingsError(f"connection {connection_id!r} is not valid JSON: {error.msg}") from error
    if not isinstance(value, dict):
        raise SettingsError(f"connection {connection_id!r}: its extra must be a JSON object")
    return value


def _options(extra: Mapping[str, Any]) -> dict[str, str]:
    known = {option.keyword.decode() for option in Conninfo.get_defaults()}
    return {key: str(int(value) if isinstance(value, bool) else value) for key, value in extra.items() if key in known}
