"""POST /v1/search."""

from __future__ import annotations

from http import HTTPStatus

from flask import Response, g, request

from services.access.principal import Permission, Principal
from services.api.auth import require
from services.api.metrics import ApiMetrics, Stage
from services.api.parsing import parse_search
from services.api.routing import Answer, Route, json_response
from services.api.services import Search
from services.retrieval.model import SearchAnswer, SearchRequest


def search_routes(service: Search, metrics: ApiMetrics) -> tuple[Route, ...]:
    def search(caller: Principal) -> Response:
        with metrics.stage(Stage.PARSE):
            asked = parse_search(request)
        if asked.explain:
            require(caller, Permission.EXPLAIN)
        # A few questions with these would tell the numbers that explain guards.
        if asked.filters.min_curation_score is not None:
            require(caller, Permission.EXPLAIN, "The filter min_curation_score")
        if asked.min_relevance is not None:
            require(caller, Permission.EXPLAIN, "A min_relevance of one's own")
        with metrics.stage(Stage.SEARCH):
            answer = service.search(asked, caller, g.request_id)
        with metrics.stage(Stage.RENDER):
            return json_response(answer, index_version=answer.index_version, data_age_seconds=answer.data_age_seconds)

    return (
        Route(
            method="POST",
            path="/v1/search",
            name="search",
            summary="Ranked assets that answer the query, or a refusal that asks back.",
            tag="retrieval",
            answer=Answer("The ranked results, best first, or a refusal.", SearchAnswer),
            view=search,
            keyed=True,
            permission=Permission.SEARCH,
            body=SearchRequest,
            rests_on_index=True,
            problems=(HTTPStatus.SERVICE_UNAVAILABLE,),
        ),
    )
