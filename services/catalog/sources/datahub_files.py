"""Exported MCP files -> the aspects of each entity, the last proposal of an (entity, aspect) winning."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from services.catalog.sources.base import Rejection
from services.catalog.sources.datahub_aspects import Aspect, urn_kind
from services.errors import SourceError
from services.text.clean import scrub

INDEX_FILE = "index.json"
PAYLOAD_KEPT = 10_000  # characters of what is rejected that go to quarantine
LINES_SUFFIXES = (".jsonl", ".ndjson")

_SETTING_CHANGES = ("UPSERT", "CREATE", "UPDATE", "RESTATE", "CREATE_ENTITY")
# Never read, and most of an export: not held.
_UNREAD_ASPECTS = frozenset({"entityInferenceMetadata", "lineageFeatures", "schemaFieldKey", "testResults"})
_UNREAD_FIELDS = ("fineGrainedLineages", "platformSchema")


class MalformedProposal(SourceError):
    """One item of an MCP file that is not a metadata change proposal; says what is wrong with it."""


@dataclass
class Entity:
    """One DataHub entity with its aspects; `place` is where the file last spoke of it."""

    urn: str
    kind: str
    place: str
    aspects: dict[str, dict[str, Any]] = field(default_factory=dict)
    deleted: bool = False

    def aspect(self, name: str) -> Aspect:
        """The aspect of that name, empty when the entity has none."""
        return Aspect(name, self.aspects.get(name, {}))


@dataclass(frozen=True)
class _Item:
    place: str  # "02-data.json item 17", counted from 0 as in the array; "data.jsonl line 18", counted from 1
    value: Any


@dataclass
class Contents:
    """What the files hold: entities by urn in order of first mention, and what could not be read."""

    files: tuple[Path, ...]
    entities: dict[str, Entity] = field(default_factory=dict)
    rejected: list[Rejection] = field(default_factory=list)
    replaced_characters: int = 0


def read_contents(path: Path) -> Contents:
    """Every entity of an MCP file or folder, held in memory (a reference may point anywhere in the files).

    Raises SourceError, with file and position, when a file is missing or is not JSON. An item that is not a proposal
    is a rejection, and so is a bad line of a JSON Lines file.
    """
    contents = Contents(files=mcp_files(path))
    for file in contents.files:
        for item in _items(file):
            if isinstance(item, Rejection):
                contents.rejected.append(item)
                continue
            try:
                _apply(contents, item)
            except MalformedProposal as error:
                contents.rejected.append(_rejection(item, error))
    return contents


def _rejection(item: _Item, error: MalformedProposal) -> Rejection:
    urn = item.value.get("entityUrn") if isinstance(item.value, dict) else None
    known = urn if isinstance(urn, str) and urn_kind(urn) and not scrub(urn)[1] else None
    payload = json.dumps(item.value)[:PAYLOAD_KEPT]
    return Rejection(item.place, f"{item.place}: {error}", payload, asset_id=known)


def mcp_files(path: Path) -> tuple[Path, ...]:
    """The files to read, in order: the file itself, those a folder's index.json lists, or all by name."""
    if path.is_file():
        return (path,)
    if not path.is_dir():
        raise SourceError(f"no DataHub export at {path}; give an MCP file or a folder of them")
    index = path / INDEX_FILE
    if index.is_file():
        return _listed_files(index)
    found = sorted(file for file in path.iterdir() if file.suffix in (".json", *LINES_SUFFIXES) and file.is_file())
    if not found:
        raise SourceError(f"the folder {path} holds no .json, .jsonl or .ndjson file")
    return tuple(found)


def _listed_files(index: Path) -> tuple[Path, ...]:
    content = _load(index)
    entries = content.get("files") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise SourceError(f"{index} has no list 'files'; remove it to read all files of its folder")
    listed = []
    for entry in entries:
        name = entry.get("path") if isinstance(entry, dict) else entry
        if not isinstance(name, str):
            raise SourceError(f"{index} lists {entry!r}, which names no file")
        file = index.parent / name
        if not file.is_file() or not file.resolve().is_relative_to(index.parent.resolve()):
            raise SourceError(f"{index} lists {name!r}, which is not a file of its folder")
        listed.append(file)
    return tuple(listed)


