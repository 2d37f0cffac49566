"""Questions with known answers, and asking them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from services.access.principal import LOCAL_ADMINISTRATOR
from services.errors import PermanentError
from services.evaluation.metrics import Judged
from services.retrieval.model import LIMIT_MAX, QUERY_BYTES_LIMIT, Filters, SearchAnswer, SearchRequest
from services.text.clean import scrub

Ask = Callable[[SearchRequest], SearchAnswer]


class GoldenFileError(PermanentError):
    """A file of golden queries is wrong; names the line and the key."""


def _storable(text: str) -> str:
    if scrub(text)[0] != text:
        raise ValueError("holds a NUL character or half a surrogate pair")
    return text


def _askable(question: str) -> str:
    if not question.strip():
        raise ValueError("is empty")
    if len(question.encode()) > QUERY_BYTES_LIMIT:
        raise ValueError(f"is longer than {QUERY_BYTES_LIMIT} bytes")
    return question


Text = Annotated[str, AfterValidator(_storable)]


class GoldenQuery(BaseModel):
    """One line of a queries file; keys that only describe the question are let through."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    qid: Text
    question: Annotated[Text, AfterValidator(_askable)]
    gold: tuple[Text, ...] = Field(min_length=1)

    @property
    def digest(self) -> str:
        """SHA-256, in hex, over what is asked and what is expected; the order of the gold ids does not matter."""
        said = json.dumps([self.qid, self.question, sorted(set(self.gold))], ensure_ascii=False)
        return hashlib.sha256(said.encode()).hexdigest()


def read_queries(path: Path) -> tuple[GoldenQuery, ...]:
    """The queries of a JSON Lines file, each qid once. Raises GoldenFileError."""
    try:
        # Not splitlines: a JSON string may hold characters that end a line elsewhere, as U+2028.
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise GoldenFileError(f"queries file {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise GoldenFileError(f"queries file {path} is not UTF-8") from error
    queries: dict[str, GoldenQuery] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        query = _query(path, number, line)
        if query.qid in queries:
            raise GoldenFileError(f"queries file {path}, line {number}: the qid {query.qid!r} stands twice")
        queries[query.qid] = query
    if not queries:
        raise GoldenFileError(f"queries file {path} has no query; a line is {{qid, question, gold: [asset id]}}")
    return tuple(queries.values())


def question_set(queries: Iterable[GoldenQuery]) -> str:
    """SHA-256, in hex, over all queries; the order of the lines does not matter."""
    return hashlib.sha256("".join(sorted(query.digest for query in queries)).encode()).hexdigest()


def ask_all(queries: Iterable[GoldenQuery], ask: Ask, *, sources: Sequence[str], depth: int) -> Iterator[Judged]:
    """Every query's ranking, `depth` results deep at most. Grouping and refusals are off: every asset counts."""
    for query in queries:
        request = SearchRequest(
            query=query.question,
            limit=min(depth, LIMIT_MAX),
            filters=Filters(source=tuple(sources)),
            min_relevance=0.0,
            group_siblings=False,
        )
        answer = ask(request)
        yield Judged(query.qid, query.gold, tuple(result.id for result in answer.results))


def as_administrator(search: Callable[..., SearchAnswer]) -> Ask:
    """Asks with the eyes of an administrator: quality is measured over all that is published."""
    return lambda request: search(request, LOCAL_ADMINISTRATOR, "evaluate")


def _query(path: Path, number: int, line: str) -> GoldenQuery:
    try:
        return GoldenQuery.model_validate(json.loads(line))
    except json.JSONDecodeError as error:
        raise GoldenFileError(f"queries file {path}, line {number}: not JSON: {error.msg}") from error
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(map(str, fault["loc"])) or "line"
        raise GoldenFileError(f"queries file {path}, line {number}: {key}: {fault['msg']}") from None
    except (ValueError, RecursionError) as error:  # a number or a nesting beyond reading
        raise GoldenFileError(f"queries file {path}, line {number}: holds an impossible value: {error}") from error
