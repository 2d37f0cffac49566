"""GET /v1/worklist, as JSON or CSV."""

from __future__ import annotations

from http import HTTPStatus
from typing import Literal
from urllib.parse import urlencode

from flask import Response, g, request
from pydantic import Field

from services.access.principal import Permission, Principal
from services.api.parsing import parse_parameters
from services.api.routing import JSON, LINK_HEADER, Answer, Route, json_response, rested
from services.api.services import Worklist
from services.retrieval.worklist_table import worklist_csv, worklist_table
from services.retrieval.worklist_view import WorklistPage, WorklistRequest

PATH = "/v1/worklist"
CSV = "text/csv"


class WorklistQuery(WorklistRequest):
    """What the query string may ask for."""

    format: Literal["json", "csv"] | None = Field(default=None, description="none: what the header Accept prefers")


class WorklistAnswer(WorklistPage):
    """A page of the work list: nearest to the threshold first, then by id."""

    request_id: str


def worklist_routes(service: Worklist) -> tuple[Route, ...]:
    def worklist(caller: Principal) -> Response:
        asked = parse_parameters(WorklistQuery, request)
        as_csv = _wants_csv(asked)
        page = service.page(_request(asked, summary=asked.summary and not as_csv), caller)
        response = _csv(page) if as_csv else _json(page)
        response.vary.add("Accept")
        if page.next_cursor is not None:
            response.headers[LINK_HEADER] = f'<{_address(asked, page.next_cursor)}>; rel="next"'
        return response

    return (
        Route(
            method="GET",
            path=PATH,
            name="worklist",
            summary="The assets below their curation threshold: what each lacks, and whom to ask.",
            tag="stewards",
            answer=Answer(
                "A page of the work list, nearest to the threshold first; as CSV with a header line, without summary.",
                WorklistAnswer,
                also=(CSV,),
            ),
            view=worklist,
            keyed=True,
            permission=Permission.STEWARD,
            query=WorklistQuery,
            paged=True,
            rests_on_index=True,
            problems=(HTTPStatus.SERVICE_UNAVAILABLE,),
        ),
    )


def _wants_csv(asked: WorklistQuery) -> bool:
    if asked.format is not None:
        return asked.format == "csv"
    return request.accept_mimetypes.best_match([JSON, CSV], default=JSON) == CSV


def _request(asked: WorklistQuery, *, summary: bool) -> WorklistRequest:
    wanted = asked.model_dump(include=set(WorklistRequest.model_fields))
    return WorklistRequest.model_validate({**wanted, "summary": summary})


def _json(page: WorklistPage) -> Response:
    answer = WorklistAnswer(request_id=g.request_id, **dict(page))
    return json_response(answer, index_version=page.index_version, data_age_seconds=page.data_age_seconds)


def _csv(page: WorklistPage) -> Response:
    response = Response(
        worklist_csv(worklist_table(page.entries)), content_type=f"{CSV}; charset=utf-8; header=present"
    )
    response.headers["Content-Disposition"] = 'attachment; filename="worklist.csv"'
    return rested(response, page.index_version, page.data_age_seconds)


def _address(asked: WorklistQuery, cursor: str) -> str:
    """The same question for the next page."""
    parameters = asked.model_copy(update={"cursor": cursor}).model_dump(mode="json", exclude_none=True)
    return f"{PATH}?{urlencode(parameters, doseq=True)}"
