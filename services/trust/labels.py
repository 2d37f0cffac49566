"""What tags and terms say about trust signals: only whole names that the rules list, their negations, and pairs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from services.catalog.parts import CertificationStatus
from services.trust.lexicon import AnyLabel, Lexicon, lexicon_of
from services.trust.names import words_of
from services.trust.proxies import Proxy, ProxyKind, as_proxy, confidence_of, read_pair
from services.trust.rules import SignalName, TrustRules
from services.trust.values import is_blank, read

_PAIR = re.compile(r"\s*([^:=]+?)\s*[:=]\s*([^:=]+?)\s*")


@lru_cache(maxsize=16_384)  # a catalog has few tags and terms and many uses of them
def read_label(kind: ProxyKind, path: tuple[str, ...], rules: TrustRules) -> tuple[Proxy, ...]:
    """What a tag (its path, outermost first) or a term (its name) says.

    It speaks when its whole name, or the name of its last two steps together, is a label of the rules, when it is
    such a label negated ("Non-CDE"), or when it is a name with a value ("CDE: yes", or yes below CDE). It does not
    when it asks ("CDE?") or stands below a step such as "Proposed".
    """
    lexicon = lexicon_of(rules)
    if not path or "?" in path[-1] or (len(path) > 1 and is_blank(path[-2], lexicon.values)):
        return ()
    leaf, shown = path[-1], " > ".join(path[-2:])
    if found := tuple(_whole_labels(kind, path, rules)) or tuple(_negated_labels(kind, leaf, rules)):
        return found
    if pair := _PAIR.fullmatch(leaf):
        return tuple(read_pair(kind, pair[1], pair[2], leaf, rules))
    if len(path) > 1:
        below = read_pair(kind, path[-2], leaf, shown, rules)
        return tuple(proxy for proxy in below if proxy.value is not None and not proxy.states_rules)
    return ()


def _whole_labels(kind: ProxyKind, path: tuple[str, ...], rules: TrustRules) -> Iterator[Proxy]:
    labels = lexicon_of(rules).labels
    for words in {words_of(path[-1]), words_of(" ".join(path[-2:]))}:
        for signal, label in labels.get(words, ()):
            if kind.value in label.applies_to:
                confidence = confidence_of(kind, label.confidence, rules)
                yield as_proxy(signal, kind, path[-1], read(label.says), confidence, rules)


def _negated_labels(kind: ProxyKind, name: str, rules: TrustRules) -> Iterator[Proxy]:
    for signal, label in _labels_negated_by(name, lexicon_of(rules)):
        certified = label.says is CertificationStatus.CERTIFIED
        if kind.value in label.applies_to and (certified or label.says is True):
            denied = CertificationStatus.NONE if certified else False
            yield as_proxy(signal, kind, name, read(denied), confidence_of(kind, label.confidence, rules), rules)


def _labels_negated_by(name: str, lexicon: Lexicon) -> Iterator[tuple[SignalName, AnyLabel]]:
    """The labels that a name negates: "not certified", "Non-CDE", "uncertified"."""
    grammar = lexicon.grammar
    core = tuple(word for word in words_of(name) if word not in lexicon.values.fillers)
    if len(core) > 1 and core[0] in grammar.negations | grammar.negations_before:
        yield from lexicon.labels.get(core[1:], ())
    if len(core) == 1:
        for prefix in grammar.negating_prefixes:
            if core[0].startswith(prefix):
                yield from lexicon.joined_labels.get(core[0].removeprefix(prefix), ())
