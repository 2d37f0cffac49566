"""From changed records to drafts: what is stale, what must be told anew, and whom a new access list holds at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.access.principal import Principal
from services.access.rule import AccessRule, Level
from services.catalog.model import ObjectType, asset_key
from services.index.store import StaleAsset
from services.retrieval.visibility import Visibility
from tests.contract.engine import OPEN, Engine, Hand, Written, record

RULES = b"rules of today"


def stale_ids(engine: Engine, fingerprint: bytes = RULES, *, everything: bool = False) -> list[str]:
    pages = engine.stores.drafts.stale(fingerprint, 10, everything=everything)
    return sorted(item.id for page in pages for item in page)


def stale_of(engine: Engine, asset_id: str, fingerprint: bytes = RULES) -> StaleAsset:
    pages = engine.stores.drafts.stale(fingerprint, 10, everything=True)
    return next(item for page in pages for item in page if item.id == asset_id)


def as_stored(engine: Engine, item: Written) -> Written:
    """The asset as drafted from its stored records: with their digest."""
    digest = stale_of(engine, item.draft.id).record_digest
    return replace(item, draft=replace(item.draft, record_digest=digest))


def uncomposed_ids(engine: Engine) -> list[str]:
    return sorted(draft.id for draft in engine.stores.drafts.uncomposed(-1, 100))


def visible_to(engine: Engine, user: str, *groups: str, clearance: int = 0) -> set[str]:
    """Which of the assets a, b and c the principal may see."""
    principal = Principal(user, groups, clearance)
    acl_ids = Visibility(engine.search_store).acl_ids(principal)
    return {asset_id for asset_id in "abc" if engine.asset_store.asset(asset_id, None, acl_ids)}


class DraftContract:
    """Needs the fixture `engine`."""

    def test_new_and_changed_records_make_an_asset_stale_until_it_is_drafted(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        records = engine.stores.records
        assert stale_ids(engine) == []
        records.merge(hand.run_id, "shop", overlay=False, records=[record("a"), record("b")])
        assert stale_ids(engine) == ["a", "b"]
        a, b = (as_stored(engine, hand.asset(name, f"text of {name}")) for name in "ab")
        assert engine.stores.drafts.stage(hand.run_id, [a.draft, b.draft]) == 2
        assert stale_ids(engine) == []
        hand.publish(a, b)
        assert stale_ids(engine) == []
        records.merge(hand.run_id, "shop", overlay=False, records=[record("b", name="new")])
        assert stale_ids(engine) == ["b"]

    def test_a_changed_draft_is_stale_again_before_it_is_published(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        engine.stores.records.merge(hand.run_id, "shop", overlay=False, records=[record("a")])
        hand.prepare([as_stored(engine, hand.asset("a", "text"))])
        engine.stores.records.merge(hand.run_id, "shop", overlay=False, records=[record("a", name="new")])
        assert stale_ids(engine) == ["a"]
        # And back again: the draft is what the records say, whatever was in between.
        engine.stores.records.merge(hand.run_id, "shop", overlay=False, records=[record("a")])
        assert stale_ids(engine) == []

    def test_other_rules_make_everything_stale(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        engine.stores.records.merge(hand.run_id, "shop", overlay=False, records=[record("a")])
        hand.publish(as_stored(engine, hand.asset("a", "text")))
        assert stale_ids(engine) == []
        assert stale_ids(engine, b"rules of tomorrow") == ["a"]
        assert stale_ids(engine, everything=True) == ["a"]

    def test_an_overlay_that_comes_or_changes_makes_its_asset_stale(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        records = engine.stores.records
        records.merge(hand.run_id, "shop", overlay=False, records=[record("a"), record("b")])
        hand.publish(*(as_stored(engine, hand.asset(name, "text")) for name in "ab"))
        records.merge(hand.run_id, "team", overlay=True, records=[record("a", title="A")])
        assert stale_ids(engine) == ["a"]

    def test_the_owners_record_comes_first_then_the_overlays_by_name(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        records = engine.stores.records
        records.merge(hand.run_id, "b-team", overlay=True, records=[record("a", title="b")])
        records.merge(hand.run_id, "a-team", overlay=True, records=[record("a", title="a")])
        records.merge(hand.run_id, "shop", overlay=False, records=[record("a", name="x")])
        records.merge(hand.run_id, "a-team", overlay=True, records=[record("only-overlaid", name="y")])
        stale = stale_of(engine, "a")
        assert stale.asset_key == asset_key("a")
        assert stale.sources == ("shop", "a-team", "b-team")
        assert [payload.get("title", "none") for payload in stale.payloads] == ["none", "a", "b"]
        assert stale_of(engine, "only-overlaid").sources == ("a-team",)

    def test_pages_hold_each_stale_asset_once(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        ids = [f"asset-{number}" for number in range(25)]
        engine.stores.records.merge(hand.run_id, "shop", overlay=False, records=[record(name) for name in ids])
        pages = list(engine.stores.drafts.stale(RULES, 10, everything=False))
        assert [len(page) for page in pages] == [10, 10, 5]
        assert sorted(item.id for page in pages for item in page) == sorted(ids)

    def test_drafts_may_be_staged_while_the_stale_are_streamed(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        ids = [f"asset-{number}" for number in range(25)]
        engine.stores.records.merge(hand.run_id, "shop", overlay=False, records=[record(name) for name in ids])
        for page in engine.stores.drafts.stale(RULES, 10, everything=False):
            drafts = [hand.asset(item.id, "text", record_digest=item.record_digest).draft for item in page]
            engine.stores.drafts.stage(hand.run_id, drafts)
        assert stale_ids(engine) == []
        assert engine.stores.drafts.drafted() == {"shop": 25}

    def test_drafts_wait_to_be_composed_in_pages(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        items = [hand.asset(f"asset-{number}", "text") for number in range(5)]
        engine.stores.drafts.stage(hand.run_id, [item.draft for item in items])
        first = engine.stores.drafts.uncomposed(-1, 3)
        rest = engine.stores.drafts.uncomposed(first[-1].asset_key, 3)
        assert len(first) == 3
        assert {draft.id for draft in (*first, *rest)} == {item.draft.id for item in items}
        given = {item.draft.id: item.draft for item in items}[first[0].id]
        assert (first[0].source, first[0].access, first[0].payload) == ("shop", OPEN, given.payload)
        engine.stores.drafts.set_composed(hand.run_id, {item.key: item.composed for item in items})
        assert engine.stores.drafts.uncomposed(-1, 3) == ()

    def test_a_draft_that_is_staged_again_must_be_composed_again(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.prepare([hand.asset("a", "text")])
        engine.stores.drafts.stage(hand.run_id, [hand.asset("a", "other text").draft])
        assert uncomposed_ids(engine) == ["a"]

    def test_a_neighbour_is_known_from_its_draft_or_else_as_published(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        secret = AccessRule(Level.RESTRICTED, groups=("finance",))
        hand.publish(hand.asset("a", "text", name="old"), hand.asset("b", "text", name="published"))
        changed = hand.asset("a", "text", name="new", title="New", object_type=ObjectType.REPORT, access=secret)
        engine.stores.drafts.stage(hand.run_id, [changed.draft])
        keys = [asset_key(name) for name in ("a", "b", "nowhere")]
        known = {item.asset_id: item for item in engine.stores.drafts.neighbours(keys)}
        assert sorted(known) == ["a", "b"]
        a = known["a"]
        assert (a.name, a.title, a.object_type, a.access) == ("new", "New", ObjectType.REPORT, secret)
        assert (known["b"].name, known["b"].access) == ("published", OPEN)

    @pytest.mark.parametrize(
        "change",
        [
            {"name": "renamed"},
            {"title": "Retitled"},
            {"object_type": ObjectType.FILE},
            {"access": AccessRule(Level.RESTRICTED)},
        ],
        ids=lambda change: next(iter(change)),
    )
    def test_what_names_a_relabelled_asset_is_drafted_again(self, engine: Engine, change: dict[str, object]) -> None:
        hand = Hand(engine).begin()
        target = hand.asset("target", "text")
        refers = hand.asset("refers", "refers to target", reference_keys=(target.key,))
        hand.publish(target, refers, hand.asset("stranger", "text"))
        engine.stores.drafts.stage(hand.run_id, [replace(target.draft, **change)])  # type: ignore[arg-type]
        assert uncomposed_ids(engine) == ["refers", "target"]

    def test_a_change_that_no_narrative_tells_drafts_nothing_else(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        target = hand.asset("target", "text")
        hand.publish(target, hand.asset("refers", "text", reference_keys=(target.key,)))
        changed = replace(target.draft, record_digest=b"other", payload={"id": "target", "url": "u"})
        assert engine.stores.drafts.stage(hand.run_id, [changed]) == 1
        assert uncomposed_ids(engine) == ["target"]

    def test_an_asset_that_appears_is_told_by_those_that_named_it_before_it_was_there(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(hand.asset("refers", "text", reference_keys=(asset_key("later"),)))
        engine.stores.drafts.stage(hand.run_id, [hand.asset("later", "text").draft])
        assert uncomposed_ids(engine) == ["later", "refers"]

    def test_what_was_composed_but_not_published_is_told_anew_too(self, engine: Engine) -> None:
        # A run was killed after composing; before the next one the neighbour is renamed.
        hand = Hand(engine).begin()
        target = hand.asset("target", "text")
        hand.prepare([target, hand.asset("refers", "refers to target", reference_keys=(target.key,))])
        assert uncomposed_ids(engine) == []
        engine.stores.drafts.stage(hand.run_id, [replace(target.draft, name="renamed")])
        assert uncomposed_ids(engine) == ["refers", "target"]

    def test_a_reference_that_is_gone_no_longer_counts(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        target, other = hand.asset("target", "text"), hand.asset("other", "text")
        refers = hand.asset("refers", "text", reference_keys=(target.key,))
        hand.publish(target, other, refers)
        hand.publish(replace(refers, draft=replace(refers.draft, reference_keys=(other.key,), record_digest=b"2")))
        engine.stores.drafts.stage(hand.run_id, [replace(target.draft, name="renamed")])
        assert uncomposed_ids(engine) == ["target"]
        engine.stores.drafts.stage(hand.run_id, [replace(other.draft, name="renamed")])
        assert uncomposed_ids(engine) == ["other", "refers", "target"]

    def test_a_tightened_access_list_holds_at_once(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(*(hand.asset(name, "text") for name in "abc"))
        assert visible_to(engine, "sales-lead", "sales") == {"a", "b", "c"}
        tight = {
            "a": AccessRule(Level.RESTRICTED),
            "b": AccessRule(Level.PUBLIC, groups=("finance",)),
            "c": AccessRule(Level.PUBLIC, denied_users=("sales-lead",)),
        }
        engine.stores.drafts.stage(hand.run_id, [hand.asset(name, "text", access=tight[name]).draft for name in tight])
        assert visible_to(engine, "sales-lead", "sales") == set()
        assert visible_to(engine, "finance-lead", "finance", clearance=3) == {"a", "b", "c"}

    def test_a_loosened_access_list_waits_until_the_asset_is_published(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        strict = AccessRule(Level.PUBLIC, groups=("finance",))
        hand.publish(hand.asset("a", "text", access=strict))
        loose = hand.asset("a", "text told to all", access=OPEN)
        hand.prepare([loose])
        assert visible_to(engine, "sales-lead", "sales") == set()
        hand.publish(loose)
        assert visible_to(engine, "sales-lead", "sales") == {"a"}

    def test_while_a_list_is_exchanged_only_those_on_both_may_see(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        before = AccessRule(Level.INTERNAL, groups=("finance", "sales"), denied_users=("former-lead",))
        after = AccessRule(Level.PUBLIC, groups=("finance", "support"), denied_users=("sales-lead",))
        hand.publish(hand.asset("a", "text", access=before))
        changed = hand.asset("a", "text", access=after)
        hand.prepare([changed])
        assert visible_to(engine, "finance-lead", "finance", clearance=1) == {"a"}
        assert visible_to(engine, "finance-lead", "finance", clearance=0) == set()
        assert visible_to(engine, "sales-lead", "finance", clearance=1) == set()
        assert visible_to(engine, "former-lead", "finance", clearance=1) == set()
        assert visible_to(engine, "sales-clerk", "sales", clearance=1) == set()
        assert visible_to(engine, "support-lead", "support", clearance=1) == set()
        hand.publish(changed)
        assert visible_to(engine, "support-lead", "support") == {"a"}
        assert visible_to(engine, "sales-clerk", "sales", clearance=1) == set()

    def test_lists_with_nobody_in_common_let_nobody_in_meanwhile(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(hand.asset("a", "text", access=AccessRule(Level.PUBLIC, groups=("sales",))))
        changed = hand.asset("a", "text", access=AccessRule(Level.PUBLIC, users=("support-lead",)))
        hand.prepare([changed])
        assert visible_to(engine, "sales-clerk", "sales") == set()
        assert visible_to(engine, "support-lead") == set()
        hand.publish(changed)
        assert visible_to(engine, "support-lead") == {"a"}

    def test_a_rehearsal_drafts_and_tightens_nothing(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        target = hand.asset("a", "text")
        hand.publish(target, hand.asset("b", "text", reference_keys=(target.key,)))
        with engine.stores.rehearsal() as rehearsed:
            hidden = replace(target.draft, access=AccessRule(Level.RESTRICTED))
            rehearsed.drafts.stage(hand.run_id, [hidden])
            rehearsed.drafts.stage(hand.run_id, [hand.asset("c", "text").draft])
            assert rehearsed.drafts.drafted() == {"shop": 3}
        assert engine.stores.drafts.drafted() == {}
        assert visible_to(engine, "anybody") == {"a", "b"}
