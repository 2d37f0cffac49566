"""Embedding, side by side in one run: plain sentence-transformers, and the backends that Vouch takes instead.

Rounds alternate between them, so that whoever else uses the machine slows all alike; the ratios are what counts.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from services.access.rule import access_rule
from services.catalog.model import Asset
from services.context.chunking import chunk
from services.context.narrative import NarrativeRules, compose
from services.index.embedder import SentenceTransformerEmbedder, load_model
from services.index.embedder_backends import BackendStore
from services.index.embedder_drift import lowest_cosine
from services.index.embedder_export import Precision, has_bfloat16, prepare_batches
from services.index.embedder_query import QueryEmbedder
from services.index.model_folder import PACKAGED_MODEL, ModelFolder, find_model

TEXTS = 192
ROUND_TEXTS = 64  # what a refresh embeds at a time is twice that
BATCH_ROWS = 32
QUERIES = 200


@pytest.fixture
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def lines(file: Path) -> Iterator[Any]:
    with file.open(encoding="utf-8") as stream:
        yield from map(json.loads, stream)


def chunks_of(file: Path, model: ModelFolder) -> list[str]:
    """The texts that a refresh of this catalog would embed first, shortest first, as it does."""
    assets = map(Asset.model_validate, lines(file))
    narratives = (compose(asset, {}, access_rule(None), NarrativeRules(frozenset())) for asset in assets)
    pieces = (item.text for told in narratives for item in chunk(told, model.count_tokens))
    return sorted(islice(pieces, TEXTS), key=len)


@pytest.mark.usefixtures("one_thread")
def test_embedding(shared_folder: Path, tmp_path: Path) -> None:
    bench = shared_folder / "bench" / "spider"
    model = find_model(PACKAGED_MODEL)
    store = BackendStore(tmp_path / "models", model)

    def ours(precision: Precision) -> SentenceTransformerEmbedder:
        return SentenceTransformerEmbedder(
            model, batch_rows=BATCH_ROWS, prepare=lambda loaded: prepare_batches(loaded, model, store, precision)
        )

    plain = load_model(model)
    float32, bfloat16 = ours("float32"), ours("bfloat16")
    documents: dict[str, Callable[[list[str]], Any]] = {
        "SentenceTransformer.encode": lambda texts: plain.encode(
            texts, batch_size=BATCH_ROWS, normalize_embeddings=True, show_progress_bar=False
        ),
        "float32": float32.embed_documents,
        "bfloat16": bfloat16.embed_documents,
    }
    queries: dict[str, Callable[[str], Any]] = {
        "SentenceTransformer.encode": lambda text: plain.encode(
            text, normalize_embeddings=True, show_progress_bar=False
        ),
        "bfloat16": bfloat16.embed_query,
        "onnxruntime": QueryEmbedder(model, store, float32, lambda: None).embed_query,
    }
    rates = _document_rates(documents, chunks_of(bench / "assets.jsonl", model))
    # Each question once: what was asked before comes out of the cache.
    questions = dict.fromkeys(line["question"] for line in lines(bench / "queries.jsonl"))
    latencies = _query_latencies(queries, list(questions)[:QUERIES])

    assert rates["float32"] > 0.8 * rates["SentenceTransformer.encode"]
    if has_bfloat16():
        assert rates["bfloat16"] > 1.5 * rates["SentenceTransformer.encode"]
    assert latencies["onnxruntime"] < latencies["SentenceTransformer.encode"]


def _document_rates(backends: dict[str, Callable[[list[str]], Any]], texts: list[str]) -> dict[str, float]:
    """Texts per second of processor time, printed beside the ratio to the first and the drift from it."""
    seconds = dict.fromkeys(backends, 0.0)
    vectors: dict[str, list[Any]] = {name: [] for name in backends}
    for embed in backends.values():
        embed(texts[:2])
    for start in range(0, len(texts), ROUND_TEXTS):
        for name, embed in backends.items():
            began = time.process_time()
            vectors[name].append(embed(texts[start : start + ROUND_TEXTS]))
            seconds[name] += time.process_time() - began
    rates = {name: len(texts) / spent for name, spent in seconds.items()}
    first = next(iter(backends))
    reference = np.concatenate(vectors[first])
    print(f"\n{len(texts)} chunks of {np.mean([len(text) for text in texts]):.0f} characters, one thread")
    print(f"{'documents':28} {'texts per CPU s':>16} {'ratio':>7} {'lowest cosine':>14}")
    for name, rate in rates.items():
        lowest = lowest_cosine(np.concatenate(vectors[name]), reference)
        print(f"{name:28} {rate:16.1f} {rate / rates[first]:7.2f} {lowest:14.5f}")
    return rates


def _query_latencies(backends: dict[str, Callable[[str], Any]], questions: list[str]) -> dict[str, float]:
    """Median processor milliseconds of a query, printed beside what the clock says."""
    clock: dict[str, list[float]] = {name: [] for name in backends}
    processor: dict[str, list[float]] = {name: [] for name in backends}
    for embed in backends.values():
        embed("warm up")
    for question in questions:
        for name, embed in backends.items():
            began, began_processor = time.perf_counter(), time.process_time()
            embed(question)
            processor[name].append(1000 * (time.process_time() - began_processor))
            clock[name].append(1000 * (time.perf_counter() - began))
    print(f"{'queries':28} {'p50 ms':>10} {'p99 ms':>10} {'CPU p50 ms':>12}")
    for name in backends:
        p50, p99 = np.percentile(clock[name], (50, 99))
        print(f"{name:28} {p50:10.2f} {p99:10.2f} {np.median(processor[name]):12.2f}")
    return {name: float(np.median(spent)) for name, spent in processor.items()}
