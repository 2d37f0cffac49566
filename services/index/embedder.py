"""Texts to vectors. The model is loaded once per process, at the first text, never at import."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from services.errors import ModelError
from services.index.identity import ModelIdentity
from services.index.model_folder import ModelFolder
from services.index.store import Vectors

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

NORM_TOLERANCE = 1e-3


class Embedder(Protocol):
    """Vectors of unit length, float32. Texts longer than `tokens_limit` would be cut: chunk them before."""

    @property
    def identity(self) -> ModelIdentity: ...

    @property
    def tokens_limit(self) -> int: ...

    def count_tokens(self, text: str) -> int: ...

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Shape (texts, dimension), in the order of `texts`. Raises ModelError for a vector that is not usable."""
        ...

    def embed_query(self, text: str) -> Vectors:
        """Shape (dimension,)."""
        ...


class SentenceTransformerEmbedder:
    """See `Embedder`: any model in the layout of sentence-transformers, on the processor."""

    def __init__(self, folder: ModelFolder, *, batch_rows: int, threads: int | None = None) -> None:
        self._folder = folder
        self._batch_rows = batch_rows
        self._threads = threads

    @property
    def identity(self) -> ModelIdentity:
        return self._folder.identity

    @property
    def tokens_limit(self) -> int:
        return self._folder.tokens_limit

    def count_tokens(self, text: str) -> int:
        return self._folder.count_tokens(text)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, self.identity.dimension), dtype=np.float32)
        # encode_* sorts by length itself, so that a batch pads little, and gives the order back.
        vectors = self._model.encode_document(
            list(texts), batch_size=self._batch_rows, normalize_embeddings=True, show_progress_bar=False
        )
        return _checked(np.asarray(vectors, dtype=np.float32), self.identity)

    def embed_query(self, text: str) -> Vectors:
        vector = self._model.encode_query([text], normalize_embeddings=True, show_progress_bar=False)
        found: Vectors = _checked(np.asarray(vector, dtype=np.float32), self.identity)[0]
        return found

    @cached_property
    def _model(self) -> SentenceTransformer:
        # Eight seconds of imports: only who embeds pays for them.
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging

        logging.disable_progress_bar()
        if self._threads is not None:
            torch.set_num_threads(self._threads)
        return SentenceTransformer(str(self._folder.path), device="cpu", local_files_only=True)


def _checked(vectors: Vectors, identity: ModelIdentity) -> Vectors:
    """The vectors, when each has the model's dimension and unit length."""
    if vectors.ndim != 2 or vectors.shape[1] != identity.dimension:
        raise ModelError(f"model {identity.model_id!r} gave shape {vectors.shape}, not (texts, {identity.dimension})")
    norms = np.linalg.norm(vectors, axis=1)
    if not np.all(np.abs(norms - 1) < NORM_TOLERANCE):
        raise ModelError(f"model {identity.model_id!r} gave a vector with norm {norms[np.argmax(np.abs(norms - 1))]}")
    return vectors
