"""GET /v1/assets/{asset_id}."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from flask import Response, g
from pydantic import BaseModel, ConfigDict, Field

from services.access.principal import Permission, Principal
from services.api.routing import Answer, Route, json_response
from services.api.services import Assets
from services.retrieval.asset_view import AssetView, ChunkView, CurationPart
from services.retrieval.model import GovernancePart, is_absent


class AssetAnswer(BaseModel):
    """One asset. What `explain` guards is left out when the key does not have that permission."""

    model_config = ConfigDict(frozen=True)

    request_id: str
    index_version: int
    data_age_seconds: float | None
    attributes: dict[str, Any] = Field(description="by object type; absent ones are left out")
    narrative: str | None = Field(default=None, exclude_if=is_absent)
    chunks: tuple[ChunkView, ...] | None = Field(default=None, exclude_if=is_absent)
    governance_score: float | None = Field(default=None, exclude_if=is_absent)
    governance: tuple[GovernancePart, ...] | None = Field(default=None, exclude_if=is_absent)
    curation_score: float | None = Field(default=None, exclude_if=is_absent)
    curation: tuple[CurationPart, ...] | None = Field(default=None, exclude_if=is_absent)
    eligible: bool | None = Field(default=None, exclude_if=is_absent)
    eligibility_reasons: tuple[str, ...] | None = Field(default=None, exclude_if=is_absent)


ALWAYS_SHOWN = frozenset({"index_version", "data_age_seconds", "attributes"})


def asset_answer(view: AssetView, caller: Principal, request_id: str) -> AssetAnswer:
    """The view as far as the caller's permissions go."""
    explained = Permission.EXPLAIN in caller.permissions
    shown = {name: getattr(view, name) for name in AssetView.model_fields if explained or name in ALWAYS_SHOWN}
    return AssetAnswer(request_id=request_id, **shown)


def asset_routes(service: Assets) -> tuple[Route, ...]:
    def asset(caller: Principal, asset_id: str) -> Response:
        view = service.get(asset_id, caller)
        return json_response(
            asset_answer(view, caller, g.request_id),
            index_version=view.index_version,
            data_age_seconds=view.data_age_seconds,
        )

    return (
        Route(
            method="GET",
            path="/v1/assets/<asset_id:asset_id>",
            name="asset",
            summary="One asset; a hidden one and a missing one answer alike.",
            tag="retrieval",
            answer=Answer(
                "The asset's attributes and, with the permission `explain`, its narrative and numbers.", AssetAnswer
            ),
            view=asset,
            keyed=True,
            permission=Permission.SEARCH,
            rests_on_index=True,
            problems=(HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE),
        ),
    )
