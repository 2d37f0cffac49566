"""References to policies and regulations: recorded, explained and filterable, never part of a score."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from services.catalog.model import Asset
from services.catalog.parts import CustomField
from services.trust.lexicon import Lexicon, lexicon_of
from services.trust.names import NAME_LENGTH_LIMIT, name_words, words_of
from services.trust.proxies import ProxyKind, origin, shortened
from services.trust.rules import TrustRules
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
        found |= {PolicyReference(name, origin(kind, shown)) for name in _label_policies(text, lexicon)}
    return tuple(sorted(found, key=lambda reference: (reference.name, reference.origin)))


def is_policy_field(name: str, rules: TrustRules) -> bool:
    """True when a custom field of that name is read for policies and regulations."""
    return _name_policies(name, lexicon_of(rules)) is not None


# A catalog has few names and many uses of them.
@lru_cache(maxsize=16_384)
def _name_policies(name: str, lexicon: Lexicon) -> tuple[str, ...] | None:
    """The regulations that a field's name mentions; none for a name that leaves it to the value ("Policy").

    None (no tuple) when the field is about no policy. Governance signals go before: "certified policy" is one.
    """
    words = name_words(name) if len(name) <= NAME_LENGTH_LIMIT else ()
    if not (lexicon.grammar.disqualifiers | lexicon.policy.disqualifiers).intersection(words):
        named = lexicon.policy.regulations_in(words)
        if named:
            return named
    governance = any(lexicon.hit(signal, name) for signal in lexicon.signals)
    return () if not governance and lexicon.policy_hit(name) else None


@lru_cache(maxsize=16_384)
def _label_policies(text: str, lexicon: Lexicon) -> tuple[str, ...]:
    words = words_of(text)
    negated = not lexicon.grammar.negations.isdisjoint(words)
    return () if negated else lexicon.policy.regulations_in(words)


def _field_policies(field: CustomField, lexicon: Lexicon) -> Iterator[str]:
    named = _name_policies(field.name, lexicon)
    if named is None:
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
