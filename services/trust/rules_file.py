"""The YAML of a rules file: laying one file over another, and finding the line that an error is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from services.errors import RulesError

ADD_SUFFIX = "+"
_MERGE_DEPTH_LIMIT = 20


@dataclass(frozen=True)
class RulesFile:
    """One file of rules as read: its plain data and the YAML nodes that know their lines."""

    label: str
    data: dict[str, Any]
    root: yaml.MappingNode | None

    def find(self, path: Sequence[str | int]) -> tuple[int, int]:
        """(how many keys of the path the file has, the 1-based line of the last one it has)."""
        node: yaml.Node | None = self.root
        depth, line = 0, 1
        for step in path:
            child = _child(node, step)
            if child is None:
                break
            key_node, node = child
            depth, line = depth + 1, key_node.start_mark.line + 1
        return depth, line


def parse_rules(text: str, label: str) -> RulesFile:
    """The file's content. RulesError for what is no YAML mapping, or has a key twice."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise RulesError(f"{label}, line {line}: not valid YAML: {error.problem}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise RulesError(f"{label}, line 1: not valid YAML: {error}") from error
    if data is None:
        return RulesFile(label, {}, None)
    if not isinstance(root, yaml.MappingNode) or not isinstance(data, dict):
        raise RulesError(f"{label}, line 1: the file must be a mapping of keys, such as `signals:`")
    _refuse_double_keys(root, label, ())
    return RulesFile(label, data, root)


def read_rules(path: Path) -> RulesFile:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RulesError(f"{path}: the rules file cannot be read: {error}") from error
    return parse_rules(text, path.name)


def overlay(base: RulesFile, over: RulesFile) -> dict[str, Any]:
    """`base` with `over` laid over it: mappings merge, null takes a key away, `key+` adds to a list."""
    merged = _overlay(base.data, over.data, over, ())
    assert isinstance(merged, dict)
    return merged


def _overlay(base: Any, over: Any, file: RulesFile, path: tuple[str, ...]) -> Any:
    if not isinstance(base, dict) or not isinstance(over, dict) or len(path) > _MERGE_DEPTH_LIMIT:
        return over
    merged = dict(base)
    for key, value in over.items():
        here = (*path, str(key))
        if isinstance(key, str) and key.endswith(ADD_SUFFIX):
            listed = key.removesuffix(ADD_SUFFIX)
            merged[listed] = _added(merged.get(listed, []), value, file, here)
        elif value is None:
            merged.pop(key, None)
        else:
            merged[key] = _overlay(merged.get(key), value, file, here)
    return merged


def _added(listed: Any, more: Any, file: RulesFile, path: tuple[str, ...]) -> list[Any]:
    if not isinstance(listed, list) or not isinstance(more, list):
        raise RulesError(located((file,), path, "`key+` adds a list to a list; one of the two is none"))
    return [*listed, *(item for item in more if item not in listed)]


def located(files: Sequence[RulesFile], path: Sequence[str | int], problem: str) -> str:
    """`file, line N: key: problem`, by the file that knows most of the path (of two, the one laid on top)."""
    found = [(*file.find(path), file.label) for file in files]
    deepest = max(found, key=lambda item: item[0])
    line, label = next(item[1:] for item in reversed(found) if item[0] == deepest[0])
    key = ".".join(str(step) for step in path) or "the file"
    return f"{label}, line {line}: {key}: {problem}"


def _child(node: yaml.Node | None, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value in (str(step), f"{step}{ADD_SUFFIX}"):
                return key, value
    return None


def _refuse_double_keys(node: yaml.Node, label: str, path: tuple[str, ...]) -> None:
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_double_keys(item, label, path)
    if not isinstance(node, yaml.MappingNode):
        return
    seen: set[str] = set()
    for key, value in node.value:
        if key.value in seen:
            where = ".".join((*path, key.value))
            raise RulesError(f"{label}, line {key.start_mark.line + 1}: {where}: the key stands here twice")
        seen.add(key.value)
        _refuse_double_keys(value, label, (*path, key.value))
