"""The rules made ready for comparing: every name and value as words, every list of patterns in its one order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from services.catalog.parts import CertificationStatus
from services.trust.names import (
    NameGrammar,
    NameHit,
    NamePattern,
    Words,
    find_phrase,
    match_name,
    name_words,
    phrases,
    single_words,
    words_of,
)
from services.trust.rules import FieldPattern, LabelRule, QualityPattern, SignalName, TrustRules, VocabularyRules
from services.trust.values import ValueWords

Sayable = bool | float | CertificationStatus
AnyLabel = LabelRule[bool] | LabelRule[float] | LabelRule[CertificationStatus]
Meaning = TypeVar("Meaning", str, float)


@dataclass(frozen=True)
class SignalLexicon:
    """One signal's names and values. `values`: what the words of a value say."""

    patterns: tuple[NamePattern, ...]
    options: Mapping[Words, FieldPattern]
    disqualifiers: frozenset[str]
    values: Mapping[Words, Sayable]


@dataclass(frozen=True)
class PolicyLexicon:
    patterns: tuple[NamePattern, ...]
    disqualifiers: frozenset[str]
    regulations: tuple[tuple[Words, str], ...]  # most words first

    def regulations_in(self, words: Words) -> tuple[str, ...]:
        """Names of the regulations that the words mention, sorted."""
        return tuple(sorted({name for spelling, name in self.regulations if find_phrase(words, spelling) >= 0}))


@dataclass(frozen=True, eq=False)
class Lexicon:
    """All of it; compared by identity, so that it can be the key of a cache."""

    grammar: NameGrammar
    values: ValueWords
    signals: Mapping[SignalName, SignalLexicon]
    labels: Mapping[Words, tuple[tuple[SignalName, AnyLabel], ...]]  # by whole name of a tag or term
    joined_labels: Mapping[str, tuple[tuple[SignalName, AnyLabel], ...]]  # the same, by name run together
    policy: PolicyLexicon
    graded: frozenset[str]
    expiry_names: frozenset[Words]
    field_scales: Mapping[Words, float]
    name_scales: tuple[tuple[Words, float], ...]  # most words first

    def hit(self, signal: SignalName, name: str) -> NameHit | None:
        """How a custom field's name names the signal; None when it does not."""
        return _hit(self, signal, name)

    def policy_hit(self, name: str) -> NameHit | None:
        return match_name(name, self.policy.patterns, self.grammar, self.policy.disqualifiers)

    def is_flag(self, hit: NameHit) -> bool:
        """True when a 1 in such a field is a yes: "CDE", "Finance CDE flag", but not "CDE tier", "certified users"."""
        if not self.graded.isdisjoint(hit.pattern.words + hit.rest):
            return False
        return self.grammar.neutral.issuperset(hit.rest) or not self.grammar.affixes.isdisjoint(hit.rest)

    def scale(self, name: str, hit: NameHit) -> float | None:
        """The best number of a field: by the field's own rule, its pattern's, or what the name tells ("(1-5)")."""
        words = name_words(name)
        if words in self.field_scales:
            return self.field_scales[words]
        options = self.signals[SignalName.DATA_QUALITY].options[hit.pattern.words]
        if isinstance(options, QualityPattern) and options.scale is not None:
            return options.scale
        return next((scale for words, scale in self.name_scales if find_phrase(hit.rest, words) >= 0), None)


@lru_cache(maxsize=16_384)  # a catalog has few field names and many fields
def _hit(lexicon: Lexicon, signal: SignalName, name: str) -> NameHit | None:
    part = lexicon.signals[signal]
    return match_name(name, part.patterns, lexicon.grammar, part.disqualifiers)


@lru_cache(maxsize=8)
def lexicon_of(rules: TrustRules) -> Lexicon:
    """The rules' lexicon; built once per content of the rules."""
    table, vocabulary = rules.signals, rules.vocabulary
    labels: defaultdict[Words, list[tuple[SignalName, AnyLabel]]] = defaultdict(list)
    for name, part in table.by_name.items():
        for text, label in part.labels.items():
            labels[words_of(text)].append((name, label))
    return Lexicon(
        grammar=_grammar(vocabulary),
        values=_value_words(vocabulary),
        signals={
            name: SignalLexicon(
                patterns=_patterns({words_of(text): option.whole for text, option in part.patterns.items()}),
                options={words_of(text): option for text, option in part.patterns.items()},
                disqualifiers=single_words(part.disqualifiers),
                values={words_of(text): said for text, said in part.values.items()},
            )
            for name, part in table.by_name.items()
        },
        labels={words: tuple(found) for words, found in labels.items()},
        joined_labels={"".join(words): tuple(found) for words, found in labels.items()},
        policy=PolicyLexicon(
            patterns=_patterns(dict.fromkeys(phrases(rules.policy_compliance.patterns), False)),
            disqualifiers=single_words(rules.policy_compliance.disqualifiers),
            regulations=_longest_first(
                (spelling, name)
                for name, spellings in rules.policy_compliance.regulations.items()
                for spelling in phrases(spellings)
            ),
        ),
        graded=single_words(vocabulary.graded),
        expiry_names=phrases(table.certification.expiry_patterns),
        field_scales={name_words(name): scale for name, scale in rules.scales.items()},
        name_scales=_longest_first((words_of(text), scale) for text, scale in vocabulary.name_scales.items()),
    )


def _patterns(whole_by_words: Mapping[Words, bool]) -> tuple[NamePattern, ...]:
    patterns = (NamePattern(words, whole) for words, whole in whole_by_words.items())
    return tuple(sorted(patterns, key=lambda pattern: pattern.specificity))


def _longest_first(pairs: Iterable[tuple[Words, Meaning]]) -> tuple[tuple[Words, Meaning], ...]:
    return tuple(sorted(pairs, key=lambda pair: (-len(pair[0]), pair)))


def _grammar(vocabulary: VocabularyRules) -> NameGrammar:
    return NameGrammar(
        negations=single_words(vocabulary.negations),
        negations_before=single_words(vocabulary.negations_before),
        negating_prefixes=single_words(vocabulary.negating_prefixes),
        affixes=single_words(vocabulary.affixes),
        markers=tuple(sorted(phrases(vocabulary.markers), key=lambda words: (-len(words), words))),
        neutral=single_words(vocabulary.neutral),
        disqualifiers=single_words(vocabulary.disqualifiers),
    )


def _value_words(vocabulary: VocabularyRules) -> ValueWords:
    return ValueWords(
        yes=phrases(vocabulary.yes_spellings),
        no=phrases(vocabulary.no_spellings),
        yes_signs=frozenset(text for text in vocabulary.yes_spellings if not words_of(text)),
        no_signs=frozenset(text for text in vocabulary.no_spellings if not words_of(text)),
        placeholders=phrases(vocabulary.placeholders),
        unsettled=phrases(vocabulary.unsettled),
        leading_placeholders=phrases(vocabulary.leading_placeholders),
        negations=single_words(vocabulary.negations),
        negating_prefixes=single_words(vocabulary.negating_prefixes),
        fillers=single_words(vocabulary.fillers),
    )
