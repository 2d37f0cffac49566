"""Which interned access lists let a caller in, and what holds while a list is exchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.access.principal import LOCAL_ADMINISTRATOR, Principal
from services.access.rule import AccessRule, Level, may_see, narrowed, visible_ids
from services.retrieval.visibility import Visibility

groups = st.lists(st.sampled_from(["finance", "sales", "support"]), max_size=2, unique=True)
users = st.lists(st.sampled_from(["sales-lead", "finance-lead"]), max_size=2, unique=True)
levels = st.sampled_from(list(Level))


def as_names(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(names))


rules = st.builds(
    AccessRule, levels, groups.map(as_names), users.map(as_names), groups.map(as_names), users.map(as_names)
)
principals = st.builds(
    Principal, st.sampled_from(["sales-lead", "finance-lead", "visitor"]), groups.map(as_names), levels.map(int)
)


@given(rules, rules, principals)
def test_a_narrowed_rule_lets_in_nobody_whom_one_of_the_two_keeps_out(
    one: AccessRule, other: AccessRule, principal: Principal
) -> None:
    if may_see(narrowed(one, other), principal):
        assert may_see(one, principal)
        assert may_see(other, principal)


@given(rules, rules, rules)
def test_narrowing_knows_no_order_and_once_is_enough(one: AccessRule, other: AccessRule, third: AccessRule) -> None:
    assert narrowed(one, other) == narrowed(other, one)
    assert narrowed(one, one) == one
    both = narrowed(one, other)
    assert narrowed(both, other) == both
    assert narrowed(both, third).classification == max(one.classification, other.classification, third.classification)


@pytest.mark.parametrize(
    "stricter",
    [
        AccessRule(Level.RESTRICTED, groups=("finance", "sales")),
        AccessRule(Level.INTERNAL, groups=("finance",)),
        AccessRule(Level.INTERNAL, groups=("finance", "sales"), denied_users=("sales-lead",)),
    ],
)
def test_the_stricter_of_two_rules_is_what_they_narrow_to(stricter: AccessRule) -> None:
    assert narrowed(AccessRule(Level.INTERNAL, groups=("finance", "sales")), stricter) == stricter
    assert narrowed(AccessRule(Level.PUBLIC), stricter) == stricter


class FakeLists:
    """Access lists as a store gives them: those after a number, in their order."""

    def __init__(self, *rules: AccessRule) -> None:
        self.rules = list(rules)
        self.asked: list[int] = []

    def access_lists(self, after_seq: int) -> Sequence[tuple[int, int, AccessRule]]:
        self.asked.append(after_seq)
        return [(seq, 100 + seq, rule) for seq, rule in enumerate(self.rules, start=1) if seq > after_seq]


def visibility(lists: Any) -> Visibility:
    return Visibility(lists)


def test_lists_are_fetched_once_and_new_ones_before_every_answer() -> None:
    lists = FakeLists(AccessRule(Level.PUBLIC), AccessRule(Level.PUBLIC, groups=("finance",)))
    seen = visibility(lists)
    visitor = Principal("visitor")
    assert seen.acl_ids(visitor) == (101,)
    lists.rules.append(AccessRule(Level.PUBLIC, users=("visitor",)))
    assert seen.acl_ids(visitor) == (101, 103)
    assert seen.acl_ids(Principal("finance-lead", ("finance",))) == (101, 102)
    assert lists.asked == [0, 2, 3]


def test_what_a_caller_sees_is_worked_out_once_and_again_for_other_groups_or_a_lower_clearance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worked_out: list[Principal] = []

    def counted(rules: Mapping[int, AccessRule], principal: Principal) -> list[int]:
        worked_out.append(principal)
        return visible_ids(rules, principal)

    monkeypatch.setattr("services.retrieval.visibility.visible_ids", counted)
    seen = visibility(FakeLists(AccessRule(Level.PUBLIC), AccessRule(Level.INTERNAL, groups=("finance",))))
    lead = Principal("lead", ("finance",), clearance=int(Level.INTERNAL))
    for principal, ids in (
        (lead, (101, 102)),
        (replace(lead), (101, 102)),
        (replace(lead, groups=()), (101,)),
        (replace(lead, clearance=int(Level.PUBLIC)), (101,)),
        (replace(lead, user="visitor", groups=()), (101,)),
        (lead, (101, 102)),
    ):
        assert seen.acl_ids(principal) == ids
    assert len(worked_out) == 4


def test_callers_are_forgotten_when_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.retrieval.visibility.REMEMBERED_CALLERS", 2)
    seen = visibility(FakeLists(AccessRule(Level.PUBLIC, users=("first", "third"))))
    for user, ids in (("first", (101,)), ("second", ()), ("third", (101,)), ("first", (101,))):
        assert seen.acl_ids(Principal(user)) == ids


def test_an_administrator_sees_every_list_and_nobody_a_list_that_is_not_there() -> None:
    lists = FakeLists(AccessRule(Level.RESTRICTED, users=("somebody",), denied_users=("local",)))
    assert visibility(lists).acl_ids(LOCAL_ADMINISTRATOR) == (101,)
    assert visibility(FakeLists()).acl_ids(LOCAL_ADMINISTRATOR) == ()
