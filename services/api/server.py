"""The query API under gunicorn: what `vouch serve` runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import structlog
from flask import Flask
from gunicorn.app.base import BaseApplication

from services.access.principal import Permission, Principal
from services.api.services import QueryServices
from services.errors import VouchError
from services.retrieval.model import Mode, SearchRequest

GRACEFUL_TIMEOUT_SECONDS = 30  # requests under way may finish
KEEP_ALIVE_SECONDS = 5
REQUEST_LINE_BYTES = 8190  # gunicorn's most: an asset's id of 2,048 characters, percent-encoded, is long

log = structlog.get_logger("vouch.api")


def serve(load_app: Callable[[], Flask], *, host: str = "127.0.0.1", port: int, threads: int) -> None:
    """Serve until a signal ends it. `load_app` is called in the worker, so nothing it opens crosses a fork.

    One worker process, since each would hold its own copy of the model; its threads share it. Connections that come
    before `load_app` has returned wait, they are not refused.
    """
    options = {
        "bind": f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
        "workers": 1,
        "worker_class": "gthread",
        "threads": threads,
        "graceful_timeout": GRACEFUL_TIMEOUT_SECONDS,
        "keepalive": KEEP_ALIVE_SECONDS,
        "limit_request_line": REQUEST_LINE_BYTES,
        "accesslog": None,  # the app writes its own, structured
        "loglevel": "warning",
        "control_socket_disable": True,
        "proc_name": "vouch",
    }
    _Server(load_app, options).run()


class _Server(BaseApplication):
    def __init__(self, load_app: Callable[[], Flask], options: dict[str, Any]) -> None:
        self._load_app = load_app
        self._options = options
        super().__init__()

    def load_config(self) -> None:
        for name, value in self._options.items():
            self.cfg.set(name, value)

    def load(self) -> Any:  # a WSGI app, which Flask's types and gunicorn's spell differently
        return self._load_app()


# Sees only what everybody may; the answer is thrown away, the model and a connection stay.
_WARMER = Principal(user="warm-up", permissions=frozenset({Permission.SEARCH}))


def warm(services: QueryServices) -> None:
    """Load the model and open a connection with one search. A failure is logged; `/readyz` will tell the same."""
    try:
        services.search.search(SearchRequest(query="warm up", mode=Mode.DISCOVERY, limit=1), _WARMER, "warm-up")
    except VouchError as error:
        log.warning("warm-up failed", error=type(error).__name__, message=str(error))
