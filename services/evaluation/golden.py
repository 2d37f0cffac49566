"""Questions with known answers, and asking them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from services.access.principal import LOCAL_ADMINISTRATOR
from services.errors import PermanentError
from services.evaluation.metrics import Judged
from services.retrieval.model import LIMIT_MAX, Filters, SearchAnswer, SearchRequest

Ask = Callable[[SearchRequest], SearchAnswer]


class GoldenFileError(PermanentError):
    """A file of golden queries is wrong; names the line and the key."""


class GoldenQuery(BaseModel):
    """One line of a queries file; keys that only describe the question are let through."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    qid: str
    question: str = Field(min_length=1)
    gold: tuple[str, ...] = Field(min_length=1)


def read_queries(path: Path) -> tuple[GoldenQuery, ...]:
    """The queries of a JSON Lines file. Raises GoldenFileError."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise GoldenFileError(f"queries file {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise GoldenFileError(f"queries file {path} is not UTF-8") from error
    queries = [_query(path, number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not queries:
        raise GoldenFileError(f"queries file {path} has no query; a line is {{qid, question, gold: [asset id]}}")
    return tuple(queries)


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
