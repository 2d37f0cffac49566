"""Errors tell the caller the fix and the log the place; neither tells what was asked, nor the token."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
import structlog

from services.access.principal import Permission
from services.errors import InvalidRequest, ModelError, StoreUnavailable
from services.logs import configure_logging

from .conftest import Api

QUERY = "what does the chief secretary earn"


@pytest.fixture(autouse=True)
def _fresh_logging() -> Iterator[None]:
    yield
    structlog.reset_defaults()


@pytest.mark.parametrize(
    ("method", "path", "status", "kind"),
    [
        ("GET", "/nothing", 404, "not-found"),
        ("GET", "/v1/nothing", 404, "not-found"),
        ("GET", "/v1/search", 405, "method-not-allowed"),
        ("DELETE", "/v1/assets/a", 405, "method-not-allowed"),
        ("POST", "/healthz", 405, "method-not-allowed"),
    ],
)
def test_what_flask_itself_refuses_is_a_problem_too(api: Api, method: str, path: str, status: int, kind: str) -> None:
    response = api.client.open(path, method=method)
    assert response.status_code == status
    assert response.mimetype == "application/problem+json"
    assert response.json is not None
    assert set(response.json) == {"type", "title", "status", "detail", "instance", "errors"}
    assert response.json["type"] == f"urn:vouch:problem:{kind}"
    assert response.json["status"] == status
    assert response.json["instance"] == response.headers["X-Request-ID"]
    assert ("Allow" in response.headers) == (status == 405)


def test_a_store_that_is_down_is_worth_another_try(api: Api) -> None:
    api.search.fails_with = lambda _: StoreUnavailable("no route to db.internal as user vouch")
    response = api.client.post("/v1/search", json={"query": "orders"}, headers=api.headers())
    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) > 0
    assert "db.internal" not in response.text


def test_a_request_that_the_service_refuses_keeps_the_services_words(api: Api) -> None:
    api.search.fails_with = lambda _: InvalidRequest("filters.source: no such source")
    response = api.client.post("/v1/search", json={"query": "orders"}, headers=api.headers())
    assert response.status_code == 422
    assert response.json is not None
    assert response.json["detail"] == "filters.source: no such source"


@pytest.mark.parametrize(
    "error", [ModelError("model /srv/secret-place is missing"), RuntimeError(QUERY), KeyError(QUERY)]
)
def test_an_internal_error_shows_nothing_but_its_request_id(api: Api, error: Exception) -> None:
    api.search.fails_with = lambda _: error
    headers = {**api.headers(), "X-Request-ID": "trace-1"}
    with structlog.testing.capture_logs() as lines:
        response = api.client.post("/v1/search", json={"query": QUERY}, headers=headers)

    assert response.status_code == 500
    assert response.mimetype == "application/problem+json"
    assert response.json is not None
    assert response.json["instance"] == "trace-1"
    for internal in (QUERY, "secret-place", "Traceback", type(error).__name__, ".py"):
        assert internal not in response.text
    [failure] = [line for line in lines if line["log_level"] == "error"]
    assert (failure["request_id"], failure["error"]) == ("trace-1", type(error).__name__)
    assert any("routes/search.py" in place for place in failure["raised_at"])


def test_a_failing_key_store_is_a_problem_like_any_other(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def down(key_id: str) -> None:
        raise StoreUnavailable(f"cannot look up {key_id}")

    headers = api.headers()
    monkeypatch.setattr(api.store, "find", down)
    assert api.client.get("/v1/status", headers=headers).status_code == 503


@pytest.mark.parametrize("offered", ["req-1", "a" * 128, "2026:03.01_x", "0"])
def test_a_fit_request_id_is_kept(api: Api, offered: str) -> None:
    response = api.client.get("/healthz", headers={"X-Request-ID": offered})
    assert response.headers["X-Request-ID"] == offered


@pytest.mark.parametrize("offered", ["", "a" * 129, "a b", 'a"b', "ü", "-a", "a;b", "<script>"])
def test_an_unfit_request_id_is_replaced(api: Api, offered: str) -> None:
    response = api.client.get("/healthz", headers={"X-Request-ID": offered})
    assert re.fullmatch("[0-9a-f]{32}", response.headers["X-Request-ID"])


def test_one_line_per_request_says_who_what_and_how_long(api: Api) -> None:
    with structlog.testing.capture_logs() as lines:
        api.client.post("/v1/search", json={"query": QUERY}, headers={**api.headers(), "X-Request-ID": "r1"})
        api.client.get("/v1/assets/payroll", headers=api.headers())
        api.client.get("/nothing")
    search, asset, nothing = lines
    assert search["duration_ms"] >= 0
    del search["duration_ms"]
    assert search == {
        "event": "request",
        "log_level": "info",
        "request_id": "r1",
        "method": "POST",
        "route": "/v1/search",
        "status": 200,
        "user": "sales-ops-lead",
    }
    assert (asset["route"], asset["status"]) == ("/v1/assets/<asset_id:asset_id>", 404)
    assert (nothing["route"], nothing["user"]) == ("unmatched", None)


@pytest.mark.parametrize("level", ["info", "error"])
def test_neither_query_nor_token_is_ever_written_above_debug(
    api: Api, level: str, capfd: pytest.CaptureFixture[str]
) -> None:
    configure_logging(level)
    token = api.token(Permission.SEARCH)
    headers = {"X-API-Key": token}
    api.search.fails_with = lambda request: RuntimeError(request.query)
    api.client.post("/v1/search", json={"query": QUERY}, headers=headers)
    api.search.fails_with = lambda request: StoreUnavailable(f"asked by {len(request.query)} characters")
    api.client.post("/v1/search", json={"query": QUERY}, headers=headers)
    api.search.fails_with = None
    api.client.post("/v1/search", json={"query": QUERY}, headers=headers)
    api.client.post("/v1/search", json={"query": QUERY, "limit": 0}, headers=headers)
    api.client.get("/v1/status", headers={"X-API-Key": token + "0"})

    out, err = capfd.readouterr()

    assert out == ""
    assert QUERY not in err
    assert token not in err
    assert token.rsplit("_", 1)[1] not in err
    lines = [json.loads(line) for line in err.splitlines()]
    assert all(line["level"] in {"info", "error"} and line["timestamp"] for line in lines)
    assert len([line for line in lines if line["event"] == "request"]) == (5 if level == "info" else 0)


def test_debug_logs_tell_the_whole_error(api: Api, capfd: pytest.CaptureFixture[str]) -> None:
    configure_logging("debug")
    api.search.fails_with = lambda _: RuntimeError("the cause")
    api.client.post("/v1/search", json={"query": QUERY}, headers=api.headers())
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert any("RuntimeError: the cause" in line.get("exception", "") for line in lines)
