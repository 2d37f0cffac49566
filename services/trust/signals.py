"""Trust signals of one asset: native values first, stand-ins where there is none, and what was noticed on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from services.catalog.model import Asset
from services.catalog.parts import CertificationStatus
from services.trust.labels import read_label
from services.trust.lexicon import lexicon_of
from services.trust.names import name_words
from services.trust.policies import PolicyReference, policy_references
from services.trust.proxies import Proxy, ProxyKind, read_custom_field, shortened
from services.trust.rules import SignalName, TrustRules
from services.trust.values import Legibility, read_day

ABSENT = "absent"
NATIVE = "native"
HIGH_DATA_QUALITY_FROM = 0.9  # share from which a narrative says "high data quality"

# Among statements that are worth the same, the graver one counts, so that its warning is not lost.
_GRAVEST_FIRST = (
    CertificationStatus.VIOLATED,
    CertificationStatus.INACTIVE,
    CertificationStatus.CAUTIONED,
    CertificationStatus.NONE,
    CertificationStatus.CERTIFIED,
)
_WORTHLESS_LAST = len(_GRAVEST_FIRST)


@dataclass(frozen=True)
class Signal:
    """One observed governance fact. `value` is 0..1, or None when nothing that counts was observed.

    `origin`: "native", "custom field 'Golden Source?'", "tag 'CDE'", "term 'Certified'" or "absent".
    """

    signal: str
    value: float | None
    display: str
    origin: str
    confidence: float


@dataclass(frozen=True)
class Signals:
    """All that is known of an asset's trust, without a clock: a certification's end is kept, not judged.

    `found` holds one signal for each category that the governance score weighs, in their order.
    `certification_status` is None when nothing speaks of one; it is kept on every object type, for its warnings.
    `notes` are facts for people: contradictions, unreadable values, signals that do not count on the type.
    """

    found: tuple[Signal, ...]
    certification_status: CertificationStatus | None = None
    certification_expires_at: datetime | None = None
    policy_references: tuple[PolicyReference, ...] = ()
    notes: tuple[str, ...] = ()

    def get(self, signal: str) -> Signal:
        """The signal of that category. KeyError for a category that is not weighed."""
        return {found.signal: found for found in self.found}[signal]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `from_json` gives the same signals back."""
        expires_at = self.certification_expires_at
        return {
            "found": [vars(signal) for signal in self.found],
            "certification": {
                "status": self.certification_status and self.certification_status.value,
                "expires_at": expires_at.isoformat() if expires_at else None,
            },
            "policy_references": [vars(reference) for reference in self.policy_references],
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Signals:
        status, expires_at = stored["certification"]["status"], stored["certification"]["expires_at"]
        return cls(
            found=tuple(Signal(**signal) for signal in stored["found"]),
            certification_status=CertificationStatus(status) if status else None,
            certification_expires_at=datetime.fromisoformat(expires_at) if expires_at else None,
            policy_references=tuple(PolicyReference(**reference) for reference in stored["policy_references"]),
            notes=tuple(stored["notes"]),
        )


def read_signals(asset: Asset, rules: TrustRules) -> Signals:
    """The asset's signals under the rules. Never raises for a value: what cannot be read is noted and unknown."""
    proxies = _proxies(asset, rules)
    notes: list[str] = []
    found: list[Signal] = []
    status: CertificationStatus | None = None
    expires_at: datetime | None = None
    for name in lexicon_of(rules).signals:
        own = [proxy for proxy in proxies if proxy.signal is name]
        notes += [_unreadable_note(proxy) for proxy in own if proxy.legibility is Legibility.UNREADABLE]
        native = _native(name, asset, rules)
        chosen = None if native else _lowest(own)
        if name is SignalName.CERTIFICATION:
            status, expires_at, more = _certification(asset, chosen, rules)
            notes += more
        signal = native or (_from_proxy(chosen) if chosen else _absent(name))
        notes += _disagreements(signal, chosen, own)
        if signal.value is not None and asset.object_type not in rules.signals.by_name[name].object_types:
            notes.append(f"{name}: {signal.origin} says {signal.display}; it does not count on a {asset.object_type}")
            signal = _absent(name)
        found.append(signal)
    return Signals(tuple(found), status, expires_at, policy_references(asset, rules), tuple(notes))


def governance_words(signals: Signals) -> tuple[str, ...]:
    """The few coarse words a narrative may say of an asset's governance; no numbers, no dates.

    "certified" is said only of a certification without an end: a narrative is composed once and read later, and must
    not go on claiming what has run out meanwhile.
    """
    certain = {signal.signal for signal in signals.found if signal.value == 1}
    quality = signals.get(SignalName.DATA_QUALITY).value
    endless = signals.certification_expires_at is None
    certified = signals.certification_status is CertificationStatus.CERTIFIED
    counts = signals.get(SignalName.CERTIFICATION).value is not None
    words = (
        (certified and endless and counts, "certified"),
        (SignalName.CRITICAL_DATA_ELEMENT in certain, "critical data element"),
        (SignalName.AUTHORITATIVE in certain, "authoritative source"),
        (quality is not None and quality >= HIGH_DATA_QUALITY_FROM, "high data quality"),
    )
    return tuple(word for holds, word in words if holds)


def _proxies(asset: Asset, rules: TrustRules) -> tuple[Proxy, ...]:
    """Every stand-in the asset carries, readable or not, in an order that its source cannot influence."""
    found = [proxy for field in asset.custom_fields for proxy in read_custom_field(field.name, field.value, rules)]
    found += [proxy for path in asset.tags for proxy in read_label(ProxyKind.TAG, path, rules)]
    found += [proxy for term in asset.terms for proxy in read_label(ProxyKind.TERM, (term.name,), rules)]
    return tuple(sorted(set(found), key=lambda proxy: (proxy.signal, proxy.kind, proxy.name, proxy.raw)))


def _native(name: SignalName, asset: Asset, rules: TrustRules) -> Signal | None:
    """The catalog's own value, confidence 1; None when it has none."""
    value: float
    if name is SignalName.CERTIFICATION:
        if asset.certification is None:
            return None
        status = asset.certification.status
        value, display = rules.certification_values[status], status.value
    elif name is SignalName.DATA_QUALITY:
        if asset.data_quality_score is None:
            return None
        value, display = asset.data_quality_score / 100, f"{asset.data_quality_score:g} of 100"
    else:
        flag = asset.authoritative if name is SignalName.AUTHORITATIVE else asset.critical_data_element
        if flag is None:
            return None
        value, display = float(flag), _yes_or_no(flag)
    return Signal(name.value, value, display, NATIVE, 1.0)


def _absent(name: SignalName) -> Signal:
    return Signal(name.value, None, "unknown", ABSENT, 0.0)


def _yes_or_no(flag: bool) -> str:
    return "yes" if flag else "no"


def _from_proxy(proxy: Proxy) -> Signal:
    return Signal(proxy.signal.value, proxy.value, _display(proxy), proxy.origin, proxy.confidence)


def _display(proxy: Proxy) -> str:
    if proxy.states_rules:
        return "quality rules without a result"
    if proxy.status is not None:
        return proxy.status.value
    value = proxy.value or 0.0
    return f"{100 * value:g} of 100" if proxy.signal is SignalName.DATA_QUALITY else _yes_or_no(value == 1)


def _lowest(proxies: list[Proxy]) -> Proxy | None:
    """Of the stand-ins that were read, the one that contributes least; a text of rules only without any result."""
    legible = [proxy for proxy in proxies if proxy.value is not None]
    results = [proxy for proxy in legible if not proxy.states_rules]
    return min(results or legible, key=_least, default=None)


def _least(proxy: Proxy) -> tuple[float, int, str, str]:
    gravity = _GRAVEST_FIRST.index(proxy.status) if proxy.status else _WORTHLESS_LAST
    return (proxy.value or 0.0) * proxy.confidence, gravity, proxy.origin, proxy.raw


def _certification(
    asset: Asset, chosen: Proxy | None, rules: TrustRules
) -> tuple[CertificationStatus | None, datetime | None, list[str]]:
    """(status, its end in UTC, notes) of the certification that counts: native, or of the chosen stand-in."""
    if asset.certification is not None:
        return asset.certification.status, _in_utc(asset.certification.expires_at), []
    if chosen is None or chosen.status is None:
        return None, None, []
    expiry_names = lexicon_of(rules).expiry_names
    ends: list[datetime] = []
    notes: list[str] = []
    for field in asset.custom_fields:
        if name_words(field.name) not in expiry_names:
            continue
        day = read_day(field.value)
        if day.said is not None:
            ends.append(day.said)
        elif day.legibility is Legibility.UNREADABLE:
            shown = f"custom field '{shortened(field.name)}' = {shortened(str(field.value))!r}"
            notes.append(f"certification: {shown} cannot be read ({day.why})")
    return chosen.status, min(ends, default=None), sorted(notes)


def _in_utc(moment: datetime | None) -> datetime | None:
    """A moment without a zone is taken as UTC."""
    if moment is None:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _unreadable_note(proxy: Proxy) -> str:
    return f"{proxy.signal}: {proxy.origin} = {proxy.raw!r} cannot be read ({proxy.why})"


def _disagreements(signal: Signal, chosen: Proxy | None, proxies: list[Proxy]) -> list[str]:
    """Notes on stand-ins that were read and say something else than the signal that counts."""
    rule = "native counts" if signal.origin == NATIVE else "the lower counts"
    said = f"{signal.signal}: {signal.origin} says {signal.display}"
    return [
        f"{said}, {proxy.origin} says {_display(proxy)}; {rule}"
        for proxy in proxies
        if proxy is not chosen and proxy.value not in (None, signal.value) and not proxy.states_rules
    ]
