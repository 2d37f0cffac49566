"""The files of a model: who it is, how it counts, and what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from services.errors import ModelError
from services.index.model_folder import PACKAGED_MODEL, TOKENS_LIMIT_DEFAULT, ModelFolder, find_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model in the usual layout that knows three words."""
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "net": 3, "revenue": 4}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=16)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 12}))
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 99}))
    return tmp_path


def test_a_model_is_known_by_its_name_its_weights_and_its_dimension(folder: Path) -> None:
    first = ModelFolder("m", folder).identity
    assert (first.model_id, first.dimension, len(first.revision)) == ("m", 12, 64)
    assert ModelFolder("m", folder).identity == first
    (folder / "model.safetensors").write_bytes(b"other weights")
    assert ModelFolder("m", folder).identity.revision != first.revision


def test_a_pooling_layer_says_the_dimension_when_there_is_one(folder: Path) -> None:
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 7}))
    assert ModelFolder("m", folder).identity.dimension == 7


def test_tokens_are_counted_with_their_markers_neither_cut_nor_padded(folder: Path) -> None:
    model = ModelFolder("m", folder)
    assert model.count_tokens("") == 2
    assert model.count_tokens("net revenue of all the customers") == 8
    assert model.tokens_limit == 99


def test_a_model_that_does_not_say_its_limit_has_the_usual_one(folder: Path) -> None:
    (folder / "sentence_bert_config.json").unlink()
    assert ModelFolder("m", folder).tokens_limit == TOKENS_LIMIT_DEFAULT


@pytest.mark.parametrize(
    ("tokenizer_says", "positions", "limit"), [(64, 512, 64), (10**30, 512, 512), (None, 512, 512), (512, -1, 512)]
)
def test_a_newer_folder_leaves_the_limit_to_tokenizer_and_positions(
    folder: Path, tokenizer_says: int | None, positions: int, limit: int
) -> None:
    (folder / "sentence_bert_config.json").write_text("{}")
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": tokenizer_says}))
    (folder / "config.json").write_text(json.dumps({"hidden_size": 12, "max_position_embeddings": positions}))
    assert ModelFolder("m", folder).tokens_limit == limit


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("model.safetensors", None, "no weights"),
        ("tokenizer.json", None, "no tokenizer.json"),
        ("config.json", None, "no config.json"),
        ("config.json", "{}", "config.json has no hidden_size"),
        ("config.json", "{", "config.json is not JSON"),
    ],
)
def test_what_is_missing_is_named_with_its_folder(folder: Path, file: str, content: str | None, said: str) -> None:
    (folder / file).unlink() if content is None else (folder / file).write_text(content)
    model = ModelFolder("m", folder)
    with pytest.raises(ModelError) as caught:
        _ = (model.identity, model.count_tokens("net"))
    assert said in str(caught.value)
    assert "model 'm'" in str(caught.value)
    assert str(folder) in str(caught.value)


def test_the_packaged_model_is_found_by_its_name_and_any_other_by_its_folder(folder: Path) -> None:
    packaged = find_model(PACKAGED_MODEL)
    assert (packaged.identity.dimension, packaged.tokens_limit) == (384, 256)
    assert find_model(str(folder)).model_id == folder.name
    with pytest.raises(ModelError, match=r"neither 'all-MiniLM-L6-v2' nor a folder; set VOUCH_MODEL"):
        find_model("nowhere")


def exportable(folder: Path, modules: list[str], pooling: dict[str, object], prompts: dict[str, str]) -> ModelFolder:
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    listed = [{"path": ("", "1_Pooling", "2_Normalize")[place], "type": name} for place, name in enumerate(modules)]
    (folder / "modules.json").write_text(json.dumps(listed))
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))
    return ModelFolder("m", folder)


OLD = ["sentence_transformers.models.Transformer", "sentence_transformers.models.Pooling"]
NEW = [
    "sentence_transformers.base.modules.transformer.Transformer",
    "sentence_transformers.sentence_transformer.modules.pooling.Pooling",
    "sentence_transformers.base.modules.normalize.Normalize",
]
OLD_MEAN = {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False}


@pytest.mark.parametrize(
    ("modules", "pooling", "prompts", "obstacle"),
    [
        (OLD, OLD_MEAN, {}, None),
        (NEW, {"pooling_mode": "cls"}, {"query": "query: "}, None),
        (NEW, {}, {}, None),
        ([*OLD, "sentence_transformers.models.Dense"], OLD_MEAN, {}, "models.Dense"),
        ([OLD[0], "elsewhere.Pooling"], OLD_MEAN, {}, "elsewhere.Pooling"),
        ([], OLD_MEAN, {}, "not listed"),
        (OLD, {"pooling_mode_max_tokens": True}, {}, "pools by max_tokens"),
        (NEW, {"pooling_mode": ["mean", "max"]}, {}, "pools by mean, max"),
        (NEW, {"include_prompt": False}, {"query": "query: "}, "leaves the prompt out"),
        (NEW, {"include_prompt": False}, {"document": "doc: "}, None),
    ],
)
def test_a_model_says_what_stands_in_the_way_of_an_export(
    folder: Path, modules: list[str], pooling: dict[str, object], prompts: dict[str, str], obstacle: str | None
) -> None:
    found = exportable(folder, modules, pooling, prompts).export_obstacle
    assert found is None if obstacle is None else found is not None and obstacle in found


def test_lower_casing_outside_the_tokenizer_stands_in_the_way(folder: Path) -> None:
    (folder / "sentence_bert_config.json").write_text(json.dumps({"do_lower_case": True}))
    assert exportable(folder, OLD, OLD_MEAN, {}).export_obstacle == "it lower-cases texts outside its tokenizer"


def test_a_model_in_no_layout_of_its_own_cannot_be_exported(folder: Path) -> None:
    assert ModelFolder("m", folder).export_obstacle == "its modules are not listed"
    assert ModelFolder("m", folder).query_prompt == ""


def test_a_query_is_cut_where_the_model_cuts_and_has_its_prompt(folder: Path) -> None:
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 5}))
    model = exportable(folder, OLD, OLD_MEAN, {"query": "query: "})
    assert model.query_prompt == "query: "
    assert model.query_tokenizer().encode("net net net net net net").ids == [1, 3, 3, 3, 2]
    assert model.count_tokens("net net net net net net") == 8
