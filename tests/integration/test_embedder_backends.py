"""The faster backends against sentence-transformers itself: the packaged model, and small ones of every shape."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer
from structlog.testing import capture_logs
from transformers import BertConfig, BertModel

from services.cli import main
from services.errors import ModelError
from services.index import embedder_export
from services.index.embedder import SentenceTransformerEmbedder, load_model
from services.index.embedder_backends import BackendRecord, BackendStore
from services.index.embedder_drift import BFLOAT16, DRIFT_TEXTS, QUERY, REQUIRED_COSINE, lowest_cosine
from services.index.embedder_export import ensure_export, prepare_batches
from services.index.embedder_query import QueryEmbedder, export_in_a_process, query_made_with
from services.index.model_folder import PACKAGED_MODEL, ModelFolder, find_model
from services.index.pgvector.migrations import migrate
from services.index.store import Vectors

QUESTIONS = (
    "Which table holds monthly revenue by region?",
    "cust_ord_hdr",
    "Wie hoch ist der Umsatz?",
    "orders " * 300,
    "",
)


@pytest.fixture(scope="module")
def packaged() -> ModelFolder:
    return find_model(PACKAGED_MODEL)


@pytest.fixture(scope="module")
def reference(packaged: ModelFolder) -> SentenceTransformer:
    return load_model(packaged)


@pytest.fixture(scope="module")
def home(packaged: ModelFolder, reference: SentenceTransformer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home where the packaged model has its export."""
    path = tmp_path_factory.mktemp("home")
    ensure_export(reference, packaged, BackendStore(path / "models", packaged))
    return path


def never() -> None:
    pytest.fail("nothing is to be exported here")


def encoded(model: SentenceTransformer, texts: tuple[str, ...], kind: str = "query") -> Vectors:
    encode = model.encode_query if kind == "query" else model.encode_document
    vectors: Vectors = encode(list(texts), batch_size=1, normalize_embeddings=True, show_progress_bar=False)
    return vectors


def queries_of(folder: ModelFolder, models: Path) -> QueryEmbedder:
    """Queries by the export that is there; anything else fails the test."""
    torch_embedder = SentenceTransformerEmbedder(folder, batch_rows=1, prepare=lambda _model: never())
    return QueryEmbedder(folder, BackendStore(models, folder), torch_embedder, never)


def test_queries_have_the_vectors_of_the_reference(
    packaged: ModelFolder, reference: SentenceTransformer, home: Path
) -> None:
    queries = queries_of(packaged, home / "models")
    found = np.stack([queries.embed_query(text) for text in QUESTIONS])
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, encoded(reference, QUESTIONS), atol=2e-6)
    record = BackendStore(home / "models", packaged).record(QUERY, query_made_with())
    assert record is not None
    assert record.lowest_cosine > 0.999999


def test_threads_share_the_export(packaged: ModelFolder, home: Path) -> None:
    one, many = queries_of(packaged, home / "models"), queries_of(packaged, home / "models")
    texts = [f"question number {number}" for number in range(40)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(many.embed_query, texts))
    np.testing.assert_allclose(np.stack(found), np.stack([one.embed_query(text) for text in texts]), atol=1e-6)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_documents_keep_to_the_reference_in_either_precision(
    packaged: ModelFolder, reference: SentenceTransformer, home: Path, precision: Any
) -> None:
    store = BackendStore(home / "models", packaged)
    documents = SentenceTransformerEmbedder(
        packaged,
        batch_rows=4,
        prepare=lambda model: prepare_batches(model, packaged, store, precision),
    )
    found = documents.embed_documents(DRIFT_TEXTS)
    assert found.dtype == np.float32
    assert np.linalg.norm(found, axis=1) == pytest.approx(np.ones(len(found)), abs=1e-6)
    drift = 1 - lowest_cosine(found, encoded(reference, DRIFT_TEXTS, "document"))
    assert drift < 1e-6 if precision == "float32" else 1e-6 < drift < 1 - REQUIRED_COSINE[BFLOAT16]
    assert (store.file.with_suffix(".bfloat16.json")).exists() or precision == "float32"


