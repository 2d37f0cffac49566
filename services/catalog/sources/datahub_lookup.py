"""What the mapping of one entity needs to know of the others: names, links, who belongs to whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from services.catalog.parts import TermLink
from services.catalog.sources.datahub_aspects import is_opaque, last_part, urn_kind, urn_parts


@dataclass(frozen=True)
class FieldNotes:
    """What is said of one column outside of its dataset's schema; terms and tags are urns."""

    removed: bool = False
    documentation: str | None = None
    terms: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lookup:
    """The references of a whole export. Whatever was removed is in `hidden` and nowhere else."""

    hidden: frozenset[str] = frozenset()
    names: Mapping[str, str] = field(default_factory=dict)  # urn -> name for people
    parents: Mapping[str, str] = field(default_factory=dict)  # urn -> what holds it: container, domain, node, document
    terms: Mapping[str, TermLink] = field(default_factory=dict)
    guids: Mapping[str, str] = field(default_factory=dict)  # GUID -> the one term that has it in its urn
    upstream: Mapping[str, frozenset[str]] = field(default_factory=dict)
    downstream: Mapping[str, frozenset[str]] = field(default_factory=dict)
    products: Mapping[str, frozenset[str]] = field(default_factory=dict)  # asset -> data products that hold it
    dashboards: Mapping[str, frozenset[str]] = field(default_factory=dict)  # chart -> dashboards that show it
    children: Mapping[str, frozenset[str]] = field(default_factory=dict)  # document -> documents below it
    table_counts: Mapping[str, int] = field(default_factory=dict)  # container -> datasets in it, at any depth
    field_notes: Mapping[str, Mapping[str, FieldNotes]] = field(default_factory=dict)  # dataset -> field path -> notes

    def visible(self, urn: str) -> bool:
        """False for what was removed, and for the columns of what was removed."""
        while urn not in self.hidden:
            if urn_kind(urn) != "schemaField":
                return True
            urn = urn_parts(urn)[0]  # the dataset that holds the column
        return False

    def name(self, urn: str) -> str | None:
        """The readable name of an urn: its own, else what the urn says, unless that is an id or it was removed."""
        if not self.visible(urn):
            return None
        guessed = last_part(urn)
        return self.names.get(urn) or (None if is_opaque(guessed) else guessed)

    def named(self, urns: Iterable[str]) -> tuple[str, ...]:
        """The readable names of urns, each once, in their order."""
        return tuple(dict.fromkeys(name for urn in urns if (name := self.name(urn))))

    def term(self, urn: str) -> TermLink | None:
        """The term of that urn with its place in the glossary, or None when it was removed or has no readable name.

        A reference by a bare GUID finds the term whose urn has that GUID behind a namespace: exports that add a
        namespace to urns miss those inside aspects that are JSON text, and no two things share a GUID.
        """
        if not self.visible(urn):
            return None
        known = self.terms.get(urn) or self.terms.get(self.guids.get(last_part(urn), ""))
        if known is not None:
            return known
        name = self.name(urn)
        return TermLink(id=urn, name=name) if name else None

    def path(self, urn: str) -> tuple[str, ...]:
        """The names from the outermost holder down to the urn itself, removed and nameless ones left out."""
        return tuple(name for step in reversed(ancestry(urn, self.parents)) if (name := self.name(step)))


def ancestry(urn: str, parents: Mapping[str, str]) -> list[str]:
    """The urn, what holds it, what holds that, ...; a circle ends where it closes."""
    steps = [urn]
    while (above := parents.get(steps[-1])) is not None and above not in steps:
        steps.append(above)
    return steps
