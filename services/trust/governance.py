"""The governance score: weighted trust signals, each component with its reasons."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from services.catalog.parts import CertificationStatus
from services.trust.rules import SignalName, TrustRules
from services.trust.signals import Signal, Signals

EXPIRED = "expired"
_WARNED_OF = frozenset({CertificationStatus.CAUTIONED, CertificationStatus.VIOLATED, CertificationStatus.INACTIVE})


@dataclass(frozen=True)
class Component:
    """One signal's part in the governance score: contribution = weight x value x confidence."""

    signal: str
    value: float
    origin: str
    confidence: float
    weight: float
    contribution: float


@dataclass(frozen=True)
class GovernanceScore:
    """0..1, the sum of the contributions. `warnings`: cautioned, violated, inactive or expired certification."""

    governance_score: float
    components: tuple[Component, ...]
    warnings: tuple[str, ...] = ()


def governance_score(signals: Signals, rules: TrustRules, *, now: datetime | None) -> GovernanceScore:
    """The governance score at `now` (with a zone): 0.40 CDE + 0.30 data quality + 0.20 certification + 0.10
    authoritative by the shipped weights; what is missing or expired is 0 and the weights are not renormalised.
    With None no expiry is judged: what is kept of a score must not depend on when it was kept.
    """
    expired = now is not None and has_expired(signals, now)
    components = tuple(_component(signal, rules, expired) for signal in signals.found)
    # Rounded so that adding floats in another order, or another engine, cannot show.
    total = round(sum(component.contribution for component in components), 12)
    return GovernanceScore(min(1.0, total), components, _warnings(signals, expired))


def has_expired(signals: Signals, now: datetime) -> bool:
    """True for a certified asset whose certification has ended by `now`."""
    ends = signals.certification_expires_at
    return signals.certification_status is CertificationStatus.CERTIFIED and ends is not None and ends <= now


def _component(signal: Signal, rules: TrustRules, expired: bool) -> Component:
    weight = rules.signals.by_name[SignalName(signal.signal)].weight
    value = signal.value or 0.0
    if expired and signal.signal == SignalName.CERTIFICATION:
        value = 0.0
    contribution = round(weight * value * signal.confidence, 12)
    return Component(signal.signal, value, signal.origin, signal.confidence, weight, contribution)


def _warnings(signals: Signals, expired: bool) -> tuple[str, ...]:
    status = signals.certification_status
    if expired:
        return (EXPIRED,)
    return (status.value,) if status in _WARNED_OF and status is not None else ()
