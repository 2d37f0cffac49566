"""Near-duplicates stand behind the first of them."""

from __future__ import annotations

from typing import Any

from services.catalog.model import asset_key
from services.retrieval.grouping import group_siblings
from services.retrieval.ranking import Candidate, Ranked
from services.trust.governance import GovernanceScore


def ranked(asset_id: str, shape: int | None = None, siblings: tuple[str, ...] = ()) -> Ranked:
    given: dict[str, Any] = {
        "named": False,
        "called": False,
        "best_cosine": 0.5,
        "mean_cosine": 0.5,
        "chunk_number": 0,
        "matched_idf": 0.0,
    }
    candidate = Candidate(
        asset_key=asset_key(asset_id),
        id=asset_id,
        shape=shape,
        siblings=tuple(map(asset_key, siblings)),
        **given,
    )
    return Ranked(candidate, 0.5, 0.0, 0.25, 1, None, False, GovernanceScore(0.0, ()), 0.2)


def groups(*items: Ranked) -> list[tuple[str, tuple[str, ...]]]:
    return [(item.id, item.siblings) for item in group_siblings(items)]


def test_strangers_stay_apart_in_their_order() -> None:
    assert groups(ranked("b"), ranked("a"), ranked("c")) == [("b", ()), ("a", ()), ("c", ())]
    assert group_siblings([]) == []


def test_the_same_shape_is_one_group_under_its_best() -> None:
    found = groups(ranked("b", 1), ranked("x"), ranked("c", 1), ranked("a", 1), ranked("y", 2))
    assert found == [("b", ("a", "c")), ("x", ()), ("y", ())]


def test_declared_siblings_are_one_group_whoever_declares_it() -> None:
    assert groups(ranked("a"), ranked("b", siblings=("a",))) == [("a", ("b",))]
    assert groups(ranked("a", siblings=("b",)), ranked("b")) == [("a", ("b",))]


def test_groups_that_share_a_member_are_one() -> None:
    chain = [ranked("a"), ranked("b", siblings=("a", "c")), ranked("c", 7), ranked("d", 7), ranked("e", 8)]
    assert groups(*chain) == [("a", ("b", "c", "d")), ("e", ())]


def test_siblings_that_were_not_found_join_nobody() -> None:
    assert groups(ranked("a", siblings=("hidden",)), ranked("b", siblings=("hidden",))) == [("a", ()), ("b", ())]


def test_assets_without_columns_have_no_shape_in_common() -> None:
    assert groups(ranked("a", None), ranked("b", None)) == [("a", ()), ("b", ())]
