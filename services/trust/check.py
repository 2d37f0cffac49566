"""What a set of rules makes of a catalog, field by field, before anyone turns the rules on."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from services.catalog.model import Asset
from services.trust.labels import read_label
from services.trust.policies import is_policy_field, policy_references
from services.trust.proxies import Proxy, ProxyKind, origin, read_custom_field
from services.trust.rules import SignalName, TrustRules
from services.trust.signals import ABSENT, NATIVE, Signals, read_signals
from services.trust.values import Legibility

NO_SIGNAL = "no signal"
_EXAMPLES_KEPT = 5


class Fate(StrEnum):
    """What became of one custom field, tag or term on one asset."""

    COUNTS = "counts"
    NATIVE_WINS = "native wins"
    LOWER_WINS = "lower wins"  # another stand-in says less
    OTHER_TYPE = "not valid on the type"
    BLANK = "blank"
    NOT_SUBJECT = "says no, or nothing"  # a policy field that names no policy
    UNREADABLE = "unreadable"
    RECORDED = "recorded"  # a policy reference: kept, never scored
    IGNORED = "ignored"  # the name is about no signal


@dataclass(frozen=True)
class FieldCheck:
    """One name under one signal, over the whole catalog: how often each fate befell it, and unreadable values.

    `kind`: "custom field", "tag" or "term"; `unreadable_values`: the first few different ones.
    """

    kind: str
    name: str
    signal: str
    fates: Mapping[Fate, int]
    unreadable_values: tuple[str, ...]

    @property
    def seen(self) -> int:
        return sum(self.fates.values())


@dataclass(frozen=True)
class TrustCheck:
    """The report: every custom field, tag and term by name, those that name a signal first, the most frequent first."""

    assets: int
    fields: tuple[FieldCheck, ...]


def check_rules(assets: Iterable[Asset], rules: TrustRules) -> TrustCheck:
    """Reads each asset once; memory grows with the number of different names, not of assets."""
    fates: defaultdict[tuple[str, str, str], Counter[Fate]] = defaultdict(Counter)
    unreadable: defaultdict[tuple[str, str, str], dict[str, None]] = defaultdict(dict)
    total = 0
    for asset in assets:
        total += 1
        for kind, name, signal, fate, raw in _fates(asset, rules):
            key = (kind, name, signal)
            fates[key][fate] += 1
            if fate is Fate.UNREADABLE and len(unreadable[key]) < _EXAMPLES_KEPT:
                unreadable[key][raw] = None
    fields = [FieldCheck(*key, dict(counts), tuple(unreadable.get(key, ()))) for key, counts in fates.items()]
    fields.sort(key=lambda entry: (entry.signal == NO_SIGNAL, entry.signal, -entry.seen, entry.kind, entry.name))
    return TrustCheck(total, tuple(fields))


def _fates(asset: Asset, rules: TrustRules) -> Iterator[tuple[str, str, str, Fate, str]]:
    signals = read_signals(asset, rules)
    recorded = {reference.origin for reference in policy_references(asset, rules)}
    policy = SignalName.POLICY_COMPLIANCE.value
    for kind, name, proxies in _statements(asset, rules):
        for proxy in proxies:
            yield kind.value, name, proxy.signal.value, _fate(proxy, signals, asset, rules), proxy.raw
        if origin(kind, name) in recorded:
            yield kind.value, name, policy, Fate.RECORDED, ""
        elif kind is ProxyKind.CUSTOM_FIELD and is_policy_field(name, rules):
            yield kind.value, name, policy, Fate.NOT_SUBJECT, ""
        elif not proxies:
            yield kind.value, name, NO_SIGNAL, Fate.IGNORED, ""


def _statements(asset: Asset, rules: TrustRules) -> Iterator[tuple[ProxyKind, str, tuple[Proxy, ...]]]:
    for custom in asset.custom_fields:
        yield ProxyKind.CUSTOM_FIELD, custom.name, read_custom_field(custom.name, custom.value, rules)
    for path in asset.tags:
        if path:
            yield ProxyKind.TAG, path[-1], read_label(ProxyKind.TAG, path, rules)
    for term in asset.terms:
        yield ProxyKind.TERM, term.name, read_label(ProxyKind.TERM, (term.name,), rules)


def _fate(proxy: Proxy, signals: Signals, asset: Asset, rules: TrustRules) -> Fate:
    if proxy.legibility is not Legibility.READ:
        return Fate.BLANK if proxy.legibility is Legibility.BLANK else Fate.UNREADABLE
    if asset.object_type not in rules.signals.by_name[proxy.signal].object_types:
        return Fate.OTHER_TYPE
    signal = signals.get(proxy.signal)
    if signal.origin in (NATIVE, ABSENT):
        return Fate.NATIVE_WINS
    return Fate.COUNTS if signal.origin == proxy.origin else Fate.LOWER_WINS
