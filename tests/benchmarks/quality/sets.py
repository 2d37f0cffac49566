"""The public question sets: what is published, what is asked, and the texts that the peers read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.evaluation.golden import GoldenQuery, read_queries

# With the texts that the peers read. The few descriptions of the first set only spell names.
TABLE_SETS = {"spider": ("names",), "spider2_lite_half": ("names", "full")}
CHUNK_SET = "squad2_half"


@dataclass(frozen=True)
class QualitySet:
    """`texts`: by kind ("names", "full", "chunks"), asset id -> what a peer reads of it."""

    name: str
    what: str
    assets_file: Path
    queries: tuple[GoldenQuery, ...]
    texts: Mapping[str, Mapping[str, str]]


def table_set(name: str, folder: Path) -> QualitySet:
    """Tables with names, perhaps descriptions; the gold of a question are the tables that its reference SQL reads."""
    file = folder / name / "assets.jsonl"
    assets = list(_lines(file))
    texts = {
        kind: {asset["id"]: _text(asset, described=kind == "full") for asset in assets} for kind in TABLE_SETS[name]
    }
    return QualitySet(name, "tables", file, read_queries(folder / name / "queries.jsonl"), texts)


def chunk_set(name: str, folder: Path, written: Path) -> QualitySet:
    """Passages of documents, each published as a data story from the folder `written`; questions with an answer only.

    The gold of a question is the passage that its answer was marked in.
    """
    chunks = list(_lines(folder / name / "chunks.jsonl"))
    file = written / name / "assets.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(_story(chunk)) + "\n" for chunk in chunks), encoding="utf-8")
    queries = tuple(
        GoldenQuery(qid=line["qid"], question=line["question"], gold=(line["chunk_id"],))
        for line in _lines(folder / name / "qa.jsonl")
        if line["answerable"]
    )
    texts = {chunk["chunk_id"]: f"{chunk['doc']} {chunk['text']}" for chunk in chunks}
    return QualitySet(name, "passages of documents (chunk search)", file, queries, {"chunks": texts})


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as stream:
        yield from map(json.loads, stream)


def _text(asset: Mapping[str, Any], *, described: bool) -> str:
    """`database.table: column, column`, the asset and each column followed by its description when that is asked for.

    Of the spellings tried, the one that the dense model reads best.
    """
    said = [*filter(None, asset["descriptions"].values())] if described else []
    columns = [
        f"{column['name']} {column['description']}" if described and column["description"] else column["name"]
        for column in asset["columns"]
    ]
    return " ".join((f"{asset['location'][0]}.{asset['name']}:", *said, ", ".join(columns)))


def _story(chunk: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": chunk["chunk_id"],
        "object_type": "data_story",
        "name": chunk["chunk_id"],
        "title": chunk["doc"].replace("_", " "),
        "location": [chunk["doc"]],
        "attributes": {"body": chunk["text"]},
        "access": {"classification": "Public"},
    }
