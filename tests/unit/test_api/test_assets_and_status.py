"""GET /v1/assets/{id} and /v1/status: as much as the key's permissions allow, and no hint of what is hidden."""

from __future__ import annotations

import pytest

from services.access.principal import Permission

from .conftest import Api, asset_view

ODD_IDS = [
    "postgres:table:shop.public.orders",
    "urn:li:dataset:(urn:li:dataPlatform:hive,shop.orders,PROD)",
    "s3://bucket/folder//file.csv",
    "/data/file.csv",
    "/",
    "folder/",
    "a b?c=d#e%41",
    "漢字/😀",
    "a/related",
]


@pytest.mark.parametrize("asset_id", ODD_IDS)
def test_any_id_finds_its_asset(api: Api, asset_id: str) -> None:
    api.assets.views[asset_id] = asset_view(id=asset_id)
    escaped = "".join(f"%{byte:02X}" for byte in asset_id.encode())
    response = api.client.get(f"/v1/assets/{escaped}", headers=api.headers())
    assert response.status_code == 200
    assert response.json is not None
    assert response.json["attributes"] == {"id": asset_id}


def test_slashes_may_stay_as_they_are(api: Api) -> None:
    api.assets.views["s3://bucket/a//b"] = asset_view(id="s3://bucket/a//b")
    assert api.client.get("/v1/assets/s3://bucket/a//b", headers=api.headers()).status_code == 200


def test_numbers_and_narrative_need_the_permission_explain(api: Api) -> None:
    api.assets.views["a"] = asset_view(id="a")
    plain = api.client.get("/v1/assets/a", headers=api.headers())
    explained = api.client.get("/v1/assets/a", headers=api.headers(Permission.SEARCH, Permission.EXPLAIN))

    assert plain.json is not None
    assert explained.json is not None
    assert set(plain.json) == {"request_id", "index_version", "data_age_seconds", "attributes"}
    assert explained.json["narrative"] == "Orders is a table."
    assert explained.json["chunks"] == [{"number": 0, "section": "description", "text": "Orders is a table."}]
    assert explained.json["governance_score"] == 0.2
    assert explained.json["governance"][0]["origin"] == "native"
    assert explained.json["curation"] == [
        {"item": "owner or steward", "weight": 15, "achieved": 1, "points": 15},
    ]
    assert (explained.json["curation_score"], explained.json["eligible"]) == (80, True)
    assert explained.json["eligibility_reasons"] == []


def test_an_unknown_age_is_null_in_the_body_and_no_header(api: Api) -> None:
    api.assets.views["a"] = asset_view(id="a")
    response = api.client.get("/v1/assets/a", headers=api.headers())
    assert response.json is not None
    assert response.json["data_age_seconds"] is None
    assert "X-Vouch-Data-Age-Seconds" not in response.headers
    assert response.headers["X-Vouch-Index-Version"] == "7"


@pytest.mark.parametrize("asset_id", ["hidden", "never-was", "a%00b", "%FF%FE"])
def test_what_may_not_be_seen_and_what_never_was_answer_alike(api: Api, asset_id: str) -> None:
    headers = {**api.headers(Permission.SEARCH, Permission.EXPLAIN), "X-Request-ID": "r"}
    missing = api.client.get("/v1/assets/missing", headers=headers)
    response = api.client.get(f"/v1/assets/{asset_id}", headers=headers)
    assert response.status_code == 404
    assert response.data == missing.data
    assert sorted(response.headers) == sorted(missing.headers)
    assert asset_id not in response.text


def test_status_tells_freshness_to_every_key_and_sources_to_operators_only(api: Api) -> None:
    plain = api.client.get("/v1/status", headers=api.headers())
    operator = api.client.get("/v1/status", headers=api.headers(Permission.OPERATE))

    assert operator.json is not None
    assert plain.json == {
        "request_id": plain.headers["X-Request-ID"],
        "ready": True,
        "index_version": 7,
        "engine": "pgvector",
        "data_age_seconds": 10,
        "access_age_seconds": 20,
    }
    assert "payroll" not in plain.text
    assert (plain.headers["X-Vouch-Index-Version"], plain.headers["X-Vouch-Data-Age-Seconds"]) == ("7", "10")
    assert operator.json["model"] == "all-MiniLM-L6-v2"
    [source] = operator.json["sources"]
    assert (source["name"], source["last_run"]["counts"]) == ("payroll", {"seen": 4})
    assert operator.json["runs"][0]["sources"] == ["payroll"]
    drift = operator.json["drift"]
    assert (drift["run_id"], drift["governance_score"]["movers"]) == ("r1", [])
    assert drift["curation_score"]["histogram"] == [1, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    (mover,) = drift["curation_score"]["movers"]
    assert (mover["id"], mover["score_before"], mover["score_after"], mover["cause"]) == (
        "payroll.salaries", 40, 70, "data",
    )  # fmt: skip
