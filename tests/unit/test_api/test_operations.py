"""Health, readiness, metrics, documentation: open, and telling nothing about assets or callers."""

from __future__ import annotations

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from services.access.principal import Permission
from services.retrieval.status import Check

from .conftest import Api, asset_view


def test_healthz_answers_whatever_the_services_do(api: Api) -> None:
    api.readiness.checks = (Check(name="database", ok=False, detail="not reachable"),)
    response = api.client.get("/healthz")
    assert (response.status_code, response.json) == (200, {"status": "ok"})


def test_readyz_names_the_checks_that_fail(api: Api) -> None:
    ready = api.client.get("/readyz")
    assert ready.status_code == 200
    assert ready.json == {"ready": True, "checks": [{"name": "database", "ok": True, "detail": ""}]}

    api.readiness.checks += (Check(name="model", ok=False, detail="is being loaded"),)
    response = api.client.get("/readyz")
    assert response.status_code == 503
    assert response.mimetype == "application/problem+json"
    assert response.headers["Retry-After"] == "2"
    assert response.json is not None
    assert response.json["errors"] == [{"field": "model", "message": "is being loaded"}]


def scrape(api: Api) -> dict[tuple[str, ...], float]:
    text = api.client.get("/metrics").text
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_metrics_count_requests_by_route_and_status(api: Api) -> None:
    api.client.post("/v1/search", json={"query": "orders"}, headers=api.headers())
    api.client.post("/v1/search", json={"query": "orders", "limit": 0}, headers=api.headers())
    api.client.get("/v1/assets/a", headers=api.headers())
    api.client.get("/nothing/here")

    found = scrape(api)

    assert found["vouch_http_requests_total", "POST", "/v1/search", "200"] == 1
    assert found["vouch_http_requests_total", "POST", "/v1/search", "422"] == 1
    assert found["vouch_http_requests_total", "GET", "/v1/assets/<asset_id:asset_id>", "404"] == 1
    assert found["vouch_http_requests_total", "GET", "unmatched", "404"] == 1
    assert found["vouch_http_request_seconds_count", "/v1/search"] == 2
    assert found["vouch_search_stage_seconds_count", "parse"] == 2
    assert found["vouch_search_stage_seconds_count", "search"] == 1


def test_metrics_hold_nothing_of_what_was_asked_or_found(api: Api) -> None:
    api.assets.views["payroll-table"] = asset_view(id="payroll-table", name="payroll")
    api.client.post("/v1/search", json={"query": "payroll secrets"}, headers=api.headers())
    api.client.get("/v1/assets/payroll-table", headers=api.headers())
    api.client.get("/v1/assets/payroll-missing", headers=api.headers())
    api.client.get("/payroll")
    api.client.open("/v1/search", method="PAYROLL")
    text = api.client.get("/metrics").text
    for word in ("payroll", "PAYROLL", "sales-ops-lead", "orders"):
        assert word not in text


def test_two_apps_count_apart(api: Api) -> None:
    other = Api()
    other.client.get("/healthz")
    assert ("vouch_http_requests_total", "GET", "/healthz", "200") in scrape(other)
    assert ("vouch_http_requests_total", "GET", "/healthz", "200") not in scrape(api)


def test_the_documentation_page_needs_nothing_from_elsewhere(api: Api) -> None:
    assert api.client.get("/").headers["Location"] == "/docs"
    page = api.client.get("/docs")
    assert page.mimetype == "text/html"
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    links = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(links) >= 4
    for link in links:
        assert link.startswith("/"), link
        found = api.client.get(link)
        assert found.status_code == 200, link
        assert len(found.data) > 100
        assert found.headers["X-Content-Type-Options"] == "nosniff"
    assert "/openapi.json" in api.client.get("/docs/docs.js").text


@pytest.mark.parametrize("name", ["nothing.js", "..%2fdocs.html", "docs.html"])
def test_only_the_pages_own_files_are_served(api: Api, name: str) -> None:
    assert api.client.get(f"/docs/{name}").status_code == 404


def test_an_operator_and_a_stranger_scrape_the_same(api: Api) -> None:
    assert api.client.get("/metrics", headers=api.headers(Permission.OPERATE)).status_code == 200
    assert api.client.get("/metrics").mimetype == "text/plain"
