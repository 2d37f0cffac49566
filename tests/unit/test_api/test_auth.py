"""Who may call: keys in either header, one answer for all that is wrong with a key, permissions by name."""

from __future__ import annotations

from datetime import timedelta

import pytest

from services.access.principal import Permission

from .conftest import NOW, Api

KEYED = [("POST", "/v1/search"), ("GET", "/v1/assets/a"), ("GET", "/v1/status")]


@pytest.mark.parametrize(("method", "path"), KEYED)
def test_without_a_key_every_v1_call_is_refused_with_a_challenge(api: Api, method: str, path: str) -> None:
    response = api.client.open(path, method=method, json={"query": "orders"})
    assert response.status_code == 401
    assert response.mimetype == "application/problem+json"
    assert response.headers["WWW-Authenticate"].startswith("Bearer ")
    assert response.headers["Cache-Control"] == "no-store"
    assert api.search.asked == []
    assert api.assets.asked == []


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs", "/docs/docs.js", "/"])
def test_operations_and_documentation_need_no_key(api: Api, path: str) -> None:
    assert api.client.get(path).status_code in {200, 302}


def test_a_key_is_taken_from_either_header(api: Api) -> None:
    token = api.token()
    for headers in (
        {"Authorization": f"Bearer {token}"},
        {"Authorization": f"bearer  {token} "},
        {"X-API-Key": token},
        {"Authorization": "Basic b3BzOm9wcw==", "X-API-Key": token},
    ):
        assert api.client.get("/v1/status", headers=headers).status_code == 200, headers


def test_a_bad_an_expired_and_a_revoked_key_get_the_same_answer(api: Api) -> None:
    expired = api.token(days=1)
    revoked = api.token()
    bad = api.token()[:-4] + "zzzz"
    unknown = "vouch_" + "0" * 16 + "_" + "0" * 64
    api.now = NOW + timedelta(days=2)
    api.store.revoke(revoked.split("_")[1], NOW)

    answers = set()
    for token in (expired, revoked, bad, unknown, "x", "ü" * 9):
        response = api.client.get("/v1/status", headers={"X-API-Key": token, "X-Request-ID": "r"})
        answers.add((response.status_code, response.headers["WWW-Authenticate"], response.data))
    assert len(answers) == 1
    assert answers.pop()[0] == 401


def test_a_revocation_holds_for_the_next_request(api: Api) -> None:
    token = api.token()
    assert api.client.get("/v1/status", headers={"X-API-Key": token}).status_code == 200
    api.store.revoke(token.split("_")[1], NOW)
    assert api.client.get("/v1/status", headers={"X-API-Key": token}).status_code == 401


@pytest.mark.parametrize(("method", "path"), KEYED[:2])
def test_a_key_without_the_permission_is_told_which_one_it_lacks(api: Api, method: str, path: str) -> None:
    response = api.client.open(path, method=method, json={"query": "x"}, headers=api.headers(Permission.OPERATE))
    assert response.status_code == 403
    assert response.json is not None
    assert "'search'" in response.json["detail"]


def test_the_caller_is_known_before_the_body_is_looked_at(api: Api) -> None:
    assert api.client.post("/v1/search", data=b"{", content_type="text/plain").status_code == 401


@pytest.mark.parametrize("claimed", [{"user": "admin"}, {"groups": ["admins"]}, {"clearance": 3}, {"principal": {}}])
def test_who_the_caller_is_cannot_be_said_in_the_request(api: Api, claimed: dict[str, object]) -> None:
    response = api.client.post("/v1/search", json={"query": "x", **claimed}, headers=api.headers())
    assert response.status_code == 422
    assert api.search.asked == []
