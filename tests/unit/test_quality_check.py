"""The golden queries asked, kept and held against what was: with a search and a store that do what a test says."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from services.errors import PermanentError, TransientError
from services.evaluation.check import HOW_TO_GO_ON, IndexChanged, QualityCheck, QualityFell, describe_unreachable
from services.evaluation.golden import GoldenQuery
from services.evaluation.quality import Decision, QueryOutcome
from services.evaluation.store import Decide, Evaluation, PastEvaluation
from services.retrieval.model import Mode, Result, SearchAnswer, SearchRequest

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ORDERS = GoldenQuery(qid="q1", question="Which orders came late?", gold=("orders",))
PARCELS = GoldenQuery(qid="q2", question="parcels", gold=("parcels", "carriers"))


@dataclass
class Kept:
    """A store in memory that knows nothing of time or of the number of runs."""

    published: dict[str, bool] = field(default_factory=lambda: dict.fromkeys(("orders", "parcels", "carriers"), True))
    baselines: dict[str, QueryOutcome] = field(default_factory=dict)
    evaluations: list[Evaluation] = field(default_factory=list)

    def eligible(self, asset_ids: Sequence[str]) -> Mapping[str, bool]:
        return {asset_id: self.published[asset_id] for asset_id in asset_ids if asset_id in self.published}

    def record(self, evaluation: Evaluation, decide: Decide, kept: int) -> Decision:
        assert kept > 0
        decision = decide(self.baselines)
        self.evaluations.append(evaluation)
        self.baselines |= {
            query.digest: query.outcome for query in evaluation.answered if query.digest in decision.raised
        }
        return decision

    def recent(self, limit: int) -> tuple[PastEvaluation, ...]:
        raise AssertionError(limit)


@dataclass
class Index:
    """Answers each question with the ids that stand here, from one index version after the other."""

    rankings: dict[str, list[str]]
    versions: list[int] = field(default_factory=lambda: [1])
    asked: list[SearchRequest] = field(default_factory=list)

    def __call__(self, request: SearchRequest) -> SearchAnswer:
        version = self.versions[min(len(self.asked), len(self.versions) - 1)]
        self.asked.append(request)
        results = tuple(_result(rank, found) for rank, found in enumerate(self.rankings[request.query], start=1))
        return SearchAnswer(
            request_id="r",
            index_version=version,
            data_age_seconds=None,
            mode=Mode.ANALYSIS,
            results=results,
            took_ms=1.0,
        )


def _result(rank: int, asset_id: str) -> Result:
    return Result(
        rank=rank,
        id=asset_id,
        object_type="table",
        name=asset_id,
        title=None,
        location=(),
        url=None,
        final_score=0.5,
        matched=None,
    )


@pytest.fixture
def index() -> Index:
    return Index({ORDERS.question: ["orders", "parcels"], PARCELS.question: ["parcels", "carriers"]})


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def run(index: Index, kept: Kept) -> Callable[..., dict[str, object]]:
    check = QualityCheck(index, kept, lambda: NOW)
    return lambda *, accept=False: check.run([ORDERS, PARCELS], accept=accept)


def test_a_run_is_kept_with_measures_ranks_and_the_version_that_answered(
    run: Callable[..., dict[str, object]], index: Index, kept: Kept
) -> None:
    index.versions = [7]
    index.rankings[PARCELS.question] = ["orders", "carriers"]
    report = run()
    (evaluation,) = kept.evaluations
    assert (evaluation.evaluated_at, evaluation.index_version) == (NOW, 7)
    assert report["status"] == "first"
    assert report["measures"] == evaluation.measures
    assert evaluation.measures["recall@1"] == 0.5
    ranks = {query.qid: query.outcome.gold_ranks for query in evaluation.answered}
    assert ranks == {"q1": {"orders": 1}, "q2": {"parcels": None, "carriers": 2}}


def test_the_report_holds_ids_and_numbers_and_no_question(run: Callable[..., dict[str, object]], index: Index) -> None:
    run()
    index.rankings[ORDERS.question] = ["parcels", "orders"]
    assert ORDERS.question not in json.dumps(run(accept=True))


def test_ranks_are_looked_at_deeper_than_they_are_measured_and_no_candidate_is_added(
    run: Callable[..., dict[str, object]], index: Index, kept: Kept
) -> None:
    index.rankings[ORDERS.question] = [*(f"other-{number}" for number in range(12)), "orders"]
    report = run()
    assert {(request.limit, request.candidate_limit) for request in index.asked} == {(30, 30)}
    (evaluation,) = kept.evaluations
    assert evaluation.answered[0].outcome.gold_ranks == {"orders": 13}
    assert len(evaluation.answered[0].outcome.top) == 10
    assert report["measures"]["mrr"] == 0.5  # as `vouch evaluate` counts it: the first ten


def test_a_fall_is_kept_and_then_raised_with_all_that_is_needed_to_act(
    run: Callable[..., dict[str, object]], index: Index, kept: Kept
) -> None:
    run()
    index.rankings[ORDERS.question] = ["invoices", "parcels", "orders"]
    kept.published.pop("carriers")
    with pytest.raises(QualityFell) as raised:
        run()
    assert isinstance(raised.value, PermanentError)
    said = str(raised.value)
    assert "fell by 0.2500, from 1.0000 to 0.7500; a drop of 0.02 is let through" in said
    assert "q1 'Which orders came late?'" in said
    assert "'orders' from rank 1 to 3, overtaken by 'invoices', 'parcels'" in said
    assert "'carriers' is not in the index (gold of q2)" in said
    assert "q2 'parcels'" not in said
    assert HOW_TO_GO_ON in said
    assert len(kept.evaluations) == 2


def test_it_stays_red_until_it_is_mended(run: Callable[..., dict[str, object]], index: Index) -> None:
    run()
    good = index.rankings[ORDERS.question]
    index.rankings[ORDERS.question] = ["parcels", "orders"]
    for _ in range(2):
        with pytest.raises(QualityFell):
            run()
    index.rankings[ORDERS.question] = good
    assert run()["status"] == "passed"


def test_or_until_the_new_level_is_accepted(run: Callable[..., dict[str, object]], index: Index) -> None:
    run()
    index.rankings[ORDERS.question] = ["parcels", "orders"]
    report = run(accept=True)
    assert (report["status"], report["fallen"]) == ("accepted", ["q1"])
    assert run()["status"] == "passed"


def test_a_version_promoted_meanwhile_makes_it_worth_another_try(
    run: Callable[..., dict[str, object]], index: Index, kept: Kept
) -> None:
    index.versions = [1, 2]
    with pytest.raises(IndexChanged, match=r"\[1, 2\]") as raised:
        run()
    assert isinstance(raised.value, TransientError)
    assert kept.evaluations == []


def test_gold_that_no_ranking_can_hold_is_named_once_with_its_queries(index: Index, kept: Kept) -> None:
    kept.published = {"orders": True, "carriers": False}
    other = GoldenQuery(qid="q3", question="parcels", gold=("parcels", "parcels"))
    asked = QualityCheck(index, kept, lambda: NOW).ask([ORDERS, PARCELS, other])
    assert describe_unreachable(asked.unreachable) == [
        "'parcels' is not in the index (gold of q2, q3)",
        "'carriers' is below the curation threshold (gold of q2)",
    ]


def test_progress_is_told_query_by_query(index: Index, kept: Kept) -> None:
    told: list[tuple[int, int]] = []
    QualityCheck(index, kept, lambda: NOW).ask(
        [ORDERS, PARCELS], progress=lambda done, total: told.append((done, total))
    )
    assert told == [(1, 2), (2, 2)]


def test_the_set_of_questions_is_known_by_what_is_in_it(index: Index, kept: Kept) -> None:
    check = QualityCheck(index, kept, lambda: NOW)
    edited = ORDERS.model_copy(update={"gold": ("parcels",)})
    for queries in ([ORDERS, PARCELS], [PARCELS, ORDERS], [edited, PARCELS]):
        check.keep(check.ask(queries), accept=False)
    first, reordered, other = (evaluation.question_set for evaluation in kept.evaluations)
    assert first == reordered != other
