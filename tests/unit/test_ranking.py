"""The two stages' arithmetic on candidates that no engine has to find."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from services.catalog.model import Asset
from services.retrieval.grouping import group_siblings, in_first_groups
from services.retrieval.ranking import Candidate, Ranked, most_relevant, rank_governed, vector_similarity
from services.trust.governance import GovernanceScore, governance_score
from services.trust.rules import load_rules
from services.trust.signals import read_signals

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RULES = load_rules()
TRUSTED = Asset(id="x", object_type="table", name="x", critical_data_element=True)
UNKNOWN = Asset(id="x", object_type="table", name="x")
PLAIN = Candidate(
    asset_key=1,
    id="a",
    named=False,
    called=False,
    best_cosine=0.5,
    mean_cosine=0.5,
    chunk_number=0,
    matched_idf=0.0,
)


def governance(asset: Asset) -> GovernanceScore:
    return governance_score(read_signals(asset, RULES), RULES, now=NOW)


def rank(*candidates: Candidate, trusted: str = "", candidate_limit: int = 30, pin_named: bool = True) -> list[Ranked]:
    """Both stages; the assets whose id stands in `trusted` have a governance score of 0.4, the others 0."""
    keyed = [replace(item, asset_key=ord(item.id)) if item.asset_key == 1 else item for item in candidates]
    kept = most_relevant(keyed, 10.0, candidate_limit, pin_named=pin_named)
    return rank_governed(
        kept, {item.asset_key: governance(TRUSTED if item.id in trusted else UNKNOWN) for item in keyed}
    )


def ids(ranked: list[Ranked]) -> list[str]:
    return [item.id for item in ranked]


def test_the_numbers_of_a_result_add_up() -> None:
    (found,) = rank(replace(PLAIN, matched_idf=4.0), trusted="a")
    assert (found.vector_similarity, found.keyword_score) == (0.5, 0.4)
    assert found.relevance_score == pytest.approx((0.5 + 0.4) / 2)
    assert found.governance.governance_score == 0.4
    assert found.final_score == pytest.approx(0.75 * 0.45 + 0.25 * 0.4)


def test_governance_decides_among_the_kept_and_keeps_nobody() -> None:
    trusted = replace(PLAIN, id="b", best_cosine=0.4, mean_cosine=0.4)
    assert ids(rank(PLAIN, trusted, trusted="b")) == ["b", "a"]
    assert ids(rank(PLAIN, trusted, trusted="b", candidate_limit=1)) == ["a"]


def test_who_is_no_longer_seen_is_not_ranked() -> None:
    kept = most_relevant([PLAIN, replace(PLAIN, asset_key=2, id="b")], 10.0, 30, pin_named=True)
    assert ids(rank_governed(kept, {2: governance(UNKNOWN)})) == ["b"]


def test_ties_are_broken_by_id_whatever_the_order_of_arrival() -> None:
    assert ids(rank(replace(PLAIN, id="c"), PLAIN, replace(PLAIN, id="b"))) == ["a", "b", "c"]
    assert ids(rank(replace(PLAIN, id="c"), PLAIN, candidate_limit=1)) == ["a"]


def test_what_the_whole_query_names_comes_first_even_when_others_are_more_relevant() -> None:
    named = replace(PLAIN, id="z", named=True, best_cosine=0.0, mean_cosine=0.0)
    better = replace(PLAIN, best_cosine=0.9, mean_cosine=0.9, matched_idf=9.0)
    assert ids(rank(better, named, trusted="a")) == ["z", "a"]
    assert ids(rank(better, named, trusted="a", candidate_limit=1)) == ["z"]
    assert ids(rank(better, named, trusted="a", pin_named=False)) == ["a", "z"]


def test_several_of_that_name_stand_in_order_of_final_score() -> None:
    trusted = replace(PLAIN, id="z", named=True)
    assert ids(rank(replace(PLAIN, named=True), trusted, trusted="z")) == ["z", "a"]


def test_an_asset_outside_the_embedding_pool_is_ranked_by_its_words() -> None:
    (found,) = rank(replace(PLAIN, best_cosine=None, mean_cosine=None, matched_idf=6.0))
    assert (found.vector_similarity, found.vector_rank, found.keyword_rank) == (None, None, 1)
    assert found.relevance_score == pytest.approx(0.3)


def test_many_chunks_are_no_many_chances() -> None:
    assert vector_similarity(0.5, 0.5) == 0.5
    assert vector_similarity(0.5, 0.1) == pytest.approx(0.3)
    assert vector_similarity(0.1, -0.3) == 0.0
    assert vector_similarity(1.0000002, 1.0) == 1.0


def test_near_duplicates_stand_behind_the_first_of_them() -> None:
    one = replace(PLAIN, asset_key=5, siblings=(3,), shape=7)
    same_shape = replace(PLAIN, asset_key=2, id="b", best_cosine=0.4, mean_cosine=0.4, shape=7)
    declared = replace(PLAIN, asset_key=3, id="c", best_cosine=0.3, mean_cosine=0.3)
    alone = replace(PLAIN, asset_key=4, id="d", best_cosine=0.2, mean_cosine=0.2, siblings=(99,))
    grouped = group_siblings(rank(one, same_shape, declared, alone))
    assert [(item.id, item.siblings) for item in grouped] == [("a", ("b", "c")), ("d", ())]


def test_a_synonym_is_a_whole_match_and_pins_nothing() -> None:
    called = replace(PLAIN, id="z", called=True, best_cosine=0.0, mean_cosine=0.0)
    better = replace(PLAIN, id="a", best_cosine=0.9, mean_cosine=0.9, matched_idf=10.0)
    ranked = rank(better, called)
    assert ids(ranked) == ["a", "z"]
    assert ranked[1].keyword_score == 1.0


def test_near_duplicates_take_one_place_among_the_candidates() -> None:
    shards = [replace(PLAIN, asset_key=100 + day, id=f"a{day:02}", shape=7) for day in range(40)]
    others = [
        replace(PLAIN, asset_key=200 + place, id=f"b{place}", best_cosine=0.4 - place / 10, mean_cosine=0.0)
        for place in range(3)
    ]
    relevant = most_relevant([*others, *shards], 10.0, 43, pin_named=True)
    kept, groups = in_first_groups(relevant, 3)
    assert groups == 3
    assert [item.id for item in kept] == [*(item.id for item in shards), "b0", "b1"]
    kept, groups = in_first_groups(relevant, 30)
    assert (len(kept), groups) == (43, 4)
    assert in_first_groups([], 30) == ([], 0)


def test_a_member_far_down_comes_with_its_group_and_strangers_before_it_do_not() -> None:
    near = replace(PLAIN, asset_key=1, id="a", shape=7)
    stranger = replace(PLAIN, asset_key=2, id="b", best_cosine=0.4, mean_cosine=0.4)
    far = replace(PLAIN, asset_key=3, id="c", best_cosine=0.1, mean_cosine=0.1, shape=7)
    kept, groups = in_first_groups(most_relevant([far, stranger, near], 10.0, 3, pin_named=True), 1)
    assert ([item.id for item in kept], groups) == (["a", "c"], 1)


def test_nothing_known_of_governance_leaves_relevance_what_it_is() -> None:
    (found,) = rank(replace(PLAIN, matched_idf=8.0))
    assert found.governance.governance_score == 0
    assert found.relevance_score == pytest.approx((0.5 + 0.8) / 2)
    assert found.final_score == pytest.approx(0.75 * found.relevance_score)
