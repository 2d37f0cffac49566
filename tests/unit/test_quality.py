"""The verdict on golden queries before and after, what becomes the baseline, and what is said of a fall."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from services.evaluation.quality import (
    FALLEN_NAMED,
    AnsweredQuery,
    EvaluationStatus,
    QueryOutcome,
    compare,
    decide,
    describe_fallen,
)


def outcome(ndcg: float, ranks: Mapping[str, int | None] | None = None, top: tuple[str, ...] = ()) -> QueryOutcome:
    return QueryOutcome(ndcg, {"gold": 1} if ranks is None else ranks, top)


def answered(qid: str, ndcg: float, *, digest: str | None = None) -> AnsweredQuery:
    return AnsweredQuery(digest or f"digest of {qid}", qid, f"{qid}?", outcome(ndcg))


def before(*queries: AnsweredQuery) -> dict[str, QueryOutcome]:
    return {query.digest: query.outcome for query in queries}


class TestCompare:
    @pytest.mark.parametrize(
        ("ndcg", "passed"), [(1.0, True), (0.9, True), (0.88, True), (0.8799, False), (0.0, False)]
    )
    def test_a_drop_beyond_the_limit_is_refused_and_one_of_the_limit_itself_is_not(
        self, ndcg: float, passed: bool
    ) -> None:
        verdict = compare(before(answered("a", 0.9)), [answered("a", ndcg)])
        assert verdict.passed is passed
        assert (verdict.ndcg_before, verdict.ndcg_after, verdict.compared) == (0.9, ndcg, 1)

    def test_means_are_compared_and_not_single_queries(self) -> None:
        then = before(answered("a", 1.0), answered("b", 0.5))
        verdict = compare(then, [answered("a", 0.5), answered("b", 1.0)])
        assert verdict.passed
        assert [query.qid for query in verdict.fallen] == ["a"]

    def test_only_queries_that_stand_on_both_sides_count(self) -> None:
        then = before(answered("kept", 0.8), answered("gone", 1.0), answered("edited", 1.0))
        now = [answered("kept", 0.8), answered("new", 0.0), answered("edited", 0.0, digest="another gold")]
        verdict = compare(then, now)
        assert (verdict.passed, verdict.compared) == (True, 1)
        assert (verdict.ndcg_before, verdict.ndcg_after) == (0.8, 0.8)

    def test_nothing_in_common_is_no_fall(self) -> None:
        verdict = compare(before(answered("a", 1.0)), [answered("b", 0.0)])
        assert (verdict.passed, verdict.compared, verdict.ndcg_before, verdict.fallen) == (True, 0, None, ())
        assert verdict.reasons

    def test_the_reason_names_the_numbers_and_the_limit(self) -> None:
        verdict = compare(before(answered("a", 0.9)), [answered("a", 0.5)], drop_limit=0.1)
        assert "fell by 0.4000, from 0.9000 to 0.5000; a drop of 0.1 is let through" in verdict.reasons[0]

    def test_the_deepest_fall_comes_first(self) -> None:
        then = before(answered("a", 1.0), answered("b", 1.0), answered("c", 1.0), answered("d", 0.4))
        now = [answered("a", 0.9), answered("b", 0.2), answered("c", 0.9), answered("d", 0.5)]
        assert [query.qid for query in compare(then, now).fallen] == ["b", "a", "c"]

    def test_what_stands_above_a_gold_now_and_did_not_before_has_overtaken_it(self) -> None:
        then = {"d": outcome(0.8, {"x": 2, "y": 3, "z": 5}, ("old", "x", "y", "p", "z"))}
        now = outcome(0.5, {"x": 4, "y": None, "z": 5}, ("old", "new", "p", "x", "z", "late"))
        (fallen,) = compare(then, [AnsweredQuery("d", "q", "q?", now)]).fallen
        moves = {move.id: move for move in fallen.moves}
        assert (moves["x"].rank_before, moves["x"].rank_after, moves["x"].overtaken_by) == (2, 4, ("new", "p"))
        assert (moves["y"].rank_before, moves["y"].rank_after) == (3, None)
        assert moves["y"].overtaken_by == ("new", "p", "late")
        assert "z" not in moves

    def test_a_gold_that_was_not_found_before_has_not_sunk(self) -> None:
        then = {"d": outcome(1.0, {"x": 1, "y": None}, ("x",))}
        now = outcome(0.6, {"x": 2, "y": None}, ("new", "x"))
        (fallen,) = compare(then, [AnsweredQuery("d", "q", "q?", now)]).fallen
        assert [move.id for move in fallen.moves] == ["x"]


class TestDecide:
    def test_the_first_run_is_the_baseline(self) -> None:
        decision = decide({}, [answered("a", 0.3), answered("b", 0.1)], accept=False)
        assert decision.status is EvaluationStatus.FIRST
        assert decision.raised == {"digest of a", "digest of b"}

    @pytest.mark.parametrize("ndcg", [0.5, 0.50000000001, 0.9])
    def test_a_run_as_good_or_better_becomes_the_baseline(self, ndcg: float) -> None:
        decision = decide(before(answered("a", 0.5)), [answered("a", ndcg), answered("new", 0.1)], accept=False)
        assert decision.status is EvaluationStatus.PASSED
        assert decision.raised == {"digest of a", "digest of new"}

    def test_a_run_that_is_worse_within_the_limit_is_the_baseline_of_new_queries_alone(self) -> None:
        decision = decide(before(answered("a", 0.5)), [answered("a", 0.49), answered("new", 0.1)], accept=False)
        assert decision.status is EvaluationStatus.PASSED
        assert decision.raised == {"digest of new"}

    def test_a_run_that_fell_is_nobodys_baseline(self) -> None:
        decision = decide(before(answered("a", 0.5)), [answered("a", 0.4), answered("new", 0.1)], accept=False)
        assert decision.status is EvaluationStatus.FELL
        assert decision.raised == frozenset()

    @pytest.mark.parametrize("ndcg", [0.1, 0.9])
    def test_what_an_operator_accepts_is_the_baseline_and_the_fall_is_still_told(self, ndcg: float) -> None:
        decision = decide(before(answered("a", 0.5)), [answered("a", ndcg)], accept=True)
        assert decision.status is EvaluationStatus.ACCEPTED
        assert decision.raised == {"digest of a"}
        assert decision.verdict.passed is (ndcg > 0.5)

    def test_small_drops_in_a_row_add_up(self) -> None:
        baseline = before(answered("a", 0.9))
        statuses = []
        for ndcg in (0.885, 0.87, 0.855):
            run = [answered("a", ndcg)]
            decision = decide(baseline, run, accept=False)
            statuses.append(decision.status.value)
            baseline |= {query.digest: query.outcome for query in run if query.digest in decision.raised}
        assert statuses == ["passed", "fell", "fell"]

    def test_an_edited_file_does_not_lower_the_baseline_of_what_stays_in_it(self) -> None:
        baseline = before(answered("a", 0.9))
        statuses = []
        for ndcg, added in ((0.885, "b"), (0.87, "c")):
            run = [answered("a", ndcg), answered(added, 1.0)]
            decision = decide(baseline, run, accept=False)
            statuses.append(decision.status.value)
            baseline |= {query.digest: query.outcome for query in run if query.digest in decision.raised}
        assert statuses == ["passed", "fell"]

    def test_queries_without_a_baseline_are_counted_in_the_reasons(self) -> None:
        verdict = compare(before(answered("a", 0.9)), [answered("a", 0.9), answered("b", 0.1), answered("c", 0.1)])
        assert verdict.passed
        assert verdict.reasons[1:] == ("new or edited, so without a baseline yet: 2",)


class TestDescribe:
    def test_a_line_says_what_sank_how_far_and_below_what(self) -> None:
        then = {"d": outcome(1.0, {"x": 1, "y": 2}, ("x", "y"))}
        now = outcome(0.4, {"x": 3, "y": None}, ("new", "p", "x"))
        (line,) = describe_fallen(compare(then, [AnsweredQuery("d", "q1", "where?", now)]).fallen)
        assert line.startswith("q1 'where?': nDCG@10 1.000 -> 0.400; ")
        assert "'x' from rank 1 to 3, overtaken by 'new', 'p'" in line
        assert "'y' from rank 2 to beyond 30, overtaken by" in line

    def test_those_above_a_gold_that_is_lost_are_named_up_to_a_few(self) -> None:
        now = QueryOutcome(0.0, {"x": None}, ("a", "b", "c", "d", "e"))
        (line,) = describe_fallen(
            compare({"d": outcome(1.0, {"x": 1}, ("x",))}, [AnsweredQuery("d", "q1", "?", now)]).fallen
        )
        assert line.endswith("overtaken by 'a', 'b', 'c' and 2 more")

    def test_what_came_from_outside_cannot_command_a_terminal(self) -> None:
        then = {"d": outcome(1.0)}
        now = QueryOutcome(0.0, {"gold": 2}, ("\x1b[2J", "gold"))
        (line,) = describe_fallen(compare(then, [AnsweredQuery("d", "q1", "a\x1b]0;b\x07", now)]).fallen)
        assert line.isprintable()

    def test_of_many_the_first_are_named_and_the_rest_counted(self) -> None:
        count = FALLEN_NAMED + 3
        then = before(*(answered(f"q{number}", 1.0) for number in range(count)))
        lines = describe_fallen(compare(then, [answered(f"q{number}", 0.0) for number in range(count)]).fallen)
        assert len(lines) == FALLEN_NAMED + 1
        assert lines[-1] == "and 3 more"
