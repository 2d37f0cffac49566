"""From stored records to what is published: merged, scored, gated, told, cut into chunks. No clock, no database."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import ValidationError

from services.access.rule import AccessRule, Level, access_rule
from services.catalog.merge import merge_payloads
from services.catalog.model import Asset, ObjectType, asset_key, canonical_json, text_key
from services.catalog.sources.validation import explain
from services.context.chunking import chunk
from services.context.facts import shown_terms
from services.context.keywords import keyword_document, whole_names, whole_synonyms
from services.context.labels import Neighbour, Surroundings, reference_ids, surroundings
from services.context.narrative import NarrativeRules
from services.context.narrative import compose as compose_narrative
from services.index.embedder import Embedder
from services.index.identity import content_hash
from services.index.scoring import Scorer, told_words
from services.index.store import Composed, ComposedChunk, Draft, StaleAsset, UncomposedDraft
from services.trust.gate import GateThresholds, gate, threshold_for
from services.trust.rules import TrustRules

# Raise it when the same asset must come out differently: every asset is then composed again, on the next refresh.
# Scores have a version of their own in `scoring`.
COMPOSER_VERSION = 6
# An index over whole names holds no longer ones, and nobody types them.
WHOLE_NAME_BYTES_LIMIT = 2048


@dataclass(frozen=True)
class ComposeError:
    """A merged record that is no asset."""

    source: str
    asset_id: str
    error: str


@dataclass(frozen=True)
class ComposeSettings:
    """See the settings of the same names."""

    default_classification: Level
    prefer_native_curation: bool
    thresholds: GateThresholds


class Composer:
    """Composes assets by one set of rules for one embedding model."""

    def __init__(self, rules: TrustRules, embedder: Embedder, settings: ComposeSettings) -> None:
        self.scorer = Scorer(rules, prefer_native_curation=settings.prefer_native_curation)
        self._embedder = embedder
        self._settings = settings
        self._narrative_rules = NarrativeRules(sensitive_names=rules.sensitive_names)

    @property
    def thresholds(self) -> GateThresholds:
        return self._settings.thresholds

    @property
    def fingerprint(self) -> bytes:
        """Changes whenever the same records would be told, listed or cut differently, by settings, model or this code.

        What rules and thresholds make of an asset has ways of its own: `Scores.rules_digest` says by which rules it
        was scored, and the gate is asked in every run. Where rules change a narrative, its asset is drafted again.
        """
        parts = {
            "composer": COMPOSER_VERSION,
            "sensitive_names": sorted(self._narrative_rules.sensitive_names),
            "values_per_column": self._narrative_rules.values_per_column,
            "model": asdict(self._embedder.identity),
            "default_classification": int(self._settings.default_classification),
        }
        return hashlib.sha256(canonical_json(parts).encode()).digest()

    def merge_page(self, stale: Iterable[StaleAsset]) -> tuple[list[Draft], list[ComposeError]]:
        """A draft for each id whose records make an asset, an error for each that do not."""
        drafts: list[Draft] = []
        failed: list[ComposeError] = []
        for item in stale:
            try:
                asset = Asset.model_validate(merge_payloads(item.payloads))
            except ValidationError as error:
                hint = "" if len(item.sources) > 1 else "; if an overlay says this, no other source lists the id"
                failed.append(ComposeError(item.sources[0], item.id, explain(error) + hint))
                continue
            drafts.append(self._draft(asset, item))
        return drafts, failed

    def neighbour_keys(self, drafts: Iterable[UncomposedDraft]) -> list[int]:
        """The keys of all assets that the narratives of these drafts may name."""
        references = (reference for draft in drafts for reference in reference_ids(_asset(draft)))
        return list({asset_key(reference) for reference in references})

    def compose_page(self, drafts: Sequence[UncomposedDraft], neighbours: Iterable[Neighbour]) -> dict[int, Composed]:
        """The composed form of each draft, by key; `neighbours` holds those that `neighbour_keys` asked for."""
        by_id = {neighbour.asset_id: neighbour for neighbour in neighbours}
        return {draft.asset_key: self._compose(draft, by_id) for draft in drafts}

    def _draft(self, asset: Asset, item: StaleAsset) -> Draft:
        return Draft(
            asset_key=item.asset_key,
            id=asset.id,
            source=item.sources[0],
            object_type=asset.object_type,
            name=asset.name,
            title=asset.title,
            access=self._access(asset),
            record_digest=item.record_digest,
            payload=asset.payload(),
            reference_keys=tuple(sorted({asset_key(reference) for reference in reference_ids(asset)})),
        )

    def _access(self, asset: Asset) -> AccessRule:
        access = asset.access
        word = access.classification
        if asset.object_type is ObjectType.DATA_PRODUCT and not (word or "").strip():
            word = asset.attributes.sensitivity
        return access_rule(
            word,
            access.groups,
            access.users,
            access.denied_groups,
            access.denied_users,
            default=self._settings.default_classification,
        )

    def _compose(self, draft: UncomposedDraft, by_id: Mapping[str, Neighbour]) -> Composed:
        asset = _asset(draft)
        around = {reference: by_id[reference] for reference in reference_ids(asset) if reference in by_id}
        scores = self.scorer.score(asset)
        threshold = threshold_for(asset.object_type, draft.source, self._settings.thresholds)
        verdict = gate(scores.curation_score, threshold)
        words = told_words(scores.signals)
        narrative = compose_narrative(asset, around, draft.access, self._narrative_rules, words)
        keywords = keyword_document(asset, around, draft.access, self._narrative_rules)
        chunks = chunk(narrative, self._embedder.count_tokens, max_tokens=self._embedder.tokens_limit)
        model = self._embedder.identity
        return Composed(
            keyword_length=keywords.length,
            whole_names=_indexable(whole_names(asset)),
            whole_synonyms=_indexable(whole_synonyms(asset)),
            **_facets(asset, surroundings(around, draft.access)),
            shape=_shape(asset),
            siblings=tuple(sorted(asset_key(sibling) for sibling in asset.siblings)),
            narrative=narrative.text,
            postings=keywords.terms,
            words=keywords.words,
            chunks=tuple(
                ComposedChunk(item.number, item.section, item.text, content_hash(item.text, model)) for item in chunks
            ),
            **vars(scores),
            threshold=threshold,
            eligible=verdict.eligible,
            eligibility_reasons=verdict.reasons,
        )


def _asset(draft: UncomposedDraft) -> Asset:
    return Asset.model_validate(draft.payload)


def _facets(asset: Asset, around: Surroundings) -> dict[str, Any]:
    """What search filters by, casefolded; a tag also stands for its parents, a custom field "Domain" for a domain.

    Less visible neighbours are left out as they are from the narrative: a filter must not confirm a guess at them.
    """
    tags = (path[:length] for path in asset.tags for length in range(1, len(path) + 1))
    terms = shown_terms(asset.terms, around)
    domains = [asset.attributes.domain, *(term.domain for term in terms)]
    domains += [str(field.value) for field in asset.custom_fields if field.name.casefold() == "domain" and field.value]
    return {
        "tags": _folded([*(part for path in asset.tags for part in path), *("/".join(path) for path in tags)]),
        "terms": _folded(text for term in terms for text in (term.name, term.id)),
        "domains": _folded(domains),
        "owners": _folded(role.name for role in asset.governance_roles),
        "data_products": _folded(word for product in asset.data_products for word in _words_of(product, around)),
        "workspaces": _folded(asset.access.workspaces),
    }


def _words_of(reference: str, around: Surroundings) -> tuple[str | None, ...]:
    """What a filter finds a referenced asset by: its id, name and title; nothing when it may not be named."""
    if reference in around.hidden_ids:
        return ()
    neighbour = around.visible.get(reference)
    return (reference, neighbour.name, neighbour.title) if neighbour else (reference,)


def _indexable(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if len(name.encode()) <= WHOLE_NAME_BYTES_LIMIT)


def _folded(texts: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(sorted({text.casefold() for text in texts if text}))


def _shape(asset: Asset) -> int | None:
    """One number for assets that look the same: type, name and columns, whatever their case; None without columns."""
    if not asset.columns:
        return None
    columns = sorted(column.name.casefold() for column in asset.columns)
    return text_key(canonical_json([asset.object_type, asset.name.casefold(), columns]))
