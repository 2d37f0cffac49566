"""What is kept of faster backends: records that hold, whole files, one writer at a time; no model is loaded."""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path

import numpy as np
import pytest

from services.errors import ModelError
from services.index.embedder import unit_vectors
from services.index.embedder_backends import BackendRecord, BackendStore
from services.index.embedder_drift import BFLOAT16, QUERY, REQUIRED_COSINE, lowest_cosine
from services.index.embedder_query import export_is_settled, query_made_with
from services.index.identity import ModelIdentity
from services.index.model_folder import ModelFolder


@pytest.fixture
def model(tmp_path: Path) -> ModelFolder:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "config.json").write_text(json.dumps({"hidden_size": 4}))
    return ModelFolder("m", folder)


@pytest.fixture
def store(tmp_path: Path, model: ModelFolder) -> BackendStore:
    return BackendStore(tmp_path / "backends", model)


def export(store: BackendStore, content: bytes = b"graph", **said: object) -> BackendRecord:
    with store.writing(), store.unfinished_file() as file:
        file.write_bytes(content)
        file.replace(store.file)
        sha256 = hashlib.sha256(content).hexdigest()
        record = BackendRecord(**{"lowest_cosine": 1.0, "file_sha256": sha256, **said}, backend=QUERY, made_with="now")
        store.keep(record)
    return record


def test_a_record_holds_for_its_backend_its_libraries_and_its_configuration(
    store: BackendStore, model: ModelFolder, tmp_path: Path
) -> None:
    kept = export(store)
    assert store.record(QUERY, "now") == kept
    assert store.record(QUERY, "later") is None
    assert store.record(BFLOAT16, "now") is None
    (model.path / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": "query: "}}))
    prompted = ModelFolder("m", model.path)
    assert prompted.identity == model.identity
    assert BackendStore(tmp_path / "backends", prompted).record(QUERY, "now") is None


def test_another_revision_has_files_of_its_own(store: BackendStore, model: ModelFolder, tmp_path: Path) -> None:
    export(store)
    (model.path / "model.safetensors").write_bytes(b"other weights")
    other = BackendStore(tmp_path / "backends", ModelFolder("m", model.path))
    assert other.file != store.file
    assert other.record(QUERY, "now") is None
    assert model.identity.revision in store.file.name


@pytest.mark.parametrize("content", ["", "{", "[]", '"text"', "{}", '{"configuration": "x"}', '{"backend": 1}'])
def test_a_record_that_is_none_is_as_if_it_were_not_there(store: BackendStore, content: str) -> None:
    export(store)
    store.file.with_suffix(f".{QUERY}.json").write_text(content)
    assert store.record(QUERY, "now") is None


def test_a_damaged_a_foreign_and_a_missing_file_are_told_from_the_one_that_was_judged(store: BackendStore) -> None:
    kept = export(store, b"the graph")
    assert store.intact(kept)
    for content in (b"the graqh", b"the gra", b"another graph"):
        store.file.write_bytes(content)
        assert not store.intact(kept)
    store.file.unlink()
    assert not store.intact(kept)


def test_an_export_is_settled_when_it_is_whole_or_was_refused(store: BackendStore) -> None:
    assert not export_is_settled(store)
    with store.writing():
        store.keep(BackendRecord(QUERY, query_made_with(), lowest_cosine=0.5))
    assert export_is_settled(store)
    with store.writing():
        store.keep(BackendRecord(QUERY, query_made_with(), lowest_cosine=1.0, file_sha256="00"))
    assert not export_is_settled(store)


def test_what_was_not_finished_leaves_nothing(store: BackendStore) -> None:
    with pytest.raises(RuntimeError), store.writing(), store.unfinished_file() as file:
        file.write_bytes(b"half")
        raise RuntimeError
    assert [path.suffix for path in store.file.parent.iterdir()] == [".lock"]


def test_one_writes_at_a_time(store: BackendStore, model: ModelFolder) -> None:
    inside = threading.Semaphore(1)
    crowded = []

    def write() -> None:
        with BackendStore(store.file.parent, model).writing():
            if not inside.acquire(blocking=False):
                crowded.append(True)
                return
            threading.Event().wait(0.02)
            inside.release()

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not crowded


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, model: ModelFolder) -> None:
    (tmp_path / "file").write_text("in the way")
    store = BackendStore(tmp_path / "file" / "models", model)
    with (
        pytest.raises(ModelError, match=r"file/models cannot be written: Not a directory; check VOUCH_HOME"),
        store.writing(),
    ):
        pass
    assert store.record(QUERY, "now") is None


def test_drift_is_the_cosine_of_the_worst_pair() -> None:
    reference = np.eye(3, dtype=np.float32)
    turned = np.array([[1, 0, 0], [0, 0.8, 0.6], [0, 0, 1]], dtype=np.float32)
    assert lowest_cosine(reference, reference) == 1
    assert lowest_cosine(turned, reference) == pytest.approx(0.8)
    assert lowest_cosine(np.full((3, 3), np.nan, dtype=np.float32), reference) == -1


def test_each_backend_must_come_as_near_as_its_precision_allows() -> None:
    between = (REQUIRED_COSINE[QUERY] + REQUIRED_COSINE[BFLOAT16]) / 2
    assert BackendRecord(BFLOAT16, "now", between).accepted
    refused = BackendRecord(QUERY, "now", between)
    assert not refused.accepted
    assert refused.reason == "its lowest cosine to the reference is 0.999450, less than 0.9999"
    failed = BackendRecord(QUERY, "now", 1.0, fault="it fell over")
    assert (failed.accepted, failed.reason) == (False, "it fell over")


def test_vectors_leave_at_unit_length_in_float32_or_not_at_all() -> None:
    identity = ModelIdentity("m", "r", 2)
    unit = unit_vectors(np.array([[0.6018, 0.8024], [-1, 0]]), identity)  # as bfloat16 leaves them
    assert unit.dtype == np.float32
    assert np.linalg.norm(unit, axis=1) == pytest.approx([1, 1], abs=1e-7)
    for astray in ([[0.0, 0.0]], [[np.nan, 1.0]], [[1.0, 1.0]]):
        with pytest.raises(ModelError, match="a vector with norm"):
            unit_vectors(np.array(astray), identity)
    with pytest.raises(ModelError, match=r"gave shape \(1, 3\)"):
        unit_vectors(np.ones((1, 3)), identity)
