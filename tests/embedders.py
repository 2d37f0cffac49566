"""A small deterministic embedder: a test double that needs no model and counts what it is asked."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from services.index.identity import ModelIdentity
from services.index.store import Vectors
from services.text.tokens import tokens


class HashEmbedder:
    """Bags of tokens, each token hashed to a direction of its own; unit length, the same on every machine.

    `before_documents` is called with the texts of every batch: a test may raise from it, to be a model that fails.
    """

    def __init__(
        self,
        dimension: int = 32,
        *,
        model_id: str = "hash-bag",
        before_documents: Callable[[Sequence[str]], None] = lambda _texts: None,
    ) -> None:
        self.identity = ModelIdentity(model_id, hashlib.sha256(model_id.encode()).hexdigest(), dimension)
        self.tokens_limit = 256
        self.calls = 0
        self.texts: list[str] = []
        self.queries = 0
        self.before_documents = before_documents

    def count_tokens(self, text: str) -> int:
        return 2 + len(text.split())

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.before_documents(texts)
        self.calls += 1
        self.texts.extend(texts)
        if not texts:
            return np.empty((0, self.identity.dimension), dtype=np.float32)
        return np.stack([self._vector(text) for text in texts])

    def embed_query(self, text: str) -> Vectors:
        self.queries += 1
        return self._vector(text)

    def _vector(self, text: str) -> Vectors:
        bag = sum((_direction(token, self.identity) for token in tokens(text)), np.full(self.identity.dimension, 1e-3))
        vector: Vectors = (bag / np.linalg.norm(bag)).astype(np.float32)
        return vector


@lru_cache(maxsize=1 << 16)
def _direction(token: str, identity: ModelIdentity) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    seed = hashlib.sha256(f"{identity.model_id}\x00{token}".encode()).digest()[:8]
    return np.random.default_rng(int.from_bytes(seed, "big")).standard_normal(identity.dimension)
