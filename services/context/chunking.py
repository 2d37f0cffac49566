"""A narrative in pieces small enough to embed: cut where its structure allows, and nothing lost."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from services.context.narrative import Narrative, Section

CountTokens = Callable[[str], int]

_HEADING_SHARE = 3  # a heading may take a third of a chunk; a longer one is cut there and told whole in a section
_MOST_SECTIONS_NAMED = 3
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？])")
_CLAUSE_ENDS = (", ", "; ", ") ")


@dataclass(frozen=True)
class Chunk:
    """One piece of a narrative, numbered from 0; `section` names the sections whose text it holds.

    A piece of many sections is an "overview".
    """

    number: int
    section: str
    text: str


def chunk(
    narrative: Narrative, count_tokens: CountTokens, max_bytes: int = 1000, max_tokens: int = 256
) -> tuple[Chunk, ...]:
    """The chunks of a narrative, at least one; none overlap, and no word of the narrative is left out.

    Each starts with the heading and holds at most `max_bytes` UTF-8 bytes and `max_tokens` tokens; `count_tokens`
    must count what the model adds, too. Sections are packed together while they fit; one that does not fit alone is
    cut at entries, sentences, clauses, words, and in the end between code points. Raises ValueError when the limits
    leave no room for a piece of the heading and one code point.
    """
    share = _Room("", count_tokens, max_bytes // _HEADING_SHARE, max_tokens // _HEADING_SHARE)
    heading = next((piece.text for piece in share.cuts("names", narrative.heading)), "")
    sections = narrative.sections
    if heading != narrative.heading:
        sections = (Section("names", narrative.heading), *sections)
    if not sections:
        return (Chunk(0, "heading", heading),)
    room = _Room(f"{heading}. " if heading else "", count_tokens, max_bytes, max_tokens)
    pieces = (piece for section in sections for piece in room.pieces(section))
    texts = (text for group in room.groups(pieces) for text in room.joined(group))
    return tuple(Chunk(number, section, text) for number, (section, text) in enumerate(texts))


@dataclass(frozen=True)
class _Piece:
    """Text that fits into a chunk of its own, and what it takes up there beside the heading."""

    section: str
    text: str
    bytes: int
    tokens: int
    counted_in_place: bool = False  # behind the opening of its chunk, not by itself


class _Room:
    """What a chunk holds behind its opening."""

    def __init__(self, opening: str, count_tokens: CountTokens, max_bytes: int, max_tokens: int) -> None:
        self._opening = opening
        self._count_tokens = count_tokens
        self._max_tokens = max_tokens
        self._added = count_tokens("")
        self._bytes = max_bytes - len(opening.encode())
        self._opening_tokens = count_tokens(opening)
        self._tokens = max_tokens - self._opening_tokens

    def pieces(self, section: Section) -> Iterator[_Piece]:
        """The section as one piece if it fits, else as its entries, else sentences, else cuts; in order."""
        yield from self._whole(section.name, section.text) or self._entries(section)

    def _entries(self, section: Section) -> Iterator[_Piece]:
        for entry in filter(None, section.text.split("\n")):
            whole = self._whole(section.name, entry)
            yield from whole or self._sentences(section.name, entry)

    def _sentences(self, name: str, entry: str) -> Iterator[_Piece]:
        for text in filter(None, _SENTENCE_END.split(entry)):
            whole = self._whole(name, text)
            yield from whole or self.cuts(name, text)

    def _whole(self, name: str, text: str) -> tuple[_Piece, ...]:
        if len(text) > self._bytes:  # spares counting the tokens of what cannot fit
            return ()
        piece = _Piece(name, text, len(text.encode()), self._count_tokens(text) - self._added)
        return (piece,) if piece.bytes <= self._bytes and piece.tokens <= self._tokens else ()

    def cuts(self, name: str, text: str) -> Iterator[_Piece]:
        """The text in parts that fit, each as long as possible, ended at a clause or word where there is one."""
        start = 0
        while start < len(text):
            window = text[start : start + max(self._bytes, 0)]
            part, tokens = self._longest_start(window, start + len(window) == len(text))
            yield _Piece(name, part.strip(), len(part.encode()), tokens - self._opening_tokens, counted_in_place=True)
            start += len(part)
            while start < len(text) and text[start].isspace():
                start += 1

    def _longest_start(self, window: str, at_end: bool) -> tuple[str, int]:
        """The longest fitting start of a window of the text, and the tokens of a chunk of it.

        `at_end` when the text ends with the window.
        """
        part = window.encode()[: max(self._bytes, 0)].decode(errors="ignore")
        if not at_end or part != window:
            part = _ended_well(part)
        while part and (tokens := self._count_tokens(self._opening + part)) > self._max_tokens:
            shorter = min(len(part) * self._max_tokens // tokens, len(part) - 1)
            part = _ended_well(part[:shorter])
        if not part:
            raise ValueError("the limits of a chunk leave no room for a single character")
        return part, tokens

    def groups(self, pieces: Iterable[_Piece]) -> Iterator[list[_Piece]]:
        """Neighbouring pieces that fit into one chunk together, as many as possible from the first on."""
        group: list[_Piece] = []
        used_bytes = used_tokens = 0
        for piece in pieces:
            joint = 1 if group else 0  # the space between two pieces
            too_long = used_bytes + joint + piece.bytes > self._bytes or used_tokens + piece.tokens > self._tokens
            if group and too_long:
                yield group
                group, used_bytes, used_tokens, joint = [], 0, 0, 0
            group.append(piece)
            used_bytes += joint + piece.bytes
            used_tokens += piece.tokens
        if group:
            yield group

    def joined(self, group: list[_Piece]) -> Iterator[tuple[str, str]]:
        """Section names and text of the chunk, or of several.

        Counts of pieces add up to the count of the whole for most tokenizers but not for all, so it is counted once
        more, and a group that is too long after all is divided.
        """
        text = self._opening + " ".join(piece.text.replace("\n", " ") for piece in group)
        surely_fits = len(group) == 1 and group[0].counted_in_place
        if surely_fits or self._count_tokens(text) <= self._max_tokens:
            yield _section_name(group), text
        elif len(group) > 1:
            middle = len(group) // 2
            yield from self.joined(group[:middle])
            yield from self.joined(group[middle:])
        else:
            for piece in self.cuts(group[0].section, group[0].text.replace("\n", " ")):
                yield from self.joined([piece])


def _section_name(group: list[_Piece]) -> str:
    names = list(dict.fromkeys(piece.section for piece in group))
    return ", ".join(names) if len(names) <= _MOST_SECTIONS_NAMED else "overview"


def _ended_well(part: str) -> str:
    """The part up to its last clause in its second half, else up to its last word, else as it is."""
    clause = max(part.rfind(end) for end in _CLAUSE_ENDS)
    if clause > len(part) // 2:
        return part[: clause + 1]
    word = part.rstrip().rfind(" ") if not part.endswith(" ") else len(part)
    return part[:word] if word > 0 else part
