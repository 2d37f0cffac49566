"""What Vouch is compared with: BM25, a dense model, and the two usual ways of putting both together. Untuned."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import snowballstemmer
from numpy.typing import NDArray

from services.index.embedder import load_model
from services.index.model_folder import ModelFolder
from services.text.identifiers import spelled_as_words

BM25_K1 = 1.2
BM25_B = 0.75
RRF_RANK_OFFSET = 60
PEER_DEPTH = 10

Scores = NDArray[np.float64]  # (questions, assets), higher is better
EmbedTexts = Callable[[Sequence[str]], NDArray[np.float32]]


def peer_rankings(
    documents: Mapping[str, str], questions: Sequence[str], embed: EmbedTexts
) -> dict[str, list[tuple[str, ...]]]:
    """By method, the ids of the best ten assets of each question, best first; ties by id."""
    ids = sorted(documents)
    texts = [spelled_as_words(documents[asset_id]) for asset_id in ids]
    sparse = bm25_scores(texts, [spelled_as_words(question) for question in questions])
    dense = (embed(questions) @ embed([documents[asset_id] for asset_id in ids]).T).astype(np.float64)
    methods = {
        "BM25": sparse,
        "dense": dense,
        "min-max hybrid": (min_max(sparse) + min_max(dense)) / 2,
        "RRF": reciprocal_rank_fusion(sparse, dense),
    }
    return {method: _best(scores, ids) for method, scores in methods.items()}


def bm25_scores(texts: Sequence[str], questions: Sequence[str]) -> Scores:
    """As bm25s gives them for plain text."""
    index = bm25s.BM25(k1=BM25_K1, b=BM25_B)
    index.index(_tokens(texts), show_progress=False)
    scores = np.zeros((len(questions), len(texts)))
    for row, words in zip(scores, _tokens(questions), strict=True):
        if known := [word for word in words if word in index.vocab_dict]:
            row[:] = index.get_scores(known)
    return scores


def min_max(scores: Scores) -> Scores:
    """Each question's scores stretched to 0..1; all 0 where none differs."""
    lowest = scores.min(axis=1, keepdims=True)
    spread = scores.max(axis=1, keepdims=True) - lowest
    stretched: Scores = np.divide(scores - lowest, spread, out=np.zeros_like(scores), where=spread > 0)
    return stretched


def reciprocal_rank_fusion(*signals: Scores) -> Scores:
    """The sum over the signals of 1 / (60 + rank), ranks counted from 1, ties in the assets' order."""
    fused: Scores = np.zeros_like(signals[0])
    for scores in signals:
        ranks = np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1, kind="stable") + 1
        fused += 1.0 / (RRF_RANK_OFFSET + ranks)
    return fused


class KeptVectors:
    """The model as sentence-transformers runs it, in float32; vectors of a list of texts are kept below `folder`."""

    def __init__(self, model: ModelFolder, folder: Path) -> None:
        self._model = model
        self._folder = folder
        self._loaded = lru_cache(maxsize=1)(lambda: load_model(model))

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        said = "\x00".join((self._model.identity.revision, *texts))
        file = self._folder / f"{hashlib.sha256(said.encode()).hexdigest()}.npy"
        if not file.is_file():
            self._folder.mkdir(parents=True, exist_ok=True)
            vectors = self._loaded().encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
            fresh = file.with_suffix(".new.npy")
            np.save(fresh, vectors)
            fresh.replace(file)
        kept: NDArray[np.float32] = np.load(file)
        return kept


def _tokens(texts: Sequence[str]) -> list[list[str]]:
    stem = snowballstemmer.stemmer("english").stemWords
    cut: Any = bm25s.tokenize(list(texts), stopwords="en_plus", stemmer=stem, return_ids=False, show_progress=False)
    return list(cut)


def _best(scores: Scores, ids: Sequence[str]) -> list[tuple[str, ...]]:
    order = np.argsort(-scores, axis=1, kind="stable")[:, :PEER_DEPTH]
    return [tuple(ids[place] for place in row) for row in order]
