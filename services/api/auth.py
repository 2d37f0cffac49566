"""Who calls: the token of a request, the caller it names, and what that caller may do."""

from __future__ import annotations

from http import HTTPStatus

from werkzeug.datastructures import Headers

from services.access.principal import Permission, Principal
from services.api.problems import RequestRefused
from services.api.services import Keys

CHALLENGE = 'Bearer realm="vouch"'


def authenticated(headers: Headers, keys: Keys) -> Principal:
    """The caller that the headers name. Raises RequestRefused (401) when they name none."""
    token = bearer_token(headers)
    if token is None:
        raise RequestRefused(
            HTTPStatus.UNAUTHORIZED,
            "no-key",
            "This call needs an API key: send it as 'Authorization: Bearer <token>' or as 'X-API-Key: <token>'.",
            headers={"WWW-Authenticate": CHALLENGE},
        )
    principal = keys.authenticate(token)
    if principal is None:
        raise RequestRefused(
            HTTPStatus.UNAUTHORIZED,
            "key-not-valid",
            "This API key is not valid; ask the operator of this service for another.",
            headers={"WWW-Authenticate": f'{CHALLENGE}, error="invalid_token"'},
        )
    return principal


def bearer_token(headers: Headers) -> str | None:
    """The token of `Authorization: Bearer` or else of `X-API-Key`; None when neither is there."""
    scheme, _, credentials = headers.get("Authorization", "").strip().partition(" ")
    if scheme.lower() == "bearer" and credentials.strip():
        return credentials.strip()
    return headers.get("X-API-Key", "").strip() or None


def require(caller: Principal, permission: Permission, what: str = "This call") -> None:
    """Raises RequestRefused (403), naming what needs the permission, when the caller lacks it."""
    if permission not in caller.permissions:
        raise RequestRefused(
            HTTPStatus.FORBIDDEN,
            "permission-missing",
            f"{what} needs the permission '{permission}', which this API key does not have.",
        )
