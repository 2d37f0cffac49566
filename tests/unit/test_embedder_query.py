"""How a process finds its way to a query's vector: the cache, and the reference where there is no export."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from structlog.testing import capture_logs

from services.errors import ModelError
from services.index.embedder_backends import BackendRecord, BackendStore
from services.index.embedder_drift import QUERY
from services.index.embedder_query import CACHED_QUERIES, QueryEmbedder, query_made_with
from services.index.model_folder import ModelFolder
from tests.embedders import HashEmbedder

PLAIN = ("Transformer", "Pooling", "Normalize")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model that could be exported."""
    path = tmp_path / "model"
    (path / "1_Pooling").mkdir(parents=True)
    (path / "model.safetensors").write_bytes(b"weights")
    (path / "config.json").write_text(json.dumps({"hidden_size": 32}))
    (path / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": "mean"}))
    modules = [
        {"path": f"{place}_{name}", "type": f"sentence_transformers.models.{name}"} for place, name in enumerate(PLAIN)
    ]
    (path / "modules.json").write_text(json.dumps(modules))
    return path


@pytest.fixture
def reference() -> HashEmbedder:
    return HashEmbedder()


def never() -> None:
    pytest.fail("nothing is to be exported here")


def embedder(
    folder: Path, reference: HashEmbedder, make_export: Callable[[], None], home: Path | None = None
) -> QueryEmbedder:
    model = ModelFolder("m", folder)
    return QueryEmbedder(model, BackendStore(home or folder.parent / "models", model), reference, make_export)


def fails() -> None:
    raise ModelError("the exporter fell over")


def test_a_text_is_embedded_once_and_its_vector_is_nobody_s_to_change(folder: Path, reference: HashEmbedder) -> None:
    queries = embedder(folder, reference, fails)
    first = queries.embed_query("net revenue")
    assert np.array_equal(first, reference.embed_query("net revenue"))
    asked = reference.queries
    assert queries.embed_query("net revenue") is first
    assert reference.queries == asked
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1


def test_the_cache_is_bounded_and_forgets_what_was_asked_longest_ago(folder: Path, reference: HashEmbedder) -> None:
    queries = embedder(folder, reference, fails)
    for number in range(CACHED_QUERIES):
        queries.embed_query(f"question {number}")
    queries.embed_query("question 0")
    queries.embed_query("one more")
    assert reference.queries == CACHED_QUERIES + 1
    queries.embed_query("question 0")
    assert reference.queries == CACHED_QUERIES + 1
    queries.embed_query("question 1")
    assert reference.queries == CACHED_QUERIES + 2


def test_threads_find_the_way_once_and_get_what_they_asked_for(folder: Path, reference: HashEmbedder) -> None:
    made = []

    def make_export() -> None:
        made.append(True)
        fails()

    queries = embedder(folder, reference, make_export)
    texts = [f"question {number % 20}" for number in range(400)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(queries.embed_query, texts))
    assert made == [True]
    assert all(np.array_equal(vector, reference.embed_query(text)) for text, vector in zip(texts, found, strict=True))


def test_a_model_that_cannot_be_exported_goes_to_the_reference_and_nothing_is_tried(
    folder: Path, reference: HashEmbedder
) -> None:
    (folder / "modules.json").write_text(json.dumps([{"path": "", "type": "sentence_transformers.models.CLIPModel"}]))
    with capture_logs() as logs:
        embedder(folder, reference, never).embed_query("net")
    assert reference.queries == 1
    assert [(entry["log_level"], entry["reason"]) for entry in logs] == [
        ("info", "its modules are sentence_transformers.models.CLIPModel")
    ]


def test_an_export_that_fails_is_told_and_the_reference_answers(folder: Path, reference: HashEmbedder) -> None:
    with capture_logs() as logs:
        embedder(folder, reference, fails).embed_query("net")
    assert reference.queries == 1
    assert [entry["reason"] for entry in logs if entry["log_level"] == "warning"] == ["the exporter fell over"]


def test_a_home_that_cannot_be_written_is_told_before_anything_is_exported(
    folder: Path, reference: HashEmbedder, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    with capture_logs() as logs:
        embedder(folder, reference, never, tmp_path / "file" / "models").embed_query("net")
    assert reference.queries == 1
    assert "cannot be written" in logs[0]["reason"]


def test_an_export_that_drifts_is_refused_without_another_try(folder: Path, reference: HashEmbedder) -> None:
    store = BackendStore(folder.parent / "models", ModelFolder("m", folder))
    with store.writing():
        store.keep(BackendRecord(QUERY, query_made_with(), lowest_cosine=0.98))
    with capture_logs() as logs:
        embedder(folder, reference, never).embed_query("net")
    assert reference.queries == 1
    assert "is refused: its lowest cosine to the reference is 0.980000" in logs[0]["reason"]


def test_documents_go_to_the_reference(folder: Path, reference: HashEmbedder) -> None:
    queries = embedder(folder, reference, never)
    assert np.array_equal(queries.embed_documents(["a", "b"]), reference.embed_documents(["a", "b"]))
    assert queries.identity == ModelFolder("m", folder).identity
