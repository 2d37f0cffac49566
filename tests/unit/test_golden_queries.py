"""Files of golden queries: what is read, and what is said of a wrong line."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.evaluation.golden import GoldenFileError, GoldenQuery, ask_all, read_queries
from services.retrieval.model import Mode, Result, SearchAnswer, SearchRequest


def _write(folder: Path, text: str) -> Path:
    file = folder / "queries.jsonl"
    file.write_text(text, encoding="utf-8")
    return file


def test_lines_are_queries_and_other_keys_are_let_through(tmp_path: Path) -> None:
    first = '{"qid": "1", "question": "a?", "gold": ["x"], "database": "d"}'
    lines = first + '\n\n{"qid": "2", "question": "b?", "gold": ["y"]}'
    assert [query.qid for query in read_queries(_write(tmp_path, lines))] == ["1", "2"]


def test_only_line_feeds_end_a_line(tmp_path: Path) -> None:
    first = '{"qid": "1", "question": "a\u2028b\u0085c?", "gold": ["x"]}'
    second = '{"qid": "2", "question": "b?", "gold": ["y"]}'
    queries = read_queries(_write(tmp_path, f"{first}\r\n{second}"))
    assert [query.question for query in queries] == ["a\u2028b\u0085c?", "b?"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"qid": "1", "question": "a?", "gold": ["x"]}\n{"qid"', "line 2: not JSON"),
        ('{"qid": "1", "question": "a?", "gold": []}', "line 1: gold"),
        ('{"qid": "1", "gold": ["x"]}', "line 1: question"),
        ("[]", "line 1: line"),
        ("\n", "has no query"),
        (
            '{"qid": "1", "question": "a?", "gold": ["x"]}\n{"qid": "1", "question": "b?", "gold": ["y"]}',
            "line 2: .*twice",
        ),
        ('{"qid": "1", "question": "a?", "gold": ["x\\u0000"]}', r"line 1: gold\.0: .*NUL"),
        ('{"qid": "1", "question": " \\n", "gold": ["x"]}', "line 1: question: .*is empty"),
        (f'{{"qid": "1", "question": "{"a?" * 8193}", "gold": ["x"]}}', "line 1: question: .*longer than 16384 bytes"),
        pytest.param(f'{{"qid": {"9" * 5000}}}', "line 1: .*impossible value", id="too many digits"),
        pytest.param("[" * 100_000, "line 1: .*impossible value", id="too deep"),
        ('{"qid": "\\ud800", "question": "a?", "gold": ["x"]}', "line 1: qid: .*surrogate"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(GoldenFileError, match=said):
        read_queries(_write(tmp_path, text))


def test_a_query_is_another_one_when_its_question_or_its_gold_is_another() -> None:
    query = GoldenQuery(qid="1", question="a?", gold=("x", "y"))
    assert query.digest == GoldenQuery(qid="1", question="a?", gold=("y", "x", "x")).digest
    others = [{"qid": "2"}, {"question": "b?"}, {"gold": ("x",)}]
    assert len({query.digest, *(query.model_copy(update=other).digest for other in others)}) == 4


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(GoldenFileError, match=r"nothing\.jsonl cannot be read"):
        read_queries(tmp_path / "nothing.jsonl")


def test_every_asset_counts_for_itself_and_nothing_is_refused(tmp_path: Path) -> None:
    asked: list[SearchRequest] = []

    def ask(request: SearchRequest) -> SearchAnswer:
        asked.append(request)
        result = Result(
            rank=1,
            id="x",
            object_type="table",
            name="x",
            title=None,
            location=(),
            url=None,
            final_score=0.1,
            matched=None,
        )
        return SearchAnswer(
            request_id="r", index_version=1, data_age_seconds=None, mode=Mode.ANALYSIS, results=(result,), took_ms=1.0
        )

    queries = read_queries(_write(tmp_path, '{"qid": "1", "question": "a?", "gold": ["x"]}'))
    judged = list(ask_all(queries, ask, sources=["s"], depth=100))
    assert judged[0].ranked == ("x",)
    request = asked[0]
    assert (request.limit, request.min_relevance, request.group_siblings) == (50, 0.0, False)
    assert request.filters.source == ("s",)
