"""The query API for a WSGI server: `gunicorn services.wsgi:app`. `vouch serve` calls `build` itself."""

from __future__ import annotations

from functools import cache

from flask import Flask

from services.api.app import create_app
from services.api.config import ApiConfig
from services.api.server import warm
from services.logs import configure_logging
from services.settings import load_settings
from services.wiring import query_services


@cache
def build() -> Flask:
    """The app of this process, made once from the settings and warmed. Raises SettingsError naming the key."""
    settings = load_settings()
    configure_logging(settings.log_level)
    services = query_services(settings)
    warm(services)
    return create_app(services, ApiConfig())


def __getattr__(name: str) -> Flask:
    # `app` comes into being when a server asks for it, not when something imports this module.
    if name == "app":
        return build()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
