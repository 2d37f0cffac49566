"""A catalog of a few made-up entities, listed through real files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from services.catalog.model import CatalogRecord
from services.catalog.sources.base import Page
from services.catalog.sources.datahub import DataHubFileSource


@pytest.fixture
def mapped(tmp_path: Path) -> Callable[[Mapping[str, Mapping[str, Any]]], dict[str, CatalogRecord]]:
    """Entities as {urn: {aspect: value}} -> the records they become, by id; nothing may be rejected."""

    def listing(entities: Mapping[str, Mapping[str, Any]]) -> dict[str, CatalogRecord]:
        proposals = [
            {"entityUrn": urn, "changeType": "UPSERT", "aspectName": aspect, "aspect": {"json": value}}
            for urn, aspects in entities.items()
            for aspect, value in ({"status": {"removed": False}} | dict(aspects)).items()
        ]
        path = tmp_path / "proposals.json"
        path.write_text(json.dumps(proposals), encoding="utf-8")
        pages = [page for page in DataHubFileSource("hub", path).listing() if isinstance(page, Page)]
        assert [page.rejected for page in pages if page.rejected] == []
        return {record.id: record for page in pages for record in page.records}

    return listing
