"""The query API as a Flask app: parse, call, render. What it answers with comes from `QueryServices`."""

from __future__ import annotations

from functools import cache
from typing import Any

from flask import Flask

from services.api.config import ApiConfig
from services.api.lifecycle import register_lifecycle
from services.api.metrics import ApiMetrics
from services.api.openapi import openapi_document
from services.api.problems import register_problems
from services.api.routes.assets import asset_routes
from services.api.routes.docs import docs_routes
from services.api.routes.operations import operations_routes
from services.api.routes.search import search_routes
from services.api.routes.status import status_routes
from services.api.routes.worklist import worklist_routes
from services.api.routing import AssetIdConverter, Route, add_routes
from services.api.services import QueryServices


def create_app(services: QueryServices, config: ApiConfig) -> Flask:
    """A new app with counters of its own; it opens nothing and calls no service before the first request."""
    app = Flask("vouch", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = config.body_bytes_limit
    app.url_map.converters["asset_id"] = AssetIdConverter
    app.url_map.merge_slashes = False  # an asset's id may hold "//"
    metrics = ApiMetrics()
    register_lifecycle(app, metrics)
    register_problems(app, config)
    add_routes(app, route_table(services, config, metrics), services.keys)
    return app


def route_table(services: QueryServices, config: ApiConfig, metrics: ApiMetrics) -> tuple[Route, ...]:
    """Every route there is."""

    @cache
    def document() -> dict[str, Any]:
        return openapi_document(routes)

    routes = (
        *search_routes(services.search, metrics),
        *asset_routes(services.assets),
        *worklist_routes(services.worklist),
        *status_routes(services.status, services.readiness),
        *operations_routes(services.readiness, metrics, config.retry_after_seconds),
        *docs_routes(document),
    )
    return routes
