"""What a field of a record takes, in words: read from its JSON schema, so that it can never differ from the check."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]
Location = tuple[int | str, ...]

_NOUNS = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}


def expectation(model: type[BaseModel], location: Location) -> str:
    """What the field at that place takes: "a whole number from 1 to 50", "one of: analysis, discovery", ..."""
    return _words(_schema_at(model, location), _schema(model))


def known_fields(model: type[BaseModel], location: Location) -> list[str]:
    """The fields of the object at that place, in the order of their definition."""
    return list(_schema_at(model, location).get("properties", {}))


@cache
def _schema(model: type[BaseModel]) -> Schema:
    return model.model_json_schema()


def _schema_at(model: type[BaseModel], location: Location) -> Schema:
    root = _schema(model)
    schema = root
    for step in location:
        options = [_resolved(option, root) for option in schema.get("anyOf", [schema])]
        for option in options:
            if isinstance(step, int) and "items" in option:
                schema = _resolved(option["items"], root)
                break
            if step in option.get("properties", {}):
                schema = _resolved(option["properties"][step], root)
                break
    return schema


def _resolved(schema: Schema, root: Schema) -> Schema:
    reference = schema.get("$ref")
    if reference is None:
        return schema
    target: Schema = root["$defs"][reference.rsplit("/", 1)[1]]
    return target


def _words(schema: Schema, root: Schema) -> str:
    schema = _resolved(schema, root)
    if "anyOf" in schema:
        return " or ".join(_words(option, root) for option in schema["anyOf"])
    if "enum" in schema:
        return "one of: " + ", ".join(schema["enum"])
    noun = _NOUNS[schema["type"]]
    if schema["type"] == "array":
        return f"{noun} of which each item is {_words(schema['items'], root)}"
    return noun + _range(schema)


def _range(schema: Schema) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and most is not None:
        return f" from {least:g} to {most:g}"
    if least is not None:
        return f" of at least {least:g}"
    return f" of at most {most:g}" if most is not None else ""
