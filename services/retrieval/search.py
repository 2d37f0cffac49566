"""Two-stage retrieval: relevance under the caller's access first, governance second, every number kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from services.access.principal import Principal
from services.catalog.model import ObjectType
from services.errors import InvalidRequest, ModelError, SchemaError
from services.index.embedder import Embedder
from services.retrieval.grouping import group_siblings, in_first_groups
from services.retrieval.keyword import KeywordQuery
from services.retrieval.model import (
    QUERY_BYTES_LIMIT,
    Explanation,
    GovernancePart,
    Matched,
    Mode,
    Refusal,
    Result,
    SearchAnswer,
    SearchRequest,
    Siblings,
)
from services.retrieval.ranking import Ranked, Relevant, most_relevant, rank_governed
from services.retrieval.store import Corpus, Details, Question, Scope, SearchStore
from services.retrieval.visibility import Visibility
from services.retrieval.words import QueryReader
from services.text.clean import scrub, without_invisible
from services.trust.governance import GovernanceScore, governance_score
from services.trust.rules import TrustRules
from services.trust.signals import Signals

log = structlog.get_logger()

EXACT_NAME = "exact name"
# What each side proposes beyond the candidates that are kept: both signals decide, so each must see the other's.
POOL_FACTOR = 2
POOL_LEAST = 50
# Where near-duplicates fill the pool, more is proposed in steps, until there are as many groups as results are wanted.
POOL_GROWTH = 4
POOL_MOST = 2000

INSUFFICIENT_CONTEXT = Refusal(
    code="insufficient_context",
    ask="Nothing in the catalog that you may see answers this. Which business term, table or report do you mean?",
)


@dataclass(frozen=True)
class SearchSettings:
    """See the settings of the same names."""

    min_relevance: float
    pin_exact_names: bool


class SearchService:
    """Answers questions from the active index version."""

    def __init__(
        self,
        store: SearchStore,
        reader: QueryReader,
        visibility: Visibility,
        embedder: Embedder,
        rules: TrustRules,
        settings: SearchSettings,
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._reader = reader
        self._visibility = visibility
        self._embedder = embedder
        self._rules = rules
        self._settings = settings
        self._now = now

    def search(self, request: SearchRequest, principal: Principal, request_id: str) -> SearchAnswer:
        """The ranked answer. Raises InvalidRequest for an impossible query, ModelError for an index of another model,
        SchemaError before the first refresh, StoreUnavailable when the index cannot be reached."""
        started = time.perf_counter()
        request = request.model_copy(update={"query": _checked_query(request)})
        corpus = self._store.corpus()
        version = self._usable_version(corpus)
        now = self._now()
        scope = Scope(
            acl_ids=self._visibility.acl_ids(principal),
            eligible_only=request.mode is Mode.ANALYSIS,
            object_types=tuple(map(str, request.object_types)),
            filters=request.filters,
            now=now,
        )
        reading = self._reader.read(request.query, corpus.assets, scope.acl_ids)
        kept = self._kept(request, corpus, version, scope, reading.keywords)
        # Later than the candidates, so that an access list that was changed meanwhile has its say.
        details = self._store.details(version, [item.candidate for item in kept], scope.acl_ids)
        ranked = self._ranked(request, kept, details, now)
        refusal = self._refusal(request, ranked)
        results = () if refusal else self._results(request, ranked, details)
        took_ms = (time.perf_counter() - started) * 1000
        log.info("searched", request_id=request_id, mode=request.mode, results=len(results), took_ms=round(took_ms, 1))
        log.debug("query text", request_id=request_id, query=request.query)
        return SearchAnswer(
            request_id=request_id,
            index_version=version,
            data_age_seconds=corpus.data_age_seconds,
            mode=request.mode,
            results=results,
            took_ms=round(took_ms, 3),
            refusal=refusal,
            understood=reading.understood,
        )

    def _usable_version(self, corpus: Corpus) -> int:
        if corpus.version is None or corpus.model is None:
            raise SchemaError("there is no index yet; run: vouch refresh")
        if corpus.model != self._embedder.identity:
            raise ModelError(
                f"index version {corpus.version} was built with model {corpus.model.model_id!r}, this process has"
                f" {self._embedder.identity.model_id!r}; set VOUCH_MODEL to the former, or refresh with the latter"
            )
        return corpus.version

    def _kept(
        self, request: SearchRequest, corpus: Corpus, version: int, scope: Scope, keywords: KeywordQuery
    ) -> list[Relevant]:
        """Stage one: the best `candidate_limit` by relevance, or that many groups of near-duplicates with all that was
        found of each; for an empty question the first assets by name, in that order."""
        candidate_limit = max(request.candidate_limit, request.limit)
        if not request.query:
            browsed = self._store.browse(scope, request.limit)
            kept = most_relevant(browsed, 0.0, len(browsed), pin_named=False)
            places = {item.asset_key: place for place, item in enumerate(browsed)}
            return sorted(kept, key=lambda item: places[item.candidate.asset_key])
        question = Question(
            vector=self._embedder.embed_query(request.query),
            keywords=keywords,
            mean_length=corpus.mean_length,
            pool_size=max(POOL_LEAST, POOL_FACTOR * candidate_limit),
        )
        grouped = _is_grouped(request)
        while True:
            candidates = self._store.candidates(version, question, scope)
            kept_limit = len(candidates) if grouped else candidate_limit
            relevant = most_relevant(
                candidates, keywords.total_idf, kept_limit, pin_named=self._settings.pin_exact_names
            )
            if not grouped:
                return relevant
            kept, groups = in_first_groups(relevant, candidate_limit)
            all_proposed = 2 * len(candidates) < question.pool_size
            if groups >= request.limit or all_proposed or question.pool_size >= POOL_MOST:
                return kept
            question = replace(question, pool_size=min(POOL_MOST, POOL_GROWTH * question.pool_size))

    def _ranked(
        self, request: SearchRequest, kept: Sequence[Relevant], details: Mapping[int, Details], now: datetime
    ) -> list[Ranked]:
        """Stage two; for an empty question in the order given."""
        governance = {
            key: governance_score(Signals.from_json(item.signals), self._rules, now=now)
            for key, item in details.items()
        }
        ranked = rank_governed(kept, governance)
        if not request.query:
            places = {item.id: place for place, item in enumerate(kept)}
            return sorted(ranked, key=lambda item: places[item.id])
        return group_siblings(ranked) if _is_grouped(request) else ranked

    def _refusal(self, request: SearchRequest, ranked: Sequence[Ranked]) -> Refusal | None:
        if request.mode is not Mode.ANALYSIS:
            return None
        least = self._settings.min_relevance if request.min_relevance is None else request.min_relevance
        reached = any(item.relevance_score >= least for item in ranked)
        return None if reached else INSUFFICIENT_CONTEXT

    def _results(
        self, request: SearchRequest, ranked: Sequence[Ranked], details: Mapping[int, Details]
    ) -> tuple[Result, ...]:
        return tuple(
            _result(place, item, details[item.candidate.asset_key], explain=request.explain)
            for place, item in enumerate(ranked[: request.limit], start=1)
        )


def _is_grouped(request: SearchRequest) -> bool:
    return request.mode is Mode.ANALYSIS if request.group_siblings is None else request.group_siblings


def _result(rank: int, item: Ranked, details: Details, *, explain: bool) -> Result:
    return Result(
        rank=rank,
        id=item.id,
        object_type=ObjectType(details.object_type),
        name=details.name,
        title=details.title,
        location=details.location,
        url=details.url,
        final_score=item.final_score,
        matched=Matched(section=details.matched[0], text=details.matched[1]) if details.matched else None,
        warnings=item.governance.warnings,
        pinned=EXACT_NAME if item.pinned else None,
        siblings=Siblings(count=len(item.siblings), ids=item.siblings) if item.siblings else None,
        explain=_explanation(item, details) if explain else None,
    )


def governance_parts(score: GovernanceScore) -> tuple[GovernancePart, ...]:
    """The components of a governance score as they are shown."""
    return tuple(GovernancePart(**vars(component)) for component in score.components)


def _explanation(item: Ranked, details: Details) -> Explanation:
    return Explanation(
        vector_similarity=item.vector_similarity,
        vector_rank=item.vector_rank,
        keyword_score=item.keyword_score,
        keyword_rank=item.keyword_rank,
        relevance_score=item.relevance_score,
        governance_score=item.governance.governance_score,
        governance=governance_parts(item.governance),
        curation_score=details.curation_score,
        eligible=details.eligible,
        eligibility_reasons=details.eligibility_reasons,
    )


def _checked_query(request: SearchRequest) -> str:
    """The query without what no store keeps and nobody sees: a soft hyphen must not part a word."""
    size = len(request.query.encode("utf-8", errors="surrogatepass"))
    if size > QUERY_BYTES_LIMIT:
        raise InvalidRequest(f"query: has {size} bytes, at most {QUERY_BYTES_LIMIT} are taken; ask in fewer words")
    kept = scrub(request.query)[0]
    query = without_invisible(kept) or kept
    if not query and request.mode is Mode.ANALYSIS:
        raise InvalidRequest("query: is empty; ask something, or browse with mode 'discovery'")
    return query