def test_bfloat16_that_drifts_is_refused_by_name_and_left_alone_by_auto(
    packaged: ModelFolder, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(REQUIRED_COSINE, BFLOAT16, 0.9999999)
    monkeypatch.setattr(embedder_export, "has_bfloat16", lambda: True)
    (tmp_path / "models").symlink_to(home / "models")
    store = BackendStore(tmp_path / "models", packaged)
    model = load_model(packaged)
    with capture_logs() as logs:
        prepare_batches(model, packaged, store, "auto")
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert "is not for bfloat16: its lowest cosine to the reference is 0.99" in logs[-1]["reason"]
    with pytest.raises(ModelError, match="set VOUCH_EMBED_PRECISION to float32"):
        prepare_batches(model, packaged, store, "bfloat16")


def test_auto_takes_bfloat16_only_where_the_processor_has_it(
    packaged: ModelFolder, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = BackendStore(home / "models", packaged)
    for has_it, dtype in ((False, torch.float32), (True, torch.bfloat16)):
        monkeypatch.setattr(embedder_export, "has_bfloat16", lambda has_it=has_it: has_it)
        model = load_model(packaged)
        prepare_batches(model, packaged, store, "auto")
        assert {parameter.dtype for parameter in model.parameters()} == {dtype}


def test_a_home_that_cannot_be_written_still_embeds_documents(
    packaged: ModelFolder, tmp_path: Path, reference: SentenceTransformer
) -> None:
    (tmp_path / "file").write_text("in the way")
    with capture_logs() as logs:
        prepare_batches(reference, packaged, BackendStore(tmp_path / "file" / "models", packaged), "float32")
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("no export for queries", "warning")]


NO_TORCH = """
import sys
from services.cli import main
import services.wsgi
main(sys.argv[1:], standalone_mode=False)
heavy = {"torch", "sentence_transformers", "transformers", "onnx", "onnxscript"} & set(sys.modules)
assert not heavy, heavy
assert "onnxruntime" in sys.modules
"""


def test_a_search_imports_no_torch(
    home: Path, database_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(database_uri)
    monkeypatch.setenv("VOUCH_HOME", str(home))
    monkeypatch.setenv("VOUCH_DATABASE_URL", database_uri)
    assets = tmp_path / "assets.jsonl"
    assets.write_text(json.dumps({"id": "t:orders", "object_type": "table", "name": "customer_orders"}) + "\n")
    refreshed = CliRunner().invoke(main, ["refresh", "--jsonl", str(assets), "--json"], catch_exceptions=False)
    assert refreshed.exit_code == 0, refreshed.output
    command = [sys.executable, "-c", NO_TORCH, "search", "orders of customers", "--json", "--explain"]
    searched = subprocess.run(command, capture_output=True, text=True, check=False)
    assert searched.returncode == 0, searched.stderr
    assert searched.stderr == ""
    (result,) = json.loads(searched.stdout)["results"]
    assert result["explain"]["vector_similarity"] > 0.5


# Small models of random weights, with the tokenizer of the packaged one.


@pytest.fixture(scope="module")
def small_transformer(packaged: ModelFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bert")
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"):
        (path / name).write_bytes((packaged.path / name).read_bytes())
    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=30522,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        initializer_range=0.3,  # far apart, as trained ones are
    )
    BertModel(config).save_pretrained(str(path))
    return path


def saved(transformer: Path, path: Path, pooling: str, *more: torch.nn.Module, **prompts: str) -> ModelFolder:
    first = Transformer(str(transformer), max_seq_length=64)
    model = SentenceTransformer(
        modules=[first, Pooling(32, pooling_mode=pooling), *more], device="cpu", prompts=prompts or None
    )
    model.save(str(path), create_model_card=False)
    return ModelFolder("small", path)


@pytest.fixture(params=["mean", "cls"])
def small(small_transformer: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ModelFolder]:
    yield saved(
        small_transformer, tmp_path / "small", request.param, Normalize(), query="question: ", document="text: "
    )


def test_prompts_pooling_and_the_limit_of_another_model_are_its_own(small: ModelFolder, tmp_path: Path) -> None:
    model = load_model(small)
    ensure_export(model, small, BackendStore(tmp_path / "models", small))
    queries = queries_of(small, tmp_path / "models")
    found = np.stack([queries.embed_query(text) for text in QUESTIONS])
    np.testing.assert_allclose(found, encoded(model, QUESTIONS), atol=2e-6)
    assert lowest_cosine(found, encoded(model, QUESTIONS, "document")) < 0.9999  # the prompts make a difference


def test_a_model_with_more_layers_answers_by_torch(small_transformer: Path, tmp_path: Path) -> None:
    folder = saved(small_transformer, tmp_path / "dense", "mean", Dense(32, 32), query="question: ")
    torch_embedder = SentenceTransformerEmbedder(folder, batch_rows=1)
    queries = QueryEmbedder(folder, BackendStore(tmp_path / "models", folder), torch_embedder, never)
    expected = encoded(load_model(folder), QUESTIONS)
    found = np.stack([queries.embed_query(text) for text in QUESTIONS])
    np.testing.assert_allclose(found, expected, atol=2e-6)
    model = load_model(folder)
    prepare_batches(model, folder, BackendStore(tmp_path / "models", folder), "float32")
    assert not (tmp_path / "models").exists()


def test_a_process_of_its_own_makes_the_export_and_a_damaged_one_is_made_again(
    small_transformer: Path, tmp_path: Path
) -> None:
    folder = saved(small_transformer, tmp_path / "small", "mean", query="question: ")
    store = BackendStore(tmp_path / "models", folder)
    torch_embedder = SentenceTransformerEmbedder(folder, batch_rows=1, prepare=lambda _model: never())
    make = partial(export_in_a_process, folder, tmp_path / "models")
    first = QueryEmbedder(folder, store, torch_embedder, make).embed_query("net revenue")
    whole = store.file.read_bytes()
    made = []

    def make_again() -> None:
        made.append(True)
        ensure_export(load_model(folder), folder, store)

    for damaged in (b"no graph at all", whole[:-1] + bytes([whole[-1] ^ 1])):
        store.file.write_bytes(damaged)
        again = QueryEmbedder(folder, store, torch_embedder, make_again).embed_query("net revenue")
        np.testing.assert_allclose(again, first, atol=1e-6)
    assert len(made) == 2


def test_a_process_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"the export of model 'gone' failed: .*nowhere"):
        export_in_a_process(ModelFolder("gone", tmp_path / "nowhere"), tmp_path / "models")


def test_an_export_that_falls_over_is_remembered_as_refused(
    small_transformer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = saved(small_transformer, tmp_path / "small", "mean")
    store = BackendStore(tmp_path / "models", folder)
    tried = []

    def fall_over(*_arguments: object) -> None:
        tried.append(True)
        raise torch.onnx.OnnxExporterError("no such operator\nand a long story")

    monkeypatch.setattr(embedder_export, "_trace", fall_over)
    model = load_model(folder)
    with capture_logs() as logs:
        prepare_batches(model, folder, store, "float32")
        prepare_batches(model, folder, store, "float32")
    assert tried == [True]
    assert [entry["reason"] for entry in logs] == ["OnnxExporterError: no such operator"]
    assert not store.file.exists()


def test_of_several_at_once_one_exports(
    small_transformer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = saved(small_transformer, tmp_path / "small", "mean")
    made = []

    def export(_model: object, _folder: object, file: Path) -> BackendRecord:
        made.append(True)
        file.write_bytes(b"graph")
        sha256 = "ebd9d3ba6fbb0d7d9bb3d0fe36f0c2c7"
        return BackendRecord(QUERY, query_made_with(), 0.5, file_sha256=sha256)

    monkeypatch.setattr(embedder_export, "_export", export)
    model = load_model(folder)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: ensure_export(model, folder, BackendStore(tmp_path / "models", folder)), range(8)))
    assert made == [True]
