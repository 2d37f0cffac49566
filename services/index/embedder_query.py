"""Queries to vectors through onnxruntime: a quarter of the time and memory of torch, which is not even imported.

The exported model is made once per revision (see `embedder_export`): by the refresh, which has torch loaded anyway, or
else by a process that the first query starts, so that a server does not carry torch along for the rest of its life.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from threading import Lock

import numpy as np
import structlog

from services.errors import ModelError
from services.index.embedder import Embedder, unit_vectors
from services.index.embedder_backends import BackendStore
from services.index.embedder_drift import QUERY
from services.index.identity import ModelIdentity
from services.index.model_folder import ModelFolder
from services.index.store import Vectors

CACHED_QUERIES = 1024  # at 384 dimensions 1.5 MB, and at the most 16 KiB of text for each
EXPORT_SECONDS_LIMIT = 600
EXPORT_FORMAT = 1  # grows when an older export must not be used any more

log = structlog.get_logger()

EmbedQuery = Callable[[str], Vectors]


class OnnxQueries:
    """One exported model: a query in, its vector out. Threads may share it."""

    def __init__(self, folder: ModelFolder, file: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        # One short text gains nothing from a second thread, and on a busy machine the threads wait for each other:
        # with two, a query was measured at eight times the processor time.
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3  # errors; its warnings are about its own optimiser
        self._session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        self._tokenizer = folder.query_tokenizer()
        self._prompt = folder.query_prompt
        self._identity = folder.identity

    def __call__(self, text: str) -> Vectors:
        token_ids = np.array([self._tokenizer.encode(self._prompt + text).ids], dtype=np.int64)
        inputs = {"input_ids": token_ids, "attention_mask": np.ones_like(token_ids)}
        (vectors,) = self._session.run(None, inputs)
        vector: Vectors = unit_vectors(vectors, self._identity)[0]
        return vector


class QueryEmbedder:
    """See `Embedder`: queries by the exported model where it is to be had; all else, and otherwise, by the reference.

    Vectors of the last `CACHED_QUERIES` texts are kept, and are read-only for that reason.
    """

    def __init__(
        self, folder: ModelFolder, store: BackendStore, reference: Embedder, make_export: Callable[[], None]
    ) -> None:
        self._folder = folder
        self._store = store
        self._reference = reference
        self._make_export = make_export
        self._opening = Lock()
        self._backend: EmbedQuery | None = None
        self._cached = lru_cache(CACHED_QUERIES)(self._embed)

    @property
    def identity(self) -> ModelIdentity:
        return self._folder.identity

    @property
    def tokens_limit(self) -> int:
        return self._folder.tokens_limit

    def count_tokens(self, text: str) -> int:
        return self._folder.count_tokens(text)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return self._reference.embed_documents(texts)

    def embed_query(self, text: str) -> Vectors:
        return self._cached(text)

    def _embed(self, text: str) -> Vectors:
        with self._opening:
            if self._backend is None:
                self._backend = self._open()
        vector = self._backend(text)
        vector.setflags(write=False)
        return vector

    def _open(self) -> EmbedQuery:
        if obstacle := self._folder.export_obstacle:
            log.info("queries are embedded by torch", model=self._folder.model_id, reason=obstacle)
            return self._reference.embed_query
        try:
            return self._exported()
        except ModelError as error:
            log.warning("queries are embedded by torch", model=self._folder.model_id, reason=str(error))
            return self._reference.embed_query

    def _exported(self) -> EmbedQuery:
        """The exported model, made first when it is missing or damaged. Raises ModelError when it cannot be had."""
        if not export_is_settled(self._store):
            with self._store.writing():
                pass  # whoever is at it has ended now; and if nobody can write, that is known before the long work
        if not export_is_settled(self._store):
            log.info("exporting the model for queries, once", model=self._folder.model_id)
            self._make_export()
        record = self._store.record(QUERY, query_made_with())
        if record is None:
            raise ModelError(f"the export of model {self._folder.model_id!r} left nothing in {self._store.file.parent}")
        if not record.accepted:
            raise ModelError(f"the export of model {self._folder.model_id!r} is refused: {record.reason}")
        return OnnxQueries(self._folder, self._store.file)


def query_made_with() -> str:
    """What decides the vectors of an export beside the model; another one asks for another export."""
    return f"onnxruntime {version('onnxruntime')}, format {EXPORT_FORMAT}"


def export_is_settled(store: BackendStore) -> bool:
    """True when there is nothing to make: an intact export, or one that was refused."""
    record = store.record(QUERY, query_made_with())
    return record is not None and (not record.accepted or store.intact(record))


def export_in_a_process(folder: ModelFolder, backends: Path) -> None:
    """Make the export in a process of its own. Raises ModelError when that fails."""
    command = [sys.executable, "-m", "services.index.embedder_export", folder.model_id, str(folder.path), str(backends)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=EXPORT_SECONDS_LIMIT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ModelError(f"the export of model {folder.model_id!r} did not come about: {error}") from error
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise ModelError(f"the export of model {folder.model_id!r} failed: {said}")
