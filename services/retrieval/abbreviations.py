"""The abbreviations that names in databases are full of: shipped as data, read once, usable in both directions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources

from services.errors import RulesError
from services.retrieval.expansion import RUN_WORDS_LIMIT, other_names
from services.text.identifiers import split_identifier
from services.trust.rules_file import RulesFile, located, parse_rules

ROOT_KEY = "abbreviations"


@dataclass(frozen=True)
class Abbreviations:
    """By an abbreviation its long forms, by a long form its abbreviations; all in normal form."""

    other_names: Mapping[str, tuple[str, ...]]


def load_abbreviations() -> Abbreviations:
    """The shipped ones."""
    text = resources.files("services.retrieval").joinpath("abbreviations.yaml").read_text(encoding="utf-8")
    return parse_abbreviations(text, "abbreviations.yaml (shipped)")


def parse_abbreviations(text: str, label: str) -> Abbreviations:
    """From YAML: `abbreviations: {short: [long, ...]}`. RulesError names file, line and key of what is wrong."""
    file = parse_rules(text, label)
    for key in file.data:
        if key != ROOT_KEY:
            raise RulesError(located((file,), (key,), "unknown key"))
    listed = file.data.get(ROOT_KEY)
    if not isinstance(listed, dict):
        raise RulesError(located((file,), (ROOT_KEY,), "must be a mapping of abbreviations to lists of long forms"))
    pairs = [pair for short, longs in listed.items() for pair in _pairs(file, short, longs)]
    return Abbreviations(other_names(pairs))


def _pairs(file: RulesFile, short: object, longs: object) -> Iterator[tuple[str, str]]:
    path = (ROOT_KEY, str(short))
    if not isinstance(short, str) or len(split_identifier(short)) != 1:
        raise RulesError(located((file,), path, "an abbreviation is one word; put quotes around it"))
    if not isinstance(longs, list) or not longs:
        raise RulesError(located((file,), path, "must be a list of long forms"))
    for place, long in enumerate(longs):
        if not isinstance(long, str) or not 1 <= len(split_identifier(long)) <= RUN_WORDS_LIMIT:
            raise RulesError(located((file,), (*path, place), f"a long form is one to {RUN_WORDS_LIMIT} words"))
        if split_identifier(long) == split_identifier(short):
            raise RulesError(located((file,), (*path, place), "the long form is the abbreviation itself"))
        yield short, long
