"""Random catalogs of the oddest words: whatever is read as an asset is published, and never written twice."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.access.principal import LOCAL_ADMINISTRATOR
from services.catalog.model import ObjectType
from services.embedded import EmbeddedServer
from services.retrieval.model import Mode, SearchRequest
from tests.integration.refresh_kit import World, fresh_world

PIECES = [
    "a", "B", "_", "-", " ", ".", "\n", "\t", "é", "數", "\u200b", "\u202e", "😀", "<b>", "</script>", "`", "*", "#",
    "%", "[x](http://y)", "urn:x:1", "95%", "4/5", "yes", "No", "TBD", "N/A", "CDE", "Certified", "x" * 300, "\ufffd",
    "\x00", "\ud800", "ß", "İ", "\u0301", "ﬁ", "٣", "'", "’", "{", "}", "null", "1e400", "2026-01-01", "&amp;",
    "\u2028",
]  # fmt: skip
ATTRIBUTES = [
    "file_type",
    "parent_report",
    "method",
    "language",
    "domain",
    "definition",
    "parent",
    "sensitivity",
    "body",
]
FIELDS = ["CDE", "Golden Source?", "Certification", "Certification expiry", "Data Quality Score"]
MOMENTS = ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00", "2026-01-01", "2026-01-01T00:00:00"]


class OddCatalog:
    """Assets made of pieces that catalogs are known to hold; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def text(self, most: int = 6) -> str:
        return "".join(self.random.choice(PIECES) for _ in range(self.random.randint(0, most)))

    def maybe(self, make: Callable[[], Any]) -> Any:
        return make() if self.random.random() < 0.5 else None

    def some(self, make: Callable[[], Any], most: int = 4) -> list[Any]:
        return [make() for _ in range(self.random.randint(0, most))]

    def scalar(self) -> Any:
        return self.random.choice([None, True, 0, -1, 0.5, 95, 1e300, -0.0, 10**30, self.text(), self.text(2)])

    def term(self) -> dict[str, Any]:
        return {"id": self.maybe(self.text), "name": self.text(), "domain": self.maybe(self.text)}

    def column(self) -> dict[str, Any]:
        return {
            "name": self.text(),
            "title": self.maybe(self.text),
            "description": self.maybe(lambda: self.text(20)),
            "terms": self.some(self.term, 2),
            "tags": self.some(lambda: self.some(self.text), 2),
            "classification": self.maybe(self.text),
            "top_values": self.some(self.scalar, 6),
            "min": self.scalar(),
        }

    def asset(self, number: int) -> dict[str, Any]:
        choose = self.random.choice
        return {
            "id": f"{number}",
            "object_type": choose(list(ObjectType)).value,
            "name": self.text() or "name",
            "title": self.maybe(self.text),
            "synonyms": self.some(self.text),
            "location": self.some(self.text),
            "descriptions": {kind: self.maybe(lambda: self.text(60)) for kind in ("source", "business", "technical")},
            "governance_roles": self.some(lambda: {"role": choose(["owner", self.text()]), "name": self.text()}),
            "terms": self.some(self.term),
            "tags": self.some(lambda: self.some(self.text)),
            "data_products": self.some(lambda: str(choose(range(99)))),
            "custom_fields": self.some(lambda: {"name": choose([*FIELDS, self.text()]), "value": self.scalar()}),
            "certification": self.maybe(
                lambda: {"status": "certified", "expires_at": self.maybe(lambda: choose(MOMENTS))}
            ),
            "data_quality_score": self.maybe(lambda: self.random.uniform(0, 100)),
            "columns": self.some(self.column, 6),
            "lineage": {"upstream": self.some(lambda: str(choose(range(99)))), "downstream": self.some(self.text)},
            "sample_rows": self.some(lambda: {self.text(): self.scalar()}),
            "access": {"classification": self.maybe(self.text), "groups": self.some(self.text)},
            "attributes": {name: self.maybe(self.text) for name in ATTRIBUTES},
            self.text(): self.scalar(),
        }


@pytest.fixture
def world(postgres_server: EmbeddedServer, tmp_path: Path) -> World:
    return fresh_world(postgres_server, tmp_path)


@pytest.mark.parametrize("seed", range(2))
def test_an_odd_catalog_is_published_and_then_left_alone(world: World, seed: int) -> None:
    odd = OddCatalog(seed)
    # Escaped, as most exporters write it: so a lone surrogate gets into the file at all.
    world.put("odd", [json.dumps(odd.asset(number)) for number in range(60)])
    world.put("team", [json.dumps(odd.asset(number)) for number in range(0, 80, 4)], overlay=True)
    first = world.refresh()
    assert first["status"] == "succeeded"
    assert first["total"]["seen"] == 80
    assert first["total"]["changed"] + first["total"]["quarantined"] == 80
    assert first["total"]["quarantined"] < 10
    index = world.index()
    second = world.refresh(full=True)
    assert (second["total"]["changed"], second["total"]["written"], second["total"]["embedded"]) == (0, 0, 0)
    assert world.index() == index
    with world.searching() as searching:
        for _ in range(20):
            query = odd.text().replace("\ud800", "")
            request = SearchRequest(query=query, mode=Mode.DISCOVERY, limit=5, explain=True)
            answer = searching.search.search(request, LOCAL_ADMINISTRATOR, "r")
            assert len(answer.results) == 5
            assert searching.assets.get(answer.results[0].id, LOCAL_ADMINISTRATOR).narrative is not None
