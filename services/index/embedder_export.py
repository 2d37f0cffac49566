"""The two faster backends of a model, made from its weights and judged against it. Torch is at home here.

`python -m services.index.embedder_export MODEL_ID MODEL_FOLDER BACKENDS_FOLDER` makes the export for queries.
"""

from __future__ import annotations

import hashlib
import logging
import sys
import warnings
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import structlog

from services.errors import ModelError
from services.index.embedder import load_model, unit_vectors
from services.index.embedder_backends import BackendRecord, BackendStore
from services.index.embedder_drift import BFLOAT16, DRIFT_TEXTS, QUERY, lowest_cosine
from services.index.embedder_query import OnnxQueries, export_is_settled, query_made_with
from services.index.model_folder import ModelFolder
from services.index.store import Vectors

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Precision = Literal["auto", "float32", "bfloat16"]
BFLOAT16_UNITS = ("amx_bf16", "avx512_bf16")

log = structlog.get_logger()


def prepare_batches(model: SentenceTransformer, folder: ModelFolder, store: BackendStore, precision: Precision) -> None:
    """What a process that embeds documents does with the model it has just loaded, in float32.

    It makes the export for queries where that is missing, and turns the model to the precision that is wanted. Raises
    ModelError when bfloat16 was asked for by name and drifts too far.
    """
    if folder.export_obstacle is None:
        try:
            ensure_export(model, folder, store)
        except ModelError as error:  # a home that cannot be written; whoever embeds a query finds another way
            log.warning("no export for queries", model=folder.model_id, reason=str(error))
    if precision == "bfloat16" or (precision == "auto" and has_bfloat16()):
        _turn_to_bfloat16(model, folder, store, forced=precision == "bfloat16")


def ensure_export(model: SentenceTransformer, folder: ModelFolder, store: BackendStore) -> None:
    """Export the model, in float32, unless that is done. Raises ModelError when the store cannot be written.

    An export that fails or drifts is remembered as refused: it would not come out better the next time.
    """
    if export_is_settled(store):
        return
    with store.writing():
        if export_is_settled(store):  # another process was first
            return
        with store.unfinished_file() as file:
            record = _export(model, folder, file)
            if record.accepted:
                file.replace(store.file)
        store.keep(record)
    if record.accepted:
        log.info("model exported for queries", model=folder.model_id, lowest_cosine=record.lowest_cosine)
    else:
        log.warning("the export for queries is refused", model=folder.model_id, reason=record.reason)


def has_bfloat16() -> bool:
    """True where the processor multiplies bfloat16 itself; elsewhere it would only be slower."""
    import torch

    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name) for name in BFLOAT16_UNITS)


def main(arguments: list[str]) -> None:
    model_id, model_folder, backends_folder = arguments
    folder = ModelFolder(model_id, Path(model_folder))
    store = BackendStore(Path(backends_folder), folder)
    if not export_is_settled(store):  # before the long imports
        ensure_export(load_model(folder, threads=1), folder, store)


def _export(model: SentenceTransformer, folder: ModelFolder, file: Path) -> BackendRecord:
    from onnxruntime.capi import onnxruntime_pybind11_state as runtime
    from torch.onnx import OnnxExporterError

    # They have no root of their own below Exception.
    refusals = (runtime.Fail, runtime.InvalidArgument, runtime.InvalidGraph, runtime.NotImplemented)
    try:
        _trace(model, folder, file)
        exported = OnnxQueries(folder, file)
        found = np.stack([exported(text) for text in DRIFT_TEXTS])
    except (OnnxExporterError, ModelError, *refusals) as error:
        said = str(error).strip().partition("\n")[0]
        fault = f"{type(error).__name__}: {said}"
        return BackendRecord(QUERY, query_made_with(), -1.0, fault=fault)
    expected = _vectors(model.encode_query, folder)
    with file.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    return BackendRecord(QUERY, query_made_with(), lowest_cosine(found, expected), file_sha256=sha256)


def _trace(model: SentenceTransformer, folder: ModelFolder, file: Path) -> None:
    """Write the model's own modules as one graph: token ids of one text in, a vector of unit length out."""
    import torch

    class Pipeline(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stages = torch.nn.ModuleList(model)

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
            features = {"input_ids": input_ids, "attention_mask": attention_mask}
            for stage in self.stages:
                features = stage(features)
            return torch.nn.functional.normalize(features["sentence_embedding"], dim=-1)

    token_ids = torch.ones(1, 8, dtype=torch.long)
    tokens = torch.export.Dim("tokens", min=2, max=folder.tokens_limit)
    exporter_log = logging.getLogger("torch.onnx")
    level = exporter_log.level
    exporter_log.setLevel(logging.ERROR)  # it names every package that it can do without
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of libraries about one another; the vectors are compared afterwards
            program = torch.onnx.export(
                Pipeline().eval(),
                (token_ids, torch.ones_like(token_ids)),
                input_names=["input_ids", "attention_mask"],
                output_names=["vectors"],
                dynamic_shapes={"input_ids": {1: tokens}, "attention_mask": {1: tokens}},
                dynamo=True,
                verbose=False,
            )
    finally:
        exporter_log.setLevel(level)
    if program is None:
        raise ModelError("the exporter gave no program")
    program.save(str(file), external_data=False)


def _turn_to_bfloat16(model: SentenceTransformer, folder: ModelFolder, store: BackendStore, *, forced: bool) -> None:
    """Bfloat16 weights, where they still give the model's vectors; else the model stays as it is."""
    record = store.record(BFLOAT16, _bfloat16_made_with())
    if record is None:
        record = _judge_bfloat16(model, folder)
        try:
            with store.writing():
                store.keep(record)
        except ModelError as error:  # the next process compares again
            log.warning("drift of bfloat16 is not kept", model=folder.model_id, reason=str(error))
    if record.accepted:
        model.bfloat16()
        return
    refused = f"model {folder.model_id!r} is not for bfloat16: {record.reason}"
    if forced:
        raise ModelError(f"{refused}; set VOUCH_EMBED_PRECISION to float32")
    log.warning("documents are embedded in float32", model=folder.model_id, reason=refused)


def _judge_bfloat16(model: SentenceTransformer, folder: ModelFolder) -> BackendRecord:
    expected = _vectors(model.encode_document, folder)
    try:
        found = _vectors(deepcopy(model).bfloat16().encode_document, folder)
    except ModelError as error:
        return BackendRecord(BFLOAT16, _bfloat16_made_with(), -1.0, fault=str(error))
    return BackendRecord(BFLOAT16, _bfloat16_made_with(), lowest_cosine(found, expected))


def _bfloat16_made_with() -> str:
    import torch

    capabilities = torch.cpu.get_capabilities()
    units = [name for name in BFLOAT16_UNITS if capabilities.get(name)]
    return f"torch {torch.__version__}, {capabilities.get('cpu_name')}, {' '.join(units) or 'no unit for bfloat16'}"


def _vectors(encode: Callable[..., Vectors], folder: ModelFolder) -> Vectors:
    """The drift texts through an encode method, one at a time: padding would change the last digits."""
    vectors = encode(list(DRIFT_TEXTS), batch_size=1, normalize_embeddings=True, show_progress_bar=False)
    return unit_vectors(vectors, folder.identity)


if __name__ == "__main__":
    main(sys.argv[1:])