def _items(file: Path) -> Iterator[_Item | Rejection]:
    if file.suffix not in LINES_SUFFIXES:
        content = _load(file)
        for number, value in enumerate(content if isinstance(content, list) else [content]):
            yield _Item(f"{file.name} item {number}", value)
        return
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            place = f"{file.name} line {number}"
            if not line.strip():
                continue
            try:
                yield _Item(place, json.loads(line.decode("utf-8-sig")))
            except (ValueError, RecursionError) as error:
                yield Rejection(place, f"{place} is not JSON: {error}", line[:PAYLOAD_KEPT].decode(errors="replace"))


def _load(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8-sig"))
    except json.JSONDecodeError as error:
        hint = "; name a file of one proposal per line *.jsonl" if error.msg == "Extra data" else ""
        raise SourceError(
            f"{file} is not JSON at line {error.lineno}, column {error.colno}: {error.msg}{hint}"
        ) from error
    except UnicodeDecodeError as error:
        raise SourceError(f"{file} is not UTF-8 at byte {error.start}; export it again as UTF-8") from error
    except RecursionError as error:
        raise SourceError(f"{file} is nested too deeply to be a DataHub export") from error
    except OSError as error:
        raise SourceError(f"{file} cannot be read: {error.strerror}") from error


def _apply(contents: Contents, item: _Item) -> None:
    """Take one proposal into the contents. Raises MalformedProposal."""
    proposal = item.value
    if not isinstance(proposal, dict):
        raise MalformedProposal(f"a proposal is an object, this is {type(proposal).__name__}")
    if "proposedSnapshot" in proposal:
        raise MalformedProposal("this is a metadata change event, the older form; export change proposals instead")
    urn = proposal.get("entityUrn")
    kind = urn_kind(urn) if isinstance(urn, str) else None
    if not isinstance(urn, str) or kind is None:
        raise MalformedProposal(f"entityUrn {urn!r} is not an urn")
    if scrub(urn)[1]:
        raise MalformedProposal(f"entityUrn {urn!r} has characters that cannot be stored")
    name = proposal.get("aspectName")
    change = proposal.get("changeType", "UPSERT")
    entity = contents.entities.get(urn) or Entity(urn, kind, item.place)
    if change == "DELETE":
        _delete(entity, name)
    elif change not in _SETTING_CHANGES:
        raise MalformedProposal(f"changeType {change!r} of {urn} is not supported; export whole aspects (UPSERT)")
    elif not isinstance(name, str):
        raise MalformedProposal(f"aspectName {name!r} of {urn} is not a name")
    else:
        aspect, replaced = scrub(_aspect_value(proposal.get("aspect"), f"{name} of {urn}"))
        contents.replaced_characters += replaced
        entity.deleted = False
        if name not in _UNREAD_ASPECTS:
            entity.aspects[name] = {key: part for key, part in aspect.items() if key not in _UNREAD_FIELDS}
    entity.place = item.place
    contents.entities[urn] = entity


def _delete(entity: Entity, aspect_name: object) -> None:
    """Deleting the key aspect, or no aspect in particular, deletes the entity."""
    if not isinstance(aspect_name, str) or aspect_name.lower() == f"{entity.kind}key".lower():
        entity.aspects.clear()
        entity.deleted = True
    else:
        entity.aspects.pop(aspect_name, None)


def _aspect_value(aspect: Any, what: str) -> dict[str, Any]:
    """The aspect as an object: `json` holds it as one, `value` as JSON text."""
    if not isinstance(aspect, dict):
        raise MalformedProposal(f"aspect {what} is missing")
    value = aspect.get("value") if aspect.get("json") is None else aspect["json"]
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise MalformedProposal(f"aspect {what} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise MalformedProposal(f"aspect {what} should be an object, but is {type(value).__name__}")
    return value
