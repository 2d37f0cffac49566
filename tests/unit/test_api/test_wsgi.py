"""services.wsgi: the app exists once a server asks for it, and is warm then."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog
from flask import Flask

from services import wsgi
from services.api.services import QueryServices
from services.errors import SettingsError
from services.settings import Settings

from .conftest import Api


@pytest.fixture(autouse=True)
def _one_app_per_test() -> Iterator[None]:
    wsgi.build.cache_clear()
    yield
    wsgi.build.cache_clear()
    structlog.reset_defaults()


def test_the_app_is_built_once_from_the_settings_and_warmed(monkeypatch: pytest.MonkeyPatch, api: Api) -> None:
    seen: list[Settings] = []

    def wired(settings: Settings) -> QueryServices:
        seen.append(settings)
        return api.services

    monkeypatch.setattr(wsgi, "query_services", wired)
    monkeypatch.setenv("VOUCH_API_THREADS", "9")

    app = wsgi.app

    assert isinstance(app, Flask)
    assert wsgi.app is app
    assert [settings.api_threads for settings in seen] == [9]
    assert len(api.search.asked) == 1
    assert app.test_client().get("/v1/status", headers=api.headers()).status_code == 200


def test_a_wrong_setting_stops_the_start_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOUCH_API_PORT", "0")
    with pytest.raises(SettingsError, match="VOUCH_API_PORT"):
        wsgi.build()


def test_the_module_has_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wsgi, "query_services", None)
    with pytest.raises(AttributeError, match="application"):
        _ = wsgi.application
