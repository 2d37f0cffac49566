"""The interchange form: what is read, what is repaired, what goes to quarantine, and how a listing ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from services.catalog.model import Asset, CatalogRecord
from services.catalog.sources import jsonl
from services.catalog.sources.base import PAGE_SIZE, Ending, Outcome, Page, Rejection
from services.catalog.sources.jsonl import JsonLinesSource
from services.errors import SourceError

HEAD = '"id": "a", "object_type": "table", "name": "orders"'


def listed(path: Path, *, overlay: bool = False) -> tuple[list[Page], Ending]:
    *pages, ending = JsonLinesSource("shop", path, overlay).listing()
    assert isinstance(ending, Ending)
    return [page for page in pages if isinstance(page, Page)], ending


def read(
    tmp_path: Path, content: str | bytes, *, overlay: bool = False
) -> tuple[list[CatalogRecord], list[Rejection], Ending]:
    path = tmp_path / "assets.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    pages, ending = listed(path, overlay=overlay)
    records = [record for page in pages for record in page.records]
    return records, [item for page in pages for item in page.rejected], ending


def line(**fields: Any) -> str:
    return json.dumps({"id": "a", "object_type": "table", "name": "orders", **fields}) + "\n"


def test_lines_become_records_in_their_order_and_the_end_is_complete(tmp_path: Path) -> None:
    records, rejected, ending = read(tmp_path, line(id="b") + "\n   \n" + line(id="a") + line(id="c").rstrip("\n"))
    assert [record.id for record in records] == ["b", "a", "c"]
    assert rejected == []
    assert ending == Ending(Outcome.COMPLETE)


def test_a_byte_order_mark_and_windows_line_ends_are_no_content(tmp_path: Path) -> None:
    records, rejected, _ = read(tmp_path, b"\xef\xbb\xbf" + line(id="a").replace("\n", "\r\n").encode() * 2)
    assert [record.id for record in records] == ["a", "a"]
    assert rejected == []


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("{", "not JSON"),
        ('{"id": "a", "object_type": "table", "na', "not JSON"),
        ("[1, 2]", "expected a JSON object, got list"),
        ("null", "expected a JSON object, got NoneType"),
        ('"id"', "expected a JSON object, got str"),
        ("{}", "id: Field required"),
        ('{"id": "", "object_type": "table", "name": "x"}', "id: String should have at least 1 character"),
        ('{"id": 5, "object_type": "table", "name": "x"}', "id: Input should be a valid string"),
        ('{"id": "a", "object_type": "view", "name": "x"}', "object_type: Input should be 'table'"),
        ('{"id": "a", "object_type": "table"}', "name: Field required"),
        (f'{{{HEAD}, "tags": ["a"]}}', "tags.0: Input should be a valid tuple"),
        (f'{{{HEAD}, "columns": [{{"data_type": "int"}}]}}', "columns.0.name: Field required"),
        (f'{{{HEAD}, "columns": [{{"name": "c", "top_values": 5}}]}}', "columns.0.top_values"),
        (f'{{{HEAD}, "columns": [{{"name": "c", "top_values": "abc"}}]}}', "columns.0.top_values"),
        (f'{{{HEAD}, "rating": 6}}', "rating: Input should be less than or equal to 5"),
        (f'{{{HEAD}, "data_quality_score": "high"}}', "data_quality_score: Input should be a valid number"),
        (f'{{{HEAD}, "rating": NaN}}', "NaN is no number"),
        (f'{{{HEAD}, "foo": -Infinity}}', "-Infinity is no number"),
        (f'{{{HEAD}, "rating": {"1" * 5000}}}', "thousands of digits"),
        (f'{{{HEAD}, "extra": 5, "foo": 1}}', "extra: Input should be a valid dictionary"),
        (f'{{{HEAD}, "extra": ["a"], "foo": 1}}', "extra: Input should be a valid dictionary"),
        (f'{{{HEAD}, "foo": {"[" * 100_000}{"]" * 100_000}}}', "nested too deeply"),
        ('{"id": "a\\u0000", "object_type": "table", "name": "x"}', "id: has a NUL or a lone surrogate"),
        ('{"id": "a\\ud800", "object_type": "table", "name": "x"}', "id: has a NUL or a lone surrogate"),
        ('{"id": "' + "é" * 1025 + '", "object_type": "table", "name": "x"}', "at most 2048 bytes"),
        (f'{{{HEAD}, "updated_at": "yesterday"}}', "updated_at"),
        (f'{{{HEAD}, "certification": {{"status": "blessed"}}}}', "certification.status"),
    ],
)
def test_a_line_that_is_no_asset_is_rejected_with_its_number_and_reason(tmp_path: Path, bad: str, said: str) -> None:
    records, rejected, ending = read(tmp_path, line(id="first") + bad + "\n" + line(id="last"))
    assert [record.id for record in records] == ["first", "last"]
    assert [item.record_ref for item in rejected] == ["line 2"]
    assert said in rejected[0].error
    assert rejected[0].payload.startswith(bad[:50])
    assert len(rejected[0].payload) <= 10_001
    assert ending.outcome is Outcome.COMPLETE


def test_bytes_that_are_not_utf8_are_rejected_and_the_next_line_is_read(tmp_path: Path) -> None:
    records, rejected, _ = read(tmp_path, b"\xff\xfe{\n" + line().encode())
    assert len(records) == 1
    assert rejected[0].error == "not UTF-8 at byte 0"


def test_a_line_beyond_the_limit_is_skipped_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "LINE_BYTES_LIMIT", 200)
    records, rejected, _ = read(tmp_path, line(id="a") + line(id="long", title="x" * 1000) + line(id="c"))
    assert [record.id for record in records] == ["a", "c"]
    assert [item.record_ref for item in rejected] == ["line 2"]


def test_unknown_keys_are_kept_in_extra_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "assets.jsonl"
    path.write_text(line(colour="red", columns=[{"name": "c", "unit": "EUR"}]) + line(colour="blue"))
    (page,), _ = listed(path)
    assert page.records[0].extra == {"colour": "red"}
    assert page.records[0].columns[0].extra == {"unit": "EUR"}
    assert page.notices == (
        "unknown key 'colour' kept in extra (2 lines)",
        "unknown key 'columns.unit' kept in extra (1 lines)",
    )


@pytest.mark.parametrize("siblings", [True, 5, "orders", {"a": 1}, ["b", 5, None]])
def test_siblings_are_ids_in_a_list_and_anything_else_is_only_kept(tmp_path: Path, siblings: Any) -> None:
    (record,), _, _ = read(tmp_path, line(siblings=siblings))
    assert isinstance(record, Asset)
    assert record.siblings == (("b",) if isinstance(siblings, list) else ())
    assert record.payload()["extra"]["siblings"] == siblings


def test_nul_and_lone_surrogates_in_values_are_replaced_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "assets.jsonl"
    bad = r'{"id": "a", "object_type": "table", "name": "o\u0000", "title": "t\udfff", "k\ud800": 1}'
    path.write_text(bad + "\n")
    (page,), _ = listed(path)
    assert page.rejected == ()
    assert page.records[0].name == "o\ufffd"
    assert page.records[0].title == "t\ufffd"
    assert page.records[0].extra == {"k\ufffd": 1}
    assert "NUL or lone surrogate replaced by U+FFFD (1 lines)" in page.notices


def test_a_pair_of_surrogates_is_one_character_and_stays(tmp_path: Path) -> None:
    records, _, _ = read(tmp_path, r'{"id": "\ud83d\ude00", "object_type": "table", "name": "x"}')
    assert records[0].id == "\U0001f600"


def test_an_overlay_line_needs_no_more_than_an_id(tmp_path: Path) -> None:
    records, rejected, _ = read(tmp_path, '{"id": "a"}\n{"title": "no id"}\n', overlay=True)
    assert [record.id for record in records] == ["a"]
    assert records[0].object_type is None
    assert "id: Field required" in rejected[0].error


def test_an_empty_file_is_a_failed_listing_and_no_empty_catalog(tmp_path: Path) -> None:
    for content in ("", "\n\n", "   \n"):
        records, rejected, ending = read(tmp_path, content)
        assert (records, rejected) == ([], [])
        assert ending.outcome is Outcome.FAILED
        assert "is empty" in ending.detail


def test_a_file_of_nothing_but_bad_lines_was_listed_to_its_end(tmp_path: Path) -> None:
    records, rejected, ending = read(tmp_path, "x\ny\n")
    assert (records, len(rejected), ending.outcome) == ([], 2, Outcome.COMPLETE)


def test_pages_are_cut_by_lines(tmp_path: Path) -> None:
    path = tmp_path / "assets.jsonl"
    path.write_text("".join(line(id=str(number)) for number in range(PAGE_SIZE + 1)) + "x\n")
    pages, _ = listed(path)
    assert [(len(page.records), len(page.rejected)) for page in pages] == [(PAGE_SIZE, 0), (1, 1)]


def test_pages_of_large_lines_are_cut_by_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "PAGE_BYTES_LIMIT", 10_000)
    path = tmp_path / "assets.jsonl"
    path.write_text("".join(line(id=str(number), title="x" * 4000) for number in range(7)))
    pages, _ = listed(path)
    assert [len(page.records) for page in pages] == [3, 3, 1]


@pytest.mark.parametrize("missing", [True, False])
def test_a_file_that_cannot_be_opened_names_the_source_and_the_path(tmp_path: Path, missing: bool) -> None:
    path = tmp_path / "nowhere.jsonl" if missing else tmp_path
    with pytest.raises(SourceError, match=rf"source 'shop': {path} cannot be read"):
        next(JsonLinesSource("shop", path).listing())
    with pytest.raises(SourceError, match=rf"source 'shop': {path} cannot be read"):
        JsonLinesSource("shop", path).probe()


def test_a_file_that_fails_while_it_is_read_ends_the_listing_as_failed() -> None:
    memory = Path("/proc/self/mem")  # opens, and its first page cannot be read
    if not memory.exists():
        pytest.skip("needs /proc")
    pages, ending = listed(memory)
    assert pages == []
    assert ending.outcome is Outcome.FAILED
    assert "cannot be read further" in ending.detail


def test_the_probe_counts_lines(tmp_path: Path) -> None:
    path = tmp_path / "assets.jsonl"
    path.write_text(line() + "\n" + line())
    assert JsonLinesSource("shop", path).probe() == f"2 lines in {path}"


def test_the_end_of_the_calendar_west_of_greenwich_is_a_moment_in_utc(tmp_path: Path) -> None:
    never = "9999-12-31T23:59:59-05:00"
    records, rejected, _ = read(tmp_path, line(certification={"status": "certified", "expires_at": never}))
    assert rejected == []
    assert records[0].payload()["certification"]["expires_at"] == "9999-12-31T23:59:59Z"


@pytest.mark.parametrize(
    ("bad", "asset_id"),
    [
        ('{"id": "b", "object_type": "chair", "name": "b"}', "b"),
        ('{"object_type": "table", "name": "b"}', None),
        ('{"id": 7, "object_type": "table", "name": "b"}', None),
        (r'{"id": "b\u0000", "object_type": "table", "name": "b"}', None),
        ('{"id": "b"', None),
    ],
)
def test_a_rejection_names_its_asset_where_the_id_could_be_read(tmp_path: Path, bad: str, asset_id: str | None) -> None:
    _, rejected, _ = read(tmp_path, bad + "\n")
    assert [item.asset_id for item in rejected] == [asset_id]
