"""Texts to vectors. The model is loaded once per process, at the first text, never at import."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Protocol

import numpy as np

from services.errors import ModelError
from services.index.identity import ModelIdentity
from services.index.model_folder import ModelFolder
from services.index.store import Vectors

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

NORM_TOLERANCE = 1e-2  # weights of eight bits of mantissa leave norms of .997 to 1.003


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
    """See `Embedder`: any model in the layout of sentence-transformers, on the processor, by torch.

    This is the reference for every faster backend. `prepare` gets the model right after loading, in float32, and may
    turn it to another precision.
    """

    def __init__(
        self,
        folder: ModelFolder,
        *,
        batch_rows: int,
        threads: int | None = None,
        prepare: Callable[[SentenceTransformer], None] | None = None,
    ) -> None:
        self._folder = folder
        self._batch_rows = batch_rows
        self._threads = threads
        self._prepare = prepare
        self._model: SentenceTransformer | None = None
        self._loading = Lock()

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
        vectors = self._loaded().encode_document(
            list(texts), batch_size=self._batch_rows, normalize_embeddings=True, show_progress_bar=False
        )
        return unit_vectors(vectors, self.identity)

    def embed_query(self, text: str) -> Vectors:
        vector = self._loaded().encode_query([text], normalize_embeddings=True, show_progress_bar=False)
        found: Vectors = unit_vectors(vector, self.identity)[0]
        return found

    def _loaded(self) -> SentenceTransformer:
        with self._loading:
            if self._model is None:
                self._model = load_model(self._folder, self._threads)
                if self._prepare is not None:
                    self._prepare(self._model)
            return self._model


def load_model(folder: ModelFolder, threads: int | None = None) -> SentenceTransformer:
    """The model in float32. `threads` holds for all of torch in this process."""
    # Eight seconds of imports: only who embeds pays for them.
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    logging.disable_progress_bar()
    if threads is not None:
        torch.set_num_threads(threads)
    model = SentenceTransformer(str(folder.path), device="cpu", local_files_only=True)
    return model.float()  # some models are kept in half precision


def unit_vectors(found: Vectors, identity: ModelIdentity) -> Vectors:
    """The vectors in float32 at unit length. Raises ModelError for another shape, a NaN, a length far from one."""
    vectors = np.asarray(found, dtype=np.float32)
    if vectors.ndim != 2 or vectors.shape[1] != identity.dimension:
        raise ModelError(f"model {identity.model_id!r} gave shape {vectors.shape}, not (texts, {identity.dimension})")
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    astray = ~(np.abs(norms - 1) < NORM_TOLERANCE)
    if astray.any():
        raise ModelError(f"model {identity.model_id!r} gave a vector with norm {norms[astray][0]}")
    unit: Vectors = vectors / norms
    return unit
