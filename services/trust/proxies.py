"""Stand-ins for native signals: what a custom field says about a signal, one reading each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from services.catalog.parts import CertificationStatus
from services.trust.lexicon import Lexicon, Sayable, SignalLexicon, lexicon_of
from services.trust.names import NameHit, words_of
from services.trust.rules import QualityPattern, SignalName, TrustRules
from services.trust.shares import read_explicit_share, read_share
from services.trust.values import (
    VALUE_LENGTH_LIMIT,
    Legibility,
    RawValue,
    Reading,
    blank,
    is_blank,
    is_number,
    plain,
    read,
    read_yes_no,
    unreadable,
)

_SHOWN_LENGTH = 80  # characters of a name or value in origins and notes
_TELLING_WORD = 6  # letters of a word that says something by itself: "unique", "not-null" are rules, "ok" is none
_RULE_WORDS = frozenset({"rule", "check", "expectation", "test"})


class ProxyKind(StrEnum):
    CUSTOM_FIELD = "custom field"
    TAG = "tag"
    TERM = "term"


@dataclass(frozen=True)
class Proxy:
    """One statement about a signal that is not the catalog's own.

    `value` is 0..1 and None unless `legibility` is READ; a certification also has its `status`. `states_rules`: a
    text of quality rules without a result, which yields to any result.
    """

    signal: SignalName
    kind: ProxyKind
    name: str
    raw: str
    legibility: Legibility
    why: str
    value: float | None
    status: CertificationStatus | None
    confidence: float
    states_rules: bool = False

    @property
    def origin(self) -> str:
        return origin(self.kind, self.name)


def origin(kind: ProxyKind, name: str) -> str:
    """How a signal names where it came from: "custom field 'Golden Source?'"."""
    return f"{kind} '{shortened(name)}'"


def shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_LENGTH else text[: _SHOWN_LENGTH - 1] + "…"


def read_custom_field(name: str, value: RawValue, rules: TrustRules) -> tuple[Proxy, ...]:
    """What one custom field says, by signal; empty when its name names none."""
    if isinstance(value, str) and len(value) > VALUE_LENGTH_LIMIT:
        return tuple(read_pair(ProxyKind.CUSTOM_FIELD, name, value, name, rules))
    return _read_short_field(name, value, rules)


# Flags and grades repeat all over a catalog; typed, since True, 1 and 1.0 are one key otherwise.
@lru_cache(maxsize=8_192, typed=True)
def _read_short_field(name: str, value: RawValue, rules: TrustRules) -> tuple[Proxy, ...]:
    return tuple(read_pair(ProxyKind.CUSTOM_FIELD, name, value, name, rules))


def read_pair(kind: ProxyKind, name: str, value: RawValue, shown: str, rules: TrustRules) -> Iterator[Proxy]:
    """What a name with a value says, as a custom field or as a label "CDE: yes" that is `shown` in the origin."""
    lexicon = lexicon_of(rules)
    for signal, part in lexicon.signals.items():
        hit = lexicon.hit(signal, name)
        if hit is None:
            continue
        options = part.options[hit.pattern.words]
        states_rules = isinstance(options, QualityPattern) and options.reads == "rules"
        if states_rules:
            reading, states_rules = _read_rules_text(value, lexicon, rules)
        else:
            reading = _read_value(signal, part, name, value, hit, lexicon)
        confidence = confidence_of(kind, options.confidence, rules)
        proxy = as_proxy(signal, kind, shown, reading, confidence, rules)
        yield replace(proxy, raw=shortened("" if value is None else str(value)), states_rules=states_rules)


def confidence_of(kind: ProxyKind, own: float | None, rules: TrustRules) -> float:
    """How far a stand-in is believed: by its own rule (`own`), else by its kind's."""
    by_kind = {
        ProxyKind.CUSTOM_FIELD: rules.confidence.custom_field,
        ProxyKind.TAG: rules.confidence.tag,
        ProxyKind.TERM: rules.confidence.term,
    }
    return by_kind[kind] if own is None else own


def as_proxy(
    signal: SignalName, kind: ProxyKind, name: str, reading: Reading[Sayable], confidence: float, rules: TrustRules
) -> Proxy:
    said = reading.said
    status = said if isinstance(said, CertificationStatus) else None
    if said is None:
        value = None
    elif status is not None:
        value = rules.certification_values[status]
    else:
        value = float(said)
    return Proxy(signal, kind, name, "", reading.legibility, reading.why, value, status, confidence)


