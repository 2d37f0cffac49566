"""A catalog of any size that nobody had to write: clustered vectors, Zipf words, real lengths, known access.

Everything follows from the seed, batch by batch: the first 10,000 assets of a catalog of 500,000 are those of one of
10,000. Words are those of the packaged model's tokenizer, so that a question costs the model what a real one does.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from services.access.principal import Permission, Principal
from services.access.rule import Level
from services.index.identity import ModelIdentity
from services.index.model_folder import find_model
from services.index.store import Vectors
from services.text.tokens import STOP_WORDS

DIMENSION = 384
VOCABULARY = 50_000
TOPICS = 300
TOPIC_WORDS = 50
WORKSPACES = 30
BATCH_ASSETS = 1000
SYNTHETIC_MODEL = ModelIdentity("synthetic", hashlib.sha256(b"synthetic").hexdigest(), DIMENSION)

# The share of all assets that the caller of each group sees, in percent; who sees less sees it of all the others.
SHARES = {"permille": 0.1, "percent": 1.0, "tenth": 10.0, "half": 50.0, "everybody": 100.0}

Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# How the spread of vectors divides: a topic around all, an asset around its topic, a chunk around its asset, and what
# nothing explains. Chosen so that a graph index finds what it finds among real embeddings.
_TOPIC, _ASSET, _CHUNK, _UNEXPLAINED = 0.45, 0.25, 0.1, 0.2
_LATENT = 64


def caller(group: str) -> Principal:
    """Who sees the share of `SHARES` that the group names."""
    permissions = frozenset({Permission.SEARCH, Permission.EXPLAIN})
    return Principal(group, (group,), clearance=int(Level.INTERNAL), permissions=permissions)


@dataclass(frozen=True)
class Batch:
    """Some assets in the interchange form, and what their vectors are made of."""

    lines: list[dict[str, Any]]
    topics: Numbers
    latent: Floats


@dataclass(frozen=True)
class SyntheticCatalog:
    """`assets` assets of some hundred topics. `brief` ones have a sentence and no columns: quick to compose."""

    assets: int
    seed: int = 1
    brief: bool = False

    def batches(self) -> Iterator[Batch]:
        for number, first in enumerate(range(0, self.assets, BATCH_ASSETS)):
            rng = np.random.default_rng((self.seed, 1, number))
            size = min(BATCH_ASSETS, self.assets - first)
            topics = _drawn(rng, self._topic_shares, BATCH_ASSETS)
            latent = rng.standard_normal((BATCH_ASSETS, _LATENT))
            lines = [self._line(rng, first + place, int(topics[place])) for place in range(size)]
            yield Batch(lines, topics[:size], latent[:size])

    def vectors(self, batch: Batch, chunks: Sequence[int]) -> Vectors:
        """Unit vectors of the batch's chunks, `chunks` of each asset, one after the other."""
        owner = np.repeat(np.arange(len(chunks)), chunks)
        rng = np.random.default_rng(int(abs(batch.latent[0, 0]) * 1e9))
        own = rng.standard_normal((len(owner), _LATENT))
        told = _mixed(self._centres[batch.topics[owner]], batch.latent[owner], own)
        return self._placed(told, rng)

    def question(self, number: int) -> str:
        """One of the questions that might be asked: 4 to 9 words, most of them of one topic."""
        rng = np.random.default_rng((self.seed, 2, number))
        topic = int(_drawn(rng, self._topic_shares, 1)[0])
        general = rng.integers(0, 3)
        own = self._topic_text(rng, topic, int(rng.integers(4, 8 - general // 2)))
        return " ".join([*own, *self._general_text(rng, int(general))])

    def topic_of(self, question: str) -> int:
        """The topic that most words of a question belong to."""
        topics = Counter(self._topic_of_word[word] for word in question.split() if word in self._topic_of_word)
        return max(topics, key=lambda topic: (topics[topic], -topic), default=0)

    def workspace_of(self, topic: int) -> str:
        """Where most assets of a topic stand, beside those of some more topics."""
        return f"workspace-{topic % WORKSPACES}"

    def query_vector(self, question: str) -> Vectors:
        """A vector near the question's topic, spread around it as assets are; the same for the same question."""
        if question not in self._query_vectors:
            rng = np.random.default_rng(int.from_bytes(hashlib.sha256(question.encode()).digest()[:8], "big"))
            told = _mixed(self._centres[self.topic_of(question)][None], *rng.standard_normal((2, 1, _LATENT)))
            self._query_vectors[question] = self._placed(told, rng)[0]
        return self._query_vectors[question]

    @cached_property
    def _query_vectors(self) -> dict[str, Vectors]:
        """Remembered, so that a measurement can be spared the making of them."""
        return {}

    @cached_property
    def _topic_shares(self) -> Floats:
        return _zipf(TOPICS, 30)

    @cached_property
    def _word_shares(self) -> Floats:
        return _zipf(VOCABULARY, 20)

    @cached_property
    def _own_shares(self) -> Floats:
        return _zipf(TOPIC_WORDS, 5)

    @cached_property
    def _centres(self) -> Floats:
        return np.random.default_rng((self.seed, 3)).standard_normal((TOPICS, _LATENT))

    @cached_property
    def _basis(self) -> Floats:
        """From latent to vectors, the first directions stronger, as they are in embeddings."""
        directions, _ = np.linalg.qr(np.random.default_rng((self.seed, 4)).standard_normal((DIMENSION, _LATENT)))
        strength = (1.0 + np.arange(_LATENT)) ** -0.3
        basis: Floats = directions.T * (strength / np.linalg.norm(strength))[:, None]
        return basis

    @cached_property
    def _topic_words(self) -> Numbers:
        """Words of each topic alone, among those that are neither the commonest nor the rarest."""
        rng = np.random.default_rng((self.seed, 5))
        return rng.permutation(np.arange(500, 500 + TOPICS * TOPIC_WORDS)).reshape(TOPICS, TOPIC_WORDS)

    @cached_property
    def _topic_of_word(self) -> dict[str, int]:
        words = vocabulary()
        return {words[word]: topic for topic, own in enumerate(self._topic_words) for word in own}

    def _placed(self, told: Floats, rng: np.random.Generator) -> Vectors:
        noise = rng.standard_normal((len(told), DIMENSION)) * np.sqrt(_UNEXPLAINED / DIMENSION)
        vectors = told @ self._basis + noise
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)

    def _topic_text(self, rng: np.random.Generator, topic: int, words: int) -> list[str]:
        known = vocabulary()
        return [known[self._topic_words[topic, place]] for place in _drawn(rng, self._own_shares, words)]

    def _general_text(self, rng: np.random.Generator, words: int) -> list[str]:
        known = vocabulary()
        return [known[place] for place in _drawn(rng, self._word_shares, words)]

    def _prose(self, rng: np.random.Generator, topic: int, words: int) -> str:
        own = words // 3
        text = [*self._topic_text(rng, topic, own), *self._general_text(rng, words - own)]
        return " ".join(text[place] for place in rng.permutation(words)).capitalize() + "."

    def _line(self, rng: np.random.Generator, number: int, topic: int) -> dict[str, Any]:
        schema = f"area_{topic % WORKSPACES}"
        name = _identifier(rng, [*self._topic_text(rng, topic, 2), *self._general_text(rng, 1)])
        kind = ("table", "table", "table", "report", "file")[rng.integers(5)]
        at_home = rng.random() < 0.8
        columns = 0 if self.brief or kind == "report" else int(rng.integers(4, 24))
        words = int(rng.integers(4, 12) if self.brief else rng.integers(25, 75))
        line = {
            "id": f"synthetic:{kind}:lake.{schema}.{name}:{number}",
            "object_type": kind,
            "name": name,
            "title": " ".join(self._topic_text(rng, topic, 3)).capitalize() if rng.random() < 0.7 else None,
            "location": ["lake", schema],
            "url": f"https://catalog.example.com/{number}",
            "descriptions": {
                "business": self._prose(rng, topic, words),
                "source": self._prose(rng, topic, words // 2) if rng.random() < 0.5 else None,
            },
            "columns": [self._column(rng, topic) for _ in range(columns)],
            "tags": [[f"Domain {topic % 12}", f"Topic {topic}"]],
            "terms": [{"id": f"term-{topic}", "name": " ".join(self._topic_text(rng, topic, 2)).capitalize()}],
            "access": {
                "classification": "Internal",
                "groups": [*_tiers(rng.random()), f"department-{topic % 40}"],
                "workspaces": [self.workspace_of(topic if at_home else int(rng.integers(TOPICS)))],
            },
        }
        return {**line, **_governance(rng, number)}

    def _column(self, rng: np.random.Generator, topic: int) -> dict[str, Any]:
        words = [*self._topic_text(rng, topic, 1), *self._general_text(rng, 1)]
        described = rng.random() < 0.4
        return {
            "name": "_".join(words),
            "data_type": "varchar",
            "description": self._prose(rng, topic, int(rng.integers(4, 9))) if described else None,
        }


@dataclass(frozen=True)
class SyntheticEmbedder:
    """See `Embedder`, for queries of a synthetic catalog.

    `paid` embeds every query too; its vector is thrown away, its cost is what a real query costs.
    """

    catalog: SyntheticCatalog
    paid: Any = None  # anything with `embed_query`

    @property
    def identity(self) -> ModelIdentity:
        return SYNTHETIC_MODEL

    @property
    def tokens_limit(self) -> int:
        return 256

    def count_tokens(self, text: str) -> int:
        return 2 + len(text) // 4  # what the tokenizer of the packaged model makes of English, about

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return np.stack([self.catalog.query_vector(text) for text in texts])

    def embed_query(self, text: str) -> Vectors:
        if self.paid is not None:
            self.paid.embed_query(text)
        return self.catalog.query_vector(text)


@cache
def vocabulary() -> tuple[str, ...]:
    """Words, the commonest first: the tokenizer's whole words, in its order, and then words made of syllables."""
    known = find_model("all-MiniLM-L6-v2").query_tokenizer().get_vocab()
    whole = [word for word in sorted(known, key=known.__getitem__) if word.isascii() and word.isalpha()]
    words = dict.fromkeys(word for word in whole if len(word) > 2 and word not in STOP_WORDS)
    syllables = ["".join(parts) for parts in product("bdfgklmnprstvz", "aeiou", ("", "n", "r", "l"))]
    shuffled = np.random.default_rng(0).permutation(len(syllables) ** 2)
    made = (f"{syllables[place // len(syllables)]}{syllables[place % len(syllables)]}" for place in shuffled)
    for word in made:
        if len(words) == VOCABULARY:
            break
        words.setdefault(word)
    return tuple(words)


def _zipf(size: int, flattened: int) -> Floats:
    """Cumulative shares of ranks, each 1 / (rank + flattened) of the first's."""
    weights = 1.0 / (np.arange(size) + 1 + flattened)
    return np.cumsum(weights / weights.sum())


def _drawn(rng: np.random.Generator, cumulative: Floats, count: int) -> Numbers:
    return np.minimum(np.searchsorted(cumulative, rng.random(count)), len(cumulative) - 1)


def _mixed(topic: Floats, asset: Floats, chunk: Floats) -> Floats:
    return np.sqrt(_TOPIC) * topic + np.sqrt(_ASSET) * asset + np.sqrt(_CHUNK) * chunk


def _tiers(place: float) -> list[str]:
    """The groups that see an asset at `place` (0..1) of all."""
    return [group for group, percent in SHARES.items() if place * 100 < percent]


def _identifier(rng: np.random.Generator, words: list[str]) -> str:
    if rng.random() < 0.25:
        return words[0] + "".join(word.capitalize() for word in words[1:])
    return "_".join([("dim", "fct", "stg", "rpt", "raw")[rng.integers(5)], *words])


def _governance(rng: np.random.Generator, number: int) -> dict[str, Any]:
    """Now this and now that filled in, native or by custom field."""
    status = ("certified", "certified", "cautioned", None, None)[rng.integers(5)]
    return {
        "governance_roles": [{"role": "owner", "name": f"team-{number % 40}"}] if rng.random() < 0.7 else [],
        "certification": {"status": status} if status else None,
        "critical_data_element": bool(rng.random() < 0.3) if rng.random() < 0.5 else None,
        "data_quality_score": float(rng.integers(40, 101)) if rng.random() < 0.5 else None,
        "custom_fields": [
            {"name": "Authoritative", "value": "Yes" if rng.random() < 0.3 else "No"},
            {"name": "DQ Score", "value": f"{rng.integers(40, 101)}%"},
            {"name": "Cost centre", "value": int(rng.integers(1000))},
        ],
    }
