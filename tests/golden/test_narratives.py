"""Narratives as reviewed: `narratives/NAME.json` holds an asset and its surroundings, `NAME.expected` its render."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from services.access.rule import AccessRule, access_rule
from services.catalog.model import Asset, CatalogRecord, ObjectType
from services.context.chunking import chunk
from services.context.keywords import keyword_document, whole_names, whole_synonyms
from services.context.labels import Neighbour
from services.context.narrative import NarrativeRules, compose

CASES = sorted((Path(__file__).parent / "narratives").glob("*.json"))
RULES = NarrativeRules(sensitive_names=frozenset({"PII", "PHI", "Sensitive", "Restricted"}))


@pytest.mark.parametrize("case", CASES, ids=[case.stem for case in CASES])
def test_narrative_reads_as_reviewed(case: Path, accept_golden: bool) -> None:
    rendered = render(json.loads(case.read_text()))
    expected = case.with_suffix(".expected")
    if accept_golden:
        expected.write_text(rendered)

    assert rendered == expected.read_text()


def test_every_object_type_has_a_case() -> None:
    covered = {json.loads(case.read_text())["asset"]["object_type"] for case in CASES}

    assert covered == {str(object_type) for object_type in ObjectType}


def render(case: dict[str, Any]) -> str:
    """Heading, sections, how many chunks they make, and the keyword tokens from the weightiest down."""
    asset = Asset(**case["asset"])
    neighbours = {item["id"]: _neighbour(CatalogRecord(**item)) for item in case.get("neighbours", ())}
    own = _access(asset)
    narrative = compose(asset, neighbours, own, RULES, tuple(case.get("governance_words", ())))
    keywords = keyword_document(asset, neighbours, own, RULES)
    weighted = sorted(keywords.terms.items(), key=lambda item: (-item[1], item[0]))
    lines = [
        narrative.heading,
        *(f"\n[{section.name}]\n{section.text}" for section in narrative.sections),
        f"\nchunks: {len(chunk(narrative, lambda text: 2 + len(text.split())))}",
        f"keywords: {', '.join(f'{token} {weight:.2f}' for token, weight in weighted)}",
        f"whole names: {' | '.join(whole_names(asset))}",
        f"whole synonyms: {' | '.join(whole_synonyms(asset))}",
    ]
    return "\n".join(lines) + "\n"


def _neighbour(record: CatalogRecord) -> Neighbour:
    assert record.object_type and record.name
    return Neighbour(record.id, record.object_type, record.name, record.title, _access(record))


def _access(record: CatalogRecord) -> AccessRule:
    return access_rule(record.access.classification, record.access.groups, record.access.users)
