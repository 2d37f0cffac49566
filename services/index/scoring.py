"""Signals and scores of one asset under one set of rules. No clock, no database, no model."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.catalog.model import Asset, canonical_json
from services.trust.curation import curation_score
from services.trust.governance import governance_score
from services.trust.rules import SignalName, TrustRules
from services.trust.signals import Signals, governance_words, read_signals

# Raise it when the same asset must be scored differently by the same rules: every asset is then scored again.
SCORER_VERSION = 1


@dataclass(frozen=True)
class Scores:
    """What trust says of an asset, as plain values; `rules_digest` names what it rests on.

    The governance score is taken before its expiry is judged: that is for the clock of whoever asks.
    """

    signals: Mapping[str, Any]
    certification: str
    certification_expires_at: str | None
    critical: bool | None
    data_quality_percent: float | None
    governance: tuple[Mapping[str, Any], ...]
    governance_score: float
    curation_score: float
    curation: tuple[Mapping[str, Any], ...]
    curation_native: bool
    rules_digest: str


class Scorer:
    """Scores assets by one set of rules; equal `digest`, equal scores."""

    def __init__(self, rules: TrustRules, *, prefer_native_curation: bool) -> None:
        self._rules = rules
        self._prefer_native_curation = prefer_native_curation
        parts = {"scorer": SCORER_VERSION, "rules": rules.digest, "prefer_native_curation": prefer_native_curation}
        self.digest = hashlib.sha256(canonical_json(parts).encode()).hexdigest()

    def score(self, asset: Asset) -> Scores:
        signals = read_signals(asset, self._rules)
        governance = governance_score(signals, self._rules, now=None)
        curation = curation_score(asset, self._rules, prefer_native=self._prefer_native_curation)
        expires_at = signals.certification_expires_at
        return Scores(
            signals=signals.to_json(),
            certification=str(signals.certification_status or "none"),
            certification_expires_at=expires_at.isoformat() if expires_at else None,
            critical=_critical(signals),
            data_quality_percent=_quality_percent(signals),
            governance=tuple(dict(vars(component)) for component in governance.components),
            governance_score=governance.governance_score,
            curation_score=curation.curation_score,
            curation=tuple(dict(vars(item)) for item in curation.items),
            curation_native=curation.native,
            rules_digest=self.digest,
        )


def told_words(signals: Mapping[str, Any]) -> tuple[str, ...]:
    """The governance words that a narrative says for these stored signals."""
    return governance_words(Signals.from_json(signals))


def _critical(signals: Signals) -> bool | None:
    value = signals.get(SignalName.CRITICAL_DATA_ELEMENT).value
    return None if value is None else value > 0


def _quality_percent(signals: Signals) -> float | None:
    value = signals.get(SignalName.DATA_QUALITY).value
    return None if value is None else value * 100
