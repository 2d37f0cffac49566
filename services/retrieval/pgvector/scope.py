"""A scope as conditions: the named fragments that a question brings, and the values they bind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from services.access.rule import Level
from services.index.pgvector.access_lists import id_array
from services.retrieval.store import Scope
from services.text.clean import scrub


def conditions(scope: Scope) -> dict[str, Any]:
    """The conditions in use, by the name of their fragment, each with its value; access always, and first."""
    filters = scope.filters
    asked = {
        "eligible_only": scope.eligible_only or None,
        "object_types": list(scope.object_types) or None,
        "sources": _folded(filters.source),
        "tags": _folded(filters.tag),
        "glossary_terms": _folded(filters.term),
        "domains": _folded(filters.domain),
        "owners": _folded(filters.owner),
        "data_products": _folded(filters.data_product),
        "workspaces": _folded(filters.workspace),
        "certifications": [str(status) for status in filters.certification] or None,
        "classifications": [int(Level[name.upper()]) for name in filters.classification] or None,
        "critical": filters.critical_data_element,
        "min_curation_score": filters.min_curation_score,
        "min_data_quality": filters.min_data_quality,
    }
    return {"acl_ids": id_array(scope.acl_ids), **{name: value for name, value in asked.items() if value is not None}}


def _folded(words: Sequence[str]) -> list[str] | None:
    return [scrub(word)[0].casefold() for word in words] or None
