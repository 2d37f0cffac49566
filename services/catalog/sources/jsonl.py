"""The interchange form: one asset per line, UTF-8 JSON, streamed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from services.catalog.model import CatalogRecord
from services.catalog.sources.base import PAGE_SIZE, Ending, Outcome, Page, Rejection
from services.catalog.sources.validation import InvalidRecord, read_record, rejection
from services.errors import SourceError

LINE_BYTES_LIMIT = 64 * 1024 * 1024
PAGE_BYTES_LIMIT = 16 * 1024 * 1024  # a page of very large lines is cut early, so that memory stays bounded
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class JsonLinesSource:
    """A file of JSON Lines. A line that is no asset is rejected with its number; the others go on.

    The listing ends COMPLETE when the file was read to its end and held at least one line, else FAILED: an empty file
    is not taken for an empty catalog.
    """

    name: str
    path: Path
    overlay: bool = False

    def listing(self) -> Iterator[Page | Ending]:
        lines = 0
        trouble = ""
        page = _PageBuilder(self.overlay)
        with self._open() as stream:
            try:
                for number, line in _lines(stream):
                    lines += 1
                    page.add(number, line)
                    if page.full:
                        yield page.build()
                        page = _PageBuilder(self.overlay)
            except OSError as error:
                trouble = f"{self.path} cannot be read further, after {lines} lines: {error.strerror}"
        if page.lines:
            yield page.build()
        if not lines and not trouble:
            trouble = f"{self.path} is empty; write its assets, one per line"
        yield Ending(Outcome.FAILED, trouble) if trouble else Ending(Outcome.COMPLETE)

    def probe(self) -> str:
        with self._open() as stream:
            count = sum(1 for _ in _lines(stream))
        return f"{count} lines in {self.path}"

    def _open(self) -> BinaryIO:
        try:
            return self.path.open("rb")
        except OSError as error:
            raise SourceError(f"source {self.name!r}: {self.path} cannot be read: {error.strerror}") from error


class _PageBuilder:
    def __init__(self, overlay: bool) -> None:
        self._overlay = overlay
        self._records: list[CatalogRecord] = []
        self._rejected: list[Rejection] = []
        self._notices: Counter[str] = Counter()
        self._bytes = 0
        self.lines = 0

    @property
    def full(self) -> bool:
        return self.lines >= PAGE_SIZE or self._bytes >= PAGE_BYTES_LIMIT

    def add(self, number: int, line: bytes) -> None:
        self.lines += 1
        self._bytes += len(line)
        try:
            record, notices = read_record(_decode(line), overlay=self._overlay)
        except InvalidRecord as error:
            self._rejected.append(rejection(f"line {number}", error, line[:10_000].decode(errors="replace")))
            return
        self._records.append(record)
        self._notices.update(notices)

    def build(self) -> Page:
        notices = tuple(f"{text} ({count} lines)" for text, count in sorted(self._notices.items()))
        return Page(tuple(self._records), tuple(self._rejected), notices)


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """(number from 1, bytes) of every line that is not blank. A line beyond the limit comes cut, and so is no JSON."""
    number = 0
    while line := stream.readline(LINE_BYTES_LIMIT):
        number += 1
        if len(line) == LINE_BYTES_LIMIT and not line.endswith(b"\n"):
            _skip_rest(stream)
        if number == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)
        if line.strip():
            yield number, line


def _skip_rest(stream: BinaryIO) -> None:
    while (more := stream.readline(LINE_BYTES_LIMIT)) and not more.endswith(b"\n"):
        pass


def _decode(line: bytes) -> object:
    try:
        return json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise InvalidRecord(f"not UTF-8 at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise InvalidRecord(f"not JSON: {error.msg} at column {error.colno}") from error
    except RecursionError as error:
        raise InvalidRecord("not an asset: nested too deeply") from error
    except ValueError as error:  # last: the two above are of its kind
        raise InvalidRecord("not an asset: holds a whole number of thousands of digits") from error


def _refuse_constant(name: str) -> float:
    raise InvalidRecord(f"not JSON: {name} is no number")
