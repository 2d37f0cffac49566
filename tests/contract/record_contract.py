"""What the sources said, and the quarantine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.index.store import QuarantineEntry, StoredRecord
from tests.contract.engine import Engine, Hand, dead, record


class RecordContract:
    """Needs the fixture `engine`."""

    def test_records_are_written_when_they_differ_and_only_then(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        records = engine.stores.records
        first = [record("a", name="x"), record("b", name="y")]
        assert records.merge(hand.run_id, "shop", overlay=False, records=first) == 2
        assert records.merge(hand.run_id, "shop", overlay=False, records=first) == 0
        changed = [record("a", name="x"), record("b", name="z"), record("c", name="new")]
        assert records.merge(hand.run_id, "shop", overlay=False, records=changed) == 2
        stored = {row.id: row for row in records.stored([item.asset_key for item in changed])}
        assert stored["b"] == StoredRecord(
            "shop", changed[1].asset_key, "b", overlay=False, payload_hash=changed[1].payload_hash
        )
        assert sorted(stored) == ["a", "b", "c"]

    def test_a_record_that_becomes_an_overlays_is_written_although_it_says_the_same(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        records = engine.stores.records
        records.merge(hand.run_id, "shop", overlay=False, records=[record("a", name="x")])
        assert records.merge(hand.run_id, "shop", overlay=True, records=[record("a", name="x")]) == 1
        assert [row.overlay for row in records.stored([record("a").asset_key])] == [True]

    def test_an_id_has_one_owner_and_any_number_of_overlays(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        records = engine.stores.records
        records.merge(hand.run_id, "shop", overlay=False, records=[record("a")])
        # The caller has looked who owns what, but another source may have been faster since.
        assert records.merge(hand.run_id, "rival", overlay=False, records=[record("a"), record("b")]) == 1
        assert records.merge(hand.run_id, "team", overlay=True, records=[record("a")]) == 1
        assert records.merge(hand.run_id, "other", overlay=True, records=[record("a")]) == 1
        owners = {(row.source, row.id) for row in records.stored([record("a").asset_key, record("b").asset_key])}
        assert owners == {("shop", "a"), ("team", "a"), ("other", "a"), ("rival", "b")}

    def test_keys_are_those_of_the_source(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        records = engine.stores.records
        assert records.keys("shop").size == 0
        records.merge(hand.run_id, "shop", overlay=False, records=[record("a"), record("b")])
        records.merge(hand.run_id, "team", overlay=True, records=[record("a")])
        assert set(records.keys("shop").tolist()) == {record("a").asset_key, record("b").asset_key}
        assert records.keys("team").tolist() == [record("a").asset_key]

    def test_whatever_json_can_say_comes_back(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        said = {
            "name": 'quotes " and \\ and 数 \U0001f600 \u2028',
            "extra": {"": [], "deep": [[[{"x": None}]]], "n": [0, -1, 2**70, 0.1, 1e-9, True], "tab\t": "\t"},
            "object_type": "table",
        }
        engine.stores.records.merge(hand.run_id, "shop", overlay=False, records=[record("a", **said)])
        ((stale,),) = engine.stores.drafts.stale(b"f", 10, everything=False)
        assert stale.payloads == ({"id": "a", **said},)

    def test_a_quarantined_record_counts_its_attempts_once_per_run(self, engine: Engine) -> None:
        records = engine.stores.records
        hand = Hand(engine).begin()
        entry = QuarantineEntry("shop", "line 3", "extract", "not JSON", payload="{")
        records.quarantine(hand.run_id, [entry])
        records.quarantine(hand.run_id, [entry])
        assert [item["attempts"] for item in records.quarantined(10)] == [1]
        hand.end()
        again = Hand(engine, run_id="run-2").begin()
        records.quarantine(again.run_id, [replace(entry, error="still not JSON")])
        (kept,) = records.quarantined(10)
        assert (kept["attempts"], kept["error"], kept["run_id"]) == (2, "still not JSON", "run-2")
        assert kept["first_seen_at"] < kept["last_seen_at"]

    def test_a_record_is_in_quarantine_once_per_source_and_stage(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        entry = QuarantineEntry("shop", "a", "extract", "bad")
        others = [replace(entry, source="team"), replace(entry, stage="compose"), replace(entry, record_ref="b")]
        engine.stores.records.quarantine(hand.run_id, [entry, *others])
        assert len(engine.stores.records.quarantined(10)) == 4
        assert len(engine.stores.records.quarantined(2)) == 2

    @pytest.mark.parametrize(
        ("stage", "source", "left"),
        [
            ("extract", "shop", {("team", "extract"), ("shop", "compose")}),
            ("extract", None, {("shop", "compose")}),
            ("compose", None, {("shop", "extract"), ("team", "extract")}),
        ],
    )
    def test_what_a_run_did_not_reject_again_is_healed(
        self, engine: Engine, stage: str, source: str | None, left: set[tuple[str, str]]
    ) -> None:
        records = engine.stores.records
        old = Hand(engine).begin()
        entries = [
            QuarantineEntry("shop", "old", "extract", "bad"),
            QuarantineEntry("team", "old", "extract", "bad"),
            QuarantineEntry("shop", "old", "compose", "bad"),
        ]
        records.quarantine(old.run_id, entries)
        engine.stores.runs.begin("run-2", "process:h:2:2", ["shop"], full=False, dry_run=False, is_dead=dead)
        records.quarantine("run-2", [QuarantineEntry("shop", "new", "extract", "bad")])
        records.resolve_quarantine("run-2", stage, source)
        kept = {(item["source"], item["stage"]) for item in records.quarantined(10) if item["record_ref"] == "old"}
        assert kept == left
        assert "new" in {item["record_ref"] for item in records.quarantined(10)}

    def test_a_rehearsal_sees_its_own_writes_and_leaves_none(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        with engine.stores.rehearsal() as rehearsed:
            rehearsed.records.merge(hand.run_id, "shop", overlay=False, records=[record("a")])
            rehearsed.records.merge(hand.run_id, "shop", overlay=False, records=[record("b")])
            rehearsed.records.quarantine(hand.run_id, [QuarantineEntry("shop", "c", "extract", "bad")])
            assert rehearsed.records.keys("shop").size == 2
            assert len(rehearsed.records.quarantined(10)) == 1
        assert engine.stores.records.keys("shop").size == 0
        assert engine.stores.records.quarantined(10) == ()

    def test_a_rehearsal_that_fails_tells_its_own_error_and_leaves_nothing(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        engine.stores.records.merge(hand.run_id, "shop", overlay=False, records=[record("a"), record("b")])

        def rehearse() -> None:
            with engine.stores.rehearsal() as rehearsed:
                rehearsed.records.merge(hand.run_id, "shop", overlay=False, records=[record("c")])
                for _ in rehearsed.drafts.stale(b"f", 1, everything=False):
                    raise LookupError("half-way")

        with pytest.raises(LookupError, match="half-way"):
            rehearse()
        assert engine.stores.records.keys("shop").size == 2
