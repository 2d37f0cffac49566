"""Airflow's two spellings of a connection, as a libpq URI: what both the scheduler and the command line know."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from services.errors import SettingsError

SCHEMES = frozenset({"postgres", "postgresql"})


def postgres_dsn(value: str, connection_id: str) -> str:
    """A libpq URI from the URI or JSON form of an Airflow Connection. Raises SettingsError, without the value."""
    text = value.strip()
    if not text.startswith("{"):
        parts = urlsplit(text)
        if parts.scheme not in SCHEMES:
            raise SettingsError(f"connection {connection_id!r} is no postgres:// URI and no JSON")
        return urlunsplit(parts._replace(scheme="postgresql"))
    try:
        fields: dict[str, Any] = json.loads(text)
    except json.JSONDecodeError as error:
        raise SettingsError(f"connection {connection_id!r} is not valid JSON: {error.msg}") from error
    if fields.get("conn_type") not in SCHEMES:
        raise SettingsError(f"connection {connection_id!r} has conn_type {fields.get('conn_type')!r}, not 'postgres'")
    return _uri(fields)


def _uri(fields: dict[str, Any]) -> str:
    login = quote(str(fields.get("login") or ""), safe="")
    password = f":{quote(str(fields['password']), safe='')}" if fields.get("password") else ""
    user = f"{login}{password}@" if login else ""
    host = str(fields.get("host") or "")
    port = f":{fields['port']}" if fields.get("port") else ""
    options: dict[str, Any] = dict(fields.get("extra") or {}) if isinstance(fields.get("extra"), dict) else {}
    if host.startswith("/"):  # a folder with a unix socket has no place in the authority of a URI
        options["host"] = host
        if fields.get("port"):
            options["port"] = fields["port"]
        host = port = ""
    query = f"?{urlencode(options)}" if options else ""
    return f"postgresql://{user}{host}{port}/{quote(str(fields.get('schema') or ''), safe='')}{query}"
