"""Reads of what stewards should mend, whichever engine answers: access inside every read, one stable order.

An engine's test class inherits `WorklistContract` and gives the fixture `engine`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from services.access.principal import LOCAL_ADMINISTRATOR, Principal
from services.access.rule import AccessRule, Level
from services.catalog.model import ObjectType
from services.retrieval.store import StoredWork, WorkScope
from services.retrieval.visibility import Visibility
from services.trust.curation import CurationItem
from tests.contract.engine import Engine, Hand, Written, record

VISITOR = Principal("visitor")
SECRET = AccessRule(Level.RESTRICTED)
ITEM = CurationItem("tags", 5, 0.0, 0.0, 4.545455, "Add a tag")
SALES = [{"role": "steward", "name": "sales-stewards"}]


def scope_of(engine: Engine, principal: Principal = LOCAL_ADMINISTRATOR, **filters: Any) -> WorkScope:
    return WorkScope(Visibility(engine.search_store).acl_ids(principal), **filters)


def below(hand: Hand, asset_id: str, curation_score: float, **changes: Any) -> Written:
    """An asset that is gated at 60 unless `changes` say otherwise."""
    gated: dict[str, Any] = {"threshold": 60.0, "eligible": False, "curation": (vars(ITEM),), **changes}
    roles = gated.pop("roles", None)
    if roles is not None:
        gated["payload"] = {"id": asset_id, "object_type": "table", "name": asset_id, "governance_roles": roles}
    return hand.asset(asset_id, "text", curation_score=curation_score, **gated)


def ids(found: Sequence[StoredWork]) -> list[str]:
    return [item.id for item in found]


class WorklistContract:
    """Needs the fixture `engine`."""

    def test_before_anything_is_published_there_is_nothing_to_mend(self, engine: Engine) -> None:
        assert engine.worklist_store.page(scope_of(engine), None, 10) == []
        assert engine.worklist_store.by_roles(scope_of(engine)) == []

    def test_what_is_below_comes_nearest_first_then_by_id(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(
            below(hand, "far", 10),
            below(hand, "b", 40),
            below(hand, "B", 40),
            below(hand, "near", 50.5),
            below(hand, "low-bar", 25, threshold=30.0),
            below(hand, "just", 60, eligible=True),
            below(hand, "above", 61, eligible=True),
        )
        store, scope = engine.worklist_store, scope_of(engine)
        everything = store.page(scope, None, 100)
        assert ids(everything) == ["low-bar", "near", "B", "b", "far"]
        assert [item.position.points_missing for item in everything] == [5, 9.5, 20, 20, 50]
        assert ids(store.page(scope, None, 2)) == ["low-bar", "near"]
        for place, item in enumerate(everything):
            assert store.page(scope, item.position, 100) == everything[place + 1 :]

    def test_positions_hold_for_scores_of_many_decimals(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        scores = [round(100 * number / 110, 6) for number in range(0, 60, 5)]
        hand.publish(*(below(hand, f"a{number:02}", score) for number, score in enumerate(scores)))
        seen: list[str] = []
        position = None
        while page := engine.worklist_store.page(scope_of(engine), position, 1):
            seen += ids(page)
            position = page[-1].position
        assert seen == [f"a{number:02}" for number in reversed(range(len(scores)))]

    def test_what_the_caller_may_not_see_is_in_no_read(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(
            below(hand, "open", 40, roles=SALES),
            below(hand, "secret", 45, roles=SALES, access=SECRET),
            below(hand, "own-secret", 45, roles=[{"role": "owner", "name": "payroll-office"}], access=SECRET),
        )
        store, scope = engine.worklist_store, scope_of(engine, VISITOR)
        assert ids(store.page(scope, None, 10)) == ["open"]
        [group] = store.by_roles(scope)
        assert (group.assets, group.points_missing) == (1, 20)
        assert ids(store.page(scope_of(engine), None, 10)) == ["own-secret", "secret", "open"]
        nobody = WorkScope(())
        assert (store.page(nobody, None, 10), store.by_roles(nobody)) == ([], [])

    def test_each_filter_holds_and_any_of_its_values_will_do(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(
            below(hand, "a", 10, source="Shop", owners=("strasse-team",)),
            below(hand, "b", 20, source="lake", object_type=ObjectType.FILE),
            below(hand, "c", 30, source="lake", owners=("sales-stewards", "sales-ops-lead")),
        )

        def found(**filters: tuple[str, ...]) -> list[str]:
            scope = scope_of(engine, **filters)
            page = engine.worklist_store.page(scope, None, 10)
            assert sum(group.assets for group in engine.worklist_store.by_roles(scope)) == len(page)
            return ids(page)

        assert found(sources=("SHOP",)) == ["a"]
        assert found(sources=("shop", "lake")) == ["c", "b", "a"]
        assert found(object_types=("file",)) == ["b"]
        assert found(owners=("Sales-Ops-Lead",)) == ["c"]
        assert found(owners=("Straße-Team",)) == ["a"]  # owners are published casefolded
        assert found(sources=("lake",), owners=("Straße-Team",)) == []
        assert found(sources=("nowhere",)) == found(owners=("",)) == found(owners=("a\x00b",)) == []

    def test_an_entry_carries_what_stewards_are_told(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        payload = {"id": "a", "object_type": "table", "name": "a", "url": "https://x/a", "governance_roles": SALES}
        hand.publish(below(hand, "a", 40, title="Orders", payload=payload))
        [found] = engine.worklist_store.page(scope_of(engine), None, 10)
        assert (found.source, found.object_type, found.name, found.title) == ("shop", "table", "a", "Orders")
        assert (found.url, found.threshold, found.curation.curation_score) == ("https://x/a", 60, 40)
        assert found.curation.items == (ITEM,)
        assert found.curation.native is False
        assert [(role.role, role.name) for role in found.roles] == [("steward", "sales-stewards")]
        hand.publish(below(hand, "a", 40, curation_native=True))
        [native] = engine.worklist_store.page(scope_of(engine), None, 10)
        assert native.curation.native is True
        assert set(found.signals) == {"found", "certification", "policy_references", "notes"}

    def test_the_work_is_added_up_by_governance_roles(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(
            below(hand, "a", 40, roles=SALES),
            below(hand, "b", 50, roles=SALES),
            below(hand, "c", 0),
            below(hand, "d", 90, roles=SALES, eligible=True),
        )
        groups = engine.worklist_store.by_roles(scope_of(engine))
        told = {tuple(role.name for role in group.roles): (group.assets, group.points_missing) for group in groups}
        assert told == {("sales-stewards",): (2, 30), (): (1, 60)}

    def test_the_payloads_of_a_source_are_those_that_it_lists_or_adds_to(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        records = engine.stores.records
        records.merge(hand.run_id, "shop", overlay=False, records=[record("a"), record("b"), record("unpublished")])
        records.merge(hand.run_id, "notes", overlay=True, records=[record("b")])
        hand.publish(hand.asset("a", "text"), hand.asset("b", "text"))
        with engine.payload_store.payloads("shop") as payloads:
            assert sorted(payload["id"] for payload in payloads) == ["a", "b"]
        with engine.payload_store.payloads("notes") as payloads:
            assert [payload["id"] for payload in payloads] == ["b"]
        with engine.payload_store.payloads("nowhere") as payloads:
            assert list(payloads) == []
