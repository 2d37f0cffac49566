"""What is kept of a model's faster backends: the exported file, and how far each is from the reference.

Everything is named by the revision of the weights. A record holds only for the configuration of the model and the
libraries it was made with; whatever does not fit is made again. One process at a time writes, under a lock that ends
with its process, and each file appears whole: a reader needs no lock.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from services.errors import ModelError
from services.index.embedder_drift import REQUIRED_COSINE
from services.index.model_folder import ModelFolder


@dataclass(frozen=True)
class BackendRecord:
    """How one backend did against the reference. `file_sha256` (hex) is that of the export it was, if it was one."""

    backend: str
    made_with: str
    lowest_cosine: float
    file_sha256: str = ""
    fault: str = ""

    @property
    def accepted(self) -> bool:
        return not self.fault and self.lowest_cosine >= REQUIRED_COSINE[self.backend]

    @property
    def reason(self) -> str:
        """Why it is refused, when it is."""
        required = REQUIRED_COSINE[self.backend]
        return self.fault or f"its lowest cosine to the reference is {self.lowest_cosine:.6f}, less than {required}"


class BackendStore:
    """Backends of one model in a folder. Raises ModelError when the folder cannot be written."""

    def __init__(self, folder: Path, model: ModelFolder) -> None:
        self._folder = folder
        self._model = model

    @property
    def file(self) -> Path:
        """Where the exported model is, or would be."""
        return self._path("onnx")

    def record(self, backend: str, made_with: str) -> BackendRecord | None:
        """The record in force; None when there is none yet, or it is of something else."""
        try:
            kept = json.loads(self._path(f"{backend}.json").read_text(encoding="utf-8"))
            configuration = kept.pop("configuration")
            record = BackendRecord(**kept)
        except (OSError, ValueError, TypeError, AttributeError, KeyError):
            return None  # missing, cut off or not ours: to be made again, like an outdated one
        wanted = (backend, self._model.configuration, made_with)
        return record if (record.backend, configuration, record.made_with) == wanted else None

    def intact(self, record: BackendRecord) -> bool:
        """True when the exported file is the one that was judged."""
        try:
            with self.file.open("rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest() == record.file_sha256
        except OSError:
            return False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keeps other processes from writing. What is an error of the folder inside becomes a ModelError."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with self._path("lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        except OSError as error:
            raise ModelError(
                f"{self._folder} cannot be written: {error.strerror or error}; check VOUCH_HOME"
            ) from error

    @contextmanager
    def unfinished_file(self) -> Iterator[Path]:
        """Where to export to; gone after the block, if it was not moved to its place. Only while `writing`."""
        path = self._path("onnx.unfinished")
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def keep(self, record: BackendRecord) -> None:
        """Only while `writing`."""
        unfinished = self._path(f"{record.backend}.unfinished")
        content = {"configuration": self._model.configuration, **asdict(record)}
        unfinished.write_text(json.dumps(content, indent=1), encoding="utf-8")
        unfinished.replace(self._path(f"{record.backend}.json"))

    def _path(self, ending: str) -> Path:
        return self._folder / f"{self._model.identity.revision}.{ending}"
