"""Reading exported MCPs: which files, which proposals win, what is rejected and what stops the listing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from services.catalog.model import CatalogRecord
from services.catalog.sources.base import PAGE_SIZE, Ending, Outcome, Page
from services.catalog.sources.datahub import DataHubFileSource
from services.errors import SourceError

TAG = "urn:li:tag:gold"
TABLE = "urn:li:dataset:(urn:li:dataPlatform:snowflake,shop.sales.orders,PROD)"


def mcp(urn: str, aspect: str, value: Any, change: str = "UPSERT") -> dict[str, Any]:
    return {"entityUrn": urn, "changeType": change, "aspectName": aspect, "aspect": {"json": value}}


def tag(name: str, urn: str = TAG) -> dict[str, Any]:
    return mcp(urn, "tagProperties", {"name": name})


def write(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def listed(path: Path, *, overlay: bool = False) -> tuple[list[Page], Ending]:
    *pages, ending = DataHubFileSource("hub", path, overlay).listing()
    assert isinstance(ending, Ending)
    assert all(isinstance(page, Page) for page in pages)
    return [page for page in pages if isinstance(page, Page)], ending


def records(path: Path, *, overlay: bool = False) -> list[CatalogRecord]:
    pages, ending = listed(path, overlay=overlay)
    assert ending.outcome is Outcome.COMPLETE
    assert [page.rejected for page in pages if page.rejected] == []
    return [record for page in pages for record in page.records]


def rejections(path: Path) -> list[tuple[str, str]]:
    return [(item.record_ref, item.error) for page in listed(path)[0] for item in page.rejected]


class TestFiles:
    def test_a_single_array(self, tmp_path: Path) -> None:
        assert [record.name for record in records(write(tmp_path / "a.json", [tag("Gold")]))] == ["Gold"]

    def test_a_single_proposal_that_is_not_in_an_array(self, tmp_path: Path) -> None:
        assert [record.name for record in records(write(tmp_path / "a.json", tag("Gold")))] == ["Gold"]

    def test_the_index_gives_the_files_and_their_order(self, tmp_path: Path) -> None:
        write(tmp_path / "a.json", [tag("second")])
        write(tmp_path / "b.json", [tag("first")])
        write(tmp_path / "left-out.json", [tag("third")])
        write(tmp_path / "index.json", {"version": "4", "files": [{"path": "b.json"}, {"path": "a.json"}]})

        assert [record.name for record in records(tmp_path)] == ["second"]

    def test_without_an_index_all_files_by_name(self, tmp_path: Path) -> None:
        write(tmp_path / "b.json", [tag("second")])
        write(tmp_path / "a.json", [tag("first")])
        (tmp_path / "notes.txt").write_text("no proposal")

        assert [record.name for record in records(tmp_path)] == ["second"]

    def test_json_lines_with_a_byte_order_mark_and_blank_lines(self, tmp_path: Path) -> None:
        path = tmp_path / "a.jsonl"
        path.write_text("\ufeff" + json.dumps(tag("Gold")) + "\n\n" + json.dumps(tag("Red", "urn:li:tag:red")))

        assert [record.name for record in records(path)] == ["Gold", "Red"]

    @pytest.mark.parametrize("listed_file", ["missing.json", "../outside.json"])
    def test_an_index_may_list_only_files_of_its_folder(self, tmp_path: Path, listed_file: str) -> None:
        write(tmp_path / "outside.json", [tag("Gold")])
        folder = tmp_path / "export"
        folder.mkdir()
        write(folder / "index.json", {"files": [{"path": listed_file}]})

        with pytest.raises(SourceError, match=r"source 'hub': .*index.json lists .*is not a file of its folder"):
            listed(folder)

    def test_a_missing_path_and_an_empty_folder_name_the_path(self, tmp_path: Path) -> None:
        with pytest.raises(SourceError, match=r"no DataHub export at .*nowhere"):
            listed(tmp_path / "nowhere")
        with pytest.raises(SourceError, match=r"holds no \.json"):
            listed(tmp_path)

    def test_broken_json_names_file_and_position(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        path.write_text('[\n  {"entityUrn": }\n]')

        with pytest.raises(SourceError, match=r"a\.json is not JSON at line 2, column 17"):
            listed(path)
        with pytest.raises(SourceError, match=r"a\.json is not JSON"):
            DataHubFileSource("hub", path).probe()

    def test_json_lines_under_the_wrong_ending_are_told_apart(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        path.write_text(json.dumps(tag("Gold")) + "\n" + json.dumps(tag("Red")))

        with pytest.raises(SourceError, match=r"line 2, column 1.*\*\.jsonl"):
            listed(path)

    def test_a_file_that_is_not_utf8_names_the_byte(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        path.write_bytes(b'["\xff"]')

        with pytest.raises(SourceError, match="not UTF-8 at byte 2"):
            listed(path)

    def test_nothing_is_not_taken_for_an_empty_catalog(self, tmp_path: Path) -> None:
        pages, ending = listed(write(tmp_path / "a.json", []))

        assert [page.records for page in pages] == [()]
        assert ending.outcome is Outcome.FAILED


class TestProposals:
    def test_an_aspect_as_json_text_reads_like_one_as_an_object(self, tmp_path: Path) -> None:
        text = {"value": json.dumps({"name": "Gold"}), "contentType": "application/json"}
        proposal = {**tag(""), "aspect": text}

        assert [record.name for record in records(write(tmp_path / "a.json", [proposal]))] == ["Gold"]

    def test_the_last_proposal_of_an_aspect_wins_whole(self, tmp_path: Path) -> None:
        first = mcp(TAG, "tagProperties", {"name": "Old", "description": "gone with its aspect"})
        (record,) = records(write(tmp_path / "a.json", [first, tag("New")]))

        assert record.name == "New"
        assert record.attributes.description is None

    def test_deleting_an_aspect_takes_only_the_aspect(self, tmp_path: Path) -> None:
        owned = mcp(TAG, "ownership", {"owners": [{"owner": "urn:li:corpuser:finance-stewards"}]})
        (record,) = records(write(tmp_path / "a.json", [tag("Gold"), owned, mcp(TAG, "ownership", None, "DELETE")]))

        assert record.name == "Gold"
        assert record.governance_roles == ()

    @pytest.mark.parametrize("aspect", ["tagKey", None])
    def test_deleting_the_key_deletes_the_entity_until_it_is_set_again(
        self, tmp_path: Path, aspect: str | None
    ) -> None:
        deletion = {"entityUrn": TAG, "changeType": "DELETE", "aspectName": aspect}
        using = mcp(TABLE, "globalTags", {"tags": [{"tag": TAG}]})

        (table,) = records(write(tmp_path / "a.json", [tag("Gold"), using, deletion]))
        assert table.tags == ()
        owned = mcp(TAG, "ownership", {"owners": [{"owner": "urn:li:corpuser:finance-stewards"}]})
        again = records(write(tmp_path / "a.json", [tag("Gold"), owned, using, deletion, tag("Gold again")]))
        assert [record.name for record in again] == ["Gold again", "orders"]
        assert again[0].governance_roles == ()
        assert again[1].tags == (("Gold again",),)

    @pytest.mark.parametrize(
        ("proposal", "error"),
        [
            (17, "a proposal is an object, this is int"),
            ("text", "a proposal is an object, this is str"),
            ({"aspectName": "tagProperties", "aspect": {"json": {}}}, "entityUrn None is not an urn"),
            ({"entityUrn": "orders", "aspectName": "tagProperties", "aspect": {"json": {}}}, "'orders' is not an urn"),
            ({"entityUrn": "urn:li:tag:a\x00", "aspectName": "x", "aspect": {"json": {}}}, "cannot be stored"),
            ({**tag("x"), "aspectName": 3}, "aspectName 3"),
            ({**tag("x"), "aspect": None}, "is missing"),
            ({**tag("x"), "aspect": {"value": '{"name": "Go'}}, "is not JSON: Unterminated string"),
            ({**tag("x"), "aspect": {"value": "[]"}}, "should be an object, but is list"),
            ({**tag("x"), "changeType": "PATCH"}, "changeType 'PATCH'"),
            ({"proposedSnapshot": {}}, "metadata change event"),
        ],
    )
    def test_a_malformed_proposal_is_rejected_by_file_and_index_and_the_rest_goes_on(
        self, tmp_path: Path, proposal: Any, error: str
    ) -> None:
        path = write(tmp_path / "a.json", [tag("Gold"), proposal, tag("Red", "urn:li:tag:red")])
        pages, ending = listed(path)

        assert [record.name for page in pages for record in page.records] == ["Gold", "Red"]
        ((rejected,),) = [page.rejected for page in pages]
        assert rejected.record_ref == "a.json item 1"
        assert rejected.error.startswith("a.json item 1: ")
        assert error in rejected.error
        assert json.loads(rejected.payload) == proposal
        assert ending.outcome is Outcome.COMPLETE

    def test_a_malformed_proposal_does_not_undo_an_earlier_good_one(self, tmp_path: Path) -> None:
        bad = {**tag("x"), "aspect": {"value": "{"}}
        pages, _ = listed(write(tmp_path / "a.json", [tag("Gold"), bad]))

        assert [record.name for page in pages for record in page.records] == ["Gold"]

    def test_a_bad_line_of_json_lines_is_rejected_by_its_number(self, tmp_path: Path) -> None:
        path = tmp_path / "a.jsonl"
        path.write_text("\n".join([json.dumps(tag("Gold")), '{"entityUrn": "urn:', json.dumps(tag("Red"))]))

        ((place, error),) = rejections(path)
        assert place == "a.jsonl line 2"
        assert error.startswith("a.jsonl line 2 is not JSON")

    def test_unstorable_characters_are_replaced_and_reported(self, tmp_path: Path) -> None:
        pages, _ = listed(write(tmp_path / "a.json", [tag("Go\x00ld\ud800")]))

        assert [record.name for page in pages for record in page.records] == ["Go\ufffdld\ufffd"]
        assert pages[0].notices == ("NUL or lone surrogate replaced by U+FFFD (2 times)",)


class TestListing:
    def test_unknown_entity_types_are_counted_not_rejected(self, tmp_path: Path) -> None:
        unknown = [mcp(f"urn:li:mlModel:(urn:li:dataPlatform:x,m{n},PROD)", "mlModelProperties", {}) for n in (1, 2)]
        path = write(tmp_path / "a.json", [tag("Gold"), *unknown, mcp("urn:li:query:q", "queryProperties", {})])
        pages, _ = listed(path)

        assert pages[0].rejected == ()
        assert pages[0].notices == ("left out entities of types that are not mapped: mlModel (2), query (1)",)

    def test_an_aspect_of_another_shape_rejects_its_entity_and_names_field_and_place(self, tmp_path: Path) -> None:
        bad = mcp(TABLE, "ownership", {"owners": "finance-stewards"})
        path = write(tmp_path / "a.json", [tag("Gold"), bad])

        assert rejections(path) == [(TABLE, "a.json item 1: ownership.owners should be a list, but is str")]
        assert [record.name for page in listed(path)[0] for record in page.records] == ["Gold"]

    def test_a_record_that_fails_validation_names_the_field(self, tmp_path: Path) -> None:
        profile = {"fieldProfiles": [{"fieldPath": "id", "nullProportion": 7.0}]}
        schema = {"fields": [{"fieldPath": "id"}]}
        path = write(tmp_path / "a.json", [mcp(TABLE, "schemaMetadata", schema), mcp(TABLE, "datasetProfile", profile)])

        ((reference, error),) = rejections(path)
        assert reference == TABLE
        assert error.startswith("a.json item 1: null_ratio: ")

    def test_an_unreadable_helper_is_rejected_once_and_named_nowhere(self, tmp_path: Path) -> None:
        user = "urn:li:corpuser:sales-ops-lead"
        bad = mcp(user, "corpUserInfo", {"displayName": 5})
        owned = mcp(TABLE, "ownership", {"owners": [{"owner": user}]})
        pages, _ = listed(write(tmp_path / "a.json", [bad, owned]))

        assert [item.record_ref for page in pages for item in page.rejected] == [user]
        assert [record.governance_roles for page in pages for record in page.records] == [()]

    def test_pages_hold_at_most_a_page_of_records(self, tmp_path: Path) -> None:
        many = [tag(f"Tag {number}", f"urn:li:tag:{number}") for number in range(PAGE_SIZE + 1)]
        pages, _ = listed(write(tmp_path / "a.json", many))

        assert [len(page.records) for page in pages] == [PAGE_SIZE, 1]

    def test_links_that_nothing_names_are_reported(self, tmp_path: Path) -> None:
        term = "urn:li:glossaryTerm:0a1b2c3d-0000-4000-8000-123456789abc"
        path = write(tmp_path / "a.json", [mcp(TABLE, "glossaryTerms", {"terms": [{"urn": term}]})])
        pages, _ = listed(path)

        assert [record.terms for page in pages for record in page.records] == [()]
        assert pages[0].notices == (f"left out links to 1 things without a name here, such as {term}",)

    def test_an_overlay_says_nothing_that_it_only_guessed(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.json", [mcp(TABLE, "globalTags", {"tags": [{"tag": TAG}]})])

        (owned,) = records(path)
        (laid_over,) = records(path, overlay=True)
        assert (owned.name, owned.location) == ("orders", ("shop", "sales"))
        assert (laid_over.name, laid_over.location) == (None, ())
        assert laid_over.tags == (("gold",),)

    def test_probe_counts_what_is_visible_in_one_line(self, tmp_path: Path) -> None:
        gone = mcp("urn:li:tag:gone", "status", {"removed": True})
        told = DataHubFileSource("hub", write(tmp_path / "a.json", [tag("Gold"), gone])).probe()

        assert told == f"1 tags; 1 files in {tmp_path / 'a.json'}"
