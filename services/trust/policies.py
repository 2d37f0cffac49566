"""References to policies and regulations: recorded, explained and filterable, never part of a score."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from services.catalog.model import Asset, CustomField
from services.trust.lexicon import Lexicon, lexicon_of
from services.trust.names import NAME_LENGTH_LIMIT, name_words, words_of
from services.trust.proxies import ProxyKind, origin, shortened
from services.trust.rules import SignalName, TrustRules
from services.trust.values import Legibility, is_blank, plain, read_yes_no

_VALUE_READ = 2_000  # characters of a value in which regulations are looked for


@dataclass(frozen=True)
class PolicyReference:
    """`name`: a regulation ("GDPR"), else the policy as the catalog words it; `origin` as in a trust signal."""

    name: str
    origin: str


def policy_references(asset: Asset, rules: TrustRules) -> tuple[PolicyReference, ...]:
    """The policies and regulations that the asset's custom fields, tags and terms refer to, sorted, each once."""
    lexicon = lexicon_of(rules)
    found = {
        PolicyReference(name, origin(ProxyKind.CUSTOM_FIELD, field.name))
        for field in asset.custom_fields
        for name in _field_policies(field, lexicon)
    }
    labels = [(ProxyKind.TAG, path[-1], " ".join(path)) for path in asset.tags if path]
    labels += [(ProxyKind.TERM, term.name, term.name) for term in asset.terms]
    for kind, shown, text in labels:
        words = words_of(text)
        if not lexicon.grammar.negations.intersection(words):
            found |= {PolicyReference(name, origin(kind, shown)) for name in lexicon.policy.regulations_in(words)}
    return tuple(sorted(found, key=lambda reference: (reference.name, reference.origin)))


def is_policy_field(name: str, rules: TrustRules) -> bool:
    """True when a custom field of that name is read for policies and regulations."""
    lexicon = lexicon_of(rules)
    return bool(_regulations_of_name(name, lexicon)) or _is_generic(name, lexicon)


def _is_generic(name: str, lexicon: Lexicon) -> bool:
    """True for "Policy", "Regulation": a name that leaves it to the value which one; governance signals go first."""
    governance = any(lexicon.hit(SignalName(signal), name) for signal in lexicon.signals)
    return not governance and lexicon.policy_hit(name) is not None


def _regulations_of_name(name: str, lexicon: Lexicon) -> tuple[str, ...]:
    words = name_words(name) if len(name) <= NAME_LENGTH_LIMIT else ()
    if (lexicon.grammar.disqualifiers | lexicon.policy.disqualifiers).intersection(words):
        return ()
    return lexicon.policy.regulations_in(words)


def _field_policies(field: CustomField, lexicon: Lexicon) -> Iterator[str]:
    named = _regulations_of_name(field.name, lexicon)
    if not named and not _is_generic(field.name, lexicon):
        return
    text = "" if field.value is None else plain(str(field.value))[:_VALUE_READ]
    words = words_of(text)
    answer = read_yes_no(field.value, {}, lexicon.values)
    negated_name = bool(lexicon.grammar.negations.intersection(name_words(field.name)))
    if answer.legibility is Legibility.BLANK or answer.said is False or negated_name:
        return
    if is_blank(text, lexicon.values) or (lexicon.grammar.negations | lexicon.grammar.negations_before).issuperset(
        words[:1]
    ):
        return
    mentioned = lexicon.policy.regulations_in(words)
    if named or mentioned:
        yield from {*named, *mentioned}
    else:
        yield shortened(field.name if answer.said else text)
