"""The conditions of a search are conjoined whole, access first, whatever each of them is made of."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from services.catalog.parts import CertificationStatus
from services.retrieval.model import Filters
from services.retrieval.pgvector import search
from services.retrieval.pgvector.scope import conditions
from services.retrieval.store import Scope

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
EVERY_FILTER = Filters(
    source=("shop",),
    tag=("Finance",),
    term=("Revenue",),
    domain=("Sales",),
    owner=("team",),
    data_product=("Orders",),
    certification=(CertificationStatus.CERTIFIED,),
    critical_data_element=False,
    workspace=("lab",),
    classification=("Public",),
    min_curation_score=0.0,
    min_data_quality=0.0,
)


def test_each_filter_brings_one_condition_behind_access() -> None:
    asked = conditions(Scope((7,), True, ("table",), EVERY_FILTER, NOW))
    assert next(iter(asked)) == "acl_ids"
    assert len(asked) == len(Filters.model_fields) + 3  # access, eligibility, types
    assert set(asked) <= set(search.QUERIES)
    nobody = conditions(Scope((), False, (), Filters(), NOW))
    assert nobody == {"acl_ids": "{}"}


def test_a_condition_with_an_alternative_lets_in_nothing_that_another_keeps_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search, "QUERIES", {"acl_ids": "-- who\nx = 1", "either": "y = 1 OR z = 1"})
    assert search._allowed(("acl_ids", "either")).as_string() == "(x = 1) AND (y = 1 OR z = 1)"
