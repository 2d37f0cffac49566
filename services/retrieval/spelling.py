"""Which words a misspelt or unfinished one may have meant. Pure: the vocabulary is handed in."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from rapidfuzz import process
from rapidfuzz.distance import OSA

from services.retrieval.expansion import Alternative, Why, alternative

SHORTEST_PREFIX = 3  # letters of a word that others are looked for that begin with it
SHORTEST_MISSPELT = 4
SHORTEST_TWICE_MISSPELT = 8
COMPLETIONS_LIMIT = 6


@dataclass(frozen=True)
class Proposal:
    """A word that may have been meant, with its term. `edits` apart, or 0 for one that begins with what was written."""

    word: str
    term: str
    edits: int


def edits_allowed(word: str) -> int:
    """Letters left out, added, replaced or swapped with their neighbour that still make a likely slip."""
    return (len(word) >= SHORTEST_MISSPELT) + (len(word) >= SHORTEST_TWICE_MISSPELT)


class Vocabulary:
    """Unstemmed words with their terms; grows, and is not safe to read while it does."""

    def __init__(self) -> None:
        self._terms: dict[str, str] = {}
        self._buckets: dict[str, dict[int, list[str]]] = {}  # by first letter and length

    def add(self, words: Iterable[tuple[str, str]]) -> None:
        """Words with their terms; the term of a known word is replaced."""
        for word, term in words:
            if word not in self._terms:
                self._buckets.setdefault(word[0], {}).setdefault(len(word), []).append(word)
            self._terms[word] = term

    def proposals(self, word: str, *, slips: bool = True) -> tuple[Proposal, ...]:
        """With `slips` the words within the allowed edits whose first letter is right, or swapped with the second.

        Always those that the word is the beginning of. The closest first, of the latter the shortest; equals by
        alphabet. All of them, whoever may know them: a limit would let hidden words crowd out a visible one.
        """
        near = sorted(self._slips(word), key=lambda item: (item.edits, item.word)) if slips else []
        return (*near, *self._completions(word))

    def _slips(self, word: str) -> list[Proposal]:
        allowed = edits_allowed(word)
        if not allowed:
            return []
        near = range(len(word) - allowed, len(word) + allowed + 1)
        choices = [known for length in near for known in self._bucket(word[0], length)]
        if word[1] != word[0]:
            swapped = word[1] + word[0]
            choices += [
                known for length in near for known in self._bucket(word[1], length) if known.startswith(swapped)
            ]
        found = process.extract(word, choices, scorer=OSA.distance, score_cutoff=allowed, limit=None)
        return [Proposal(known, self._terms[known], int(edits)) for known, edits, _ in found]

    def _completions(self, word: str) -> list[Proposal]:
        if len(word) < SHORTEST_PREFIX:
            return []
        lengths = self._buckets.get(word[0], {})
        longer = (known for length, words in lengths.items() if length > len(word) for known in words)
        completed = sorted((known for known in longer if known.startswith(word)), key=lambda known: (len(known), known))
        return [Proposal(known, self._terms[known], 0) for known in completed]

    def _bucket(self, letter: str, length: int) -> list[str]:
        return self._buckets.get(letter, {}).get(length, [])


def is_settled(proposals: Iterable[Proposal], visible: Collection[str]) -> bool:
    """Whether these, the first proposals for a word, decide what is meant, whichever of the rest the caller sees."""
    return sum(not item.edits and item.word in visible for item in proposals) >= COMPLETIONS_LIMIT


def meant(word: str, proposals: Iterable[Proposal], visible: Collection[str]) -> list[Alternative]:
    """What an unknown word stands for: of the words that the caller can see the closest ones, and the completions."""
    known = [item for item in proposals if item.word in visible]
    slips = [item for item in known if item.edits]
    least = min((item.edits for item in slips), default=0)
    completions = [item for item in known if not item.edits][:COMPLETIONS_LIMIT]
    return [
        *(alternative(word, item.word, (item.term,), Why.SPELLING) for item in slips if item.edits == least),
        *(alternative(word, item.word, (item.term,), Why.PREFIX) for item in completions),
    ]
