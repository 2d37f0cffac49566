"""The two stages' arithmetic: pure functions of signals to scores, and the order they give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.retrieval.keyword import keyword_score
from services.trust.governance import GovernanceScore

RELEVANCE_WEIGHT = 0.75
GOVERNANCE_WEIGHT = 0.25
BEST_CHUNK_SHARE = 0.5  # the rest is what all chunks have together: an asset with fifty has no fifty chances


@dataclass(frozen=True)
class Candidate:
    """A stage-one hit with what the engine measured of it."""

    asset_key: int
    id: str
    named: bool  # the whole query is its name, title or qualified name
    called: bool  # the whole query is one of its synonyms
    best_cosine: float | None  # of its nearest chunk; None: not in the embedding pool
    mean_cosine: float | None  # of all its chunks
    chunk_number: int | None
    matched_idf: float
    shape: int | None = None
    siblings: tuple[int, ...] = ()


@dataclass(frozen=True)
class Relevant:
    """A candidate that stage one keeps; ranks count from 1 among all candidates of the question."""

    candidate: Candidate
    vector_similarity: float | None
    keyword_score: float
    relevance_score: float
    vector_rank: int | None
    keyword_rank: int | None
    pinned: bool  # stands before all others in both stages

    @property
    def id(self) -> str:
        return self.candidate.id


@dataclass(frozen=True)
class Ranked(Relevant):
    """A candidate with every number that ranks it."""

    governance: GovernanceScore
    final_score: float
    siblings: tuple[str, ...] = ()


def vector_similarity(best_cosine: float, mean_cosine: float) -> float:
    """An asset's similarity, 0..1, from its chunks': halfway between the best one and the mean of all.

    bench: 314 questions over 2,230 tables of up to 142 chunks. By the best chunk alone complete recall@10 of the
    relevance is 57.0 %, with a discount of 0.02 for each doubling of chunks 58.9 %, by this 59.6 %.
    """
    return min(1.0, max(0.0, BEST_CHUNK_SHARE * best_cosine + (1 - BEST_CHUNK_SHARE) * mean_cosine))


def relevance_score(similarity: float | None, keyword: float) -> float:
    """(vector similarity + keyword score) / 2; an absent similarity counts 0."""
    return ((similarity or 0.0) + keyword) / 2


def final_score(relevance: float, governance: float) -> float:
    """0.75 x relevance + 0.25 x governance."""
    return RELEVANCE_WEIGHT * relevance + GOVERNANCE_WEIGHT * governance


def most_relevant(
    candidates: Sequence[Candidate], total_idf: float, candidate_limit: int, *, pin_named: bool
) -> list[Relevant]:
    """Stage one: the best `candidate_limit` by relevance; ties by id.

    With `pin_named`, assets whose name the whole query is stand before all others.
    """
    similarity = {item.id: _similarity(item) for item in candidates}
    keyword = {
        item.id: keyword_score(item.matched_idf, total_idf, whole=item.named or item.called) for item in candidates
    }
    vector_ranks = _ranks({key: value for key, value in similarity.items() if value is not None})
    keyword_ranks = _ranks({key: value for key, value in keyword.items() if value > 0})
    relevance = {item.id: relevance_score(similarity[item.id], keyword[item.id]) for item in candidates}
    pinned = {item.id for item in candidates if pin_named and item.named}
    kept = sorted(candidates, key=lambda item: (item.id not in pinned, -relevance[item.id], item.id))[:candidate_limit]
    return [
        Relevant(
            candidate=item,
            vector_similarity=similarity[item.id],
            keyword_score=keyword[item.id],
            relevance_score=relevance[item.id],
            vector_rank=vector_ranks.get(item.id),
            keyword_rank=keyword_ranks.get(item.id),
            pinned=item.id in pinned,
        )
        for item in kept
    ]


def rank_governed(kept: Sequence[Relevant], governance: Mapping[int, GovernanceScore]) -> list[Ranked]:
    """Stage two: what was kept in order of final score; ties by id; pinned ones stay before all others.

    `governance` by asset key; a candidate without is left out.
    """
    ranked = [
        Ranked(
            **vars(item),
            governance=governance[item.candidate.asset_key],
            final_score=final_score(item.relevance_score, governance[item.candidate.asset_key].governance_score),
        )
        for item in kept
        if item.candidate.asset_key in governance
    ]
    return sorted(ranked, key=lambda item: (not item.pinned, -item.final_score, item.id))


def _similarity(item: Candidate) -> float | None:
    if item.best_cosine is None or item.mean_cosine is None:
        return None
    return vector_similarity(item.best_cosine, item.mean_cosine)


def _ranks(values: Mapping[str, float]) -> dict[str, int]:
    order = sorted(values, key=lambda key: (-values[key], key))
    return {key: place for place, key in enumerate(order, start=1)}