def _read_value(
    signal: SignalName, part: SignalLexicon, name: str, value: RawValue, hit: NameHit, lexicon: Lexicon
) -> Reading[Sayable]:
    if signal is SignalName.DATA_QUALITY:
        grades = {words: float(said) for words, said in part.values.items() if not isinstance(said, str)}
        share = read_share(value, lexicon.scale(name, hit), grades, lexicon.values)
        if hit.negated and share.legibility is Legibility.READ:
            return unreadable("a number under a negated name")
        return Reading(share.legibility, share.said, share.why)
    if is_number(value) and not lexicon.is_flag(hit):
        return unreadable("a grade or a count, neither a yes nor a no")
    if signal is SignalName.CERTIFICATION:
        return _read_certification(value, part, hit.negated, lexicon)
    stated = {words: bool(said) for words, said in part.values.items()}
    answer = read_yes_no(value, stated, lexicon.values)
    said = None if answer.said is None else answer.said is not hit.negated  # "Non-CDE: no" says that it is one
    return Reading(answer.legibility, said, answer.why)


def _read_certification(value: RawValue, part: SignalLexicon, negated: bool, lexicon: Lexicon) -> Reading[Sayable]:
    """A status by its words, or a yes (certified) or no (none); under a negated name the two change places."""
    status = _status_of_words(value, part)
    if status is None:
        stated = {text: True for text, said in part.values.items() if said is CertificationStatus.CERTIFIED}
        answer = read_yes_no(value, stated, lexicon.values)
        if answer.said is None:
            return Reading(answer.legibility, why=answer.why)
        status = CertificationStatus.CERTIFIED if answer.said else CertificationStatus.NONE
    if not negated:
        return read(status)
    opposite = {
        CertificationStatus.CERTIFIED: CertificationStatus.NONE,
        CertificationStatus.NONE: CertificationStatus.CERTIFIED,
    }
    return read(opposite[status]) if status in opposite else unreadable(f"{status} under a negated name")


def _status_of_words(value: RawValue, part: SignalLexicon) -> CertificationStatus | None:
    """The one status that all words of a value agree on ("Gold certified"); None when they do not, or ask."""
    if not isinstance(value, str) or len(value) > VALUE_LENGTH_LIMIT or "?" in value:
        return None
    words = words_of(plain(value))
    said = {part.values[words]} if words in part.values else {part.values.get((word,)) for word in words}
    only = said.pop() if len(said) == 1 else None
    return only if isinstance(only, CertificationStatus) else None


def _read_rules_text(value: RawValue, lexicon: Lexicon, rules: TrustRules) -> tuple[Reading[Sayable], bool]:
    """(the reading, whether it is of a text without a result) of a field of quality rules."""
    if value is None:
        return blank(), False
    if not isinstance(value, str):
        return unreadable("neither rules nor their result"), False
    text = plain(value)
    if (result := read_explicit_share(text)) is not None:  # "18 of 20": the rules' result after all
        return Reading(result.legibility, result.said, result.why), False
    if is_blank(text, lexicon.values) or _says_there_are_none(text, lexicon):
        return blank(), False
    if not _states_rules(text, lexicon):
        return unreadable("neither rules nor their result"), False
    return read(rules.quality_rules_value), True


def _says_there_are_none(text: str, lexicon: Lexicon) -> bool:
    """True for "no rules yet", but not for "no nulls in order_id"."""
    words = words_of(text[:VALUE_LENGTH_LIMIT])
    denied = lexicon.grammar.negations | lexicon.grammar.negations_before
    return len(words) > 1 and words[0] in denied and words[1] in _RULE_WORDS


def _states_rules(text: str, lexicon: Lexicon) -> bool:
    """True for text with at least two words, or a long one, that is no yes or no and no mere link."""
    if read_yes_no(text, {}, lexicon.values).legibility is not Legibility.UNREADABLE or "://" in text.split()[0]:
        return False
    letters = [len(word) for word in words_of(text) if word.isalpha()]
    return len(letters) > 1 or max(letters, default=0) >= _TELLING_WORD
