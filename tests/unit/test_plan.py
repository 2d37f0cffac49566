"""Batches of texts to embed: ranges of keys that cover everything once."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from services.index.plan import BATCHES_LIMIT, cut_batches
from services.index.store import EmbedBatch

Missing = list[tuple[str, int, int]]


def covered(batches: list[EmbedBatch], missing: Missing) -> list[list[tuple[str, int, int]]]:
    """For each batch, what lies in its range."""
    return [
        [item for item in missing if item[0] == batch.source and batch.first_key <= item[1] <= batch.last_key]
        for batch in batches
    ]


def test_nothing_missing_needs_no_batch() -> None:
    assert cut_batches([], 10) == []


def test_neighbours_share_a_batch_up_to_its_size() -> None:
    missing = [("shop", 1, 4), ("shop", 5, 4), ("shop", 7, 4), ("team", 2, 1)]
    assert cut_batches(missing, 8) == [
        EmbedBatch(1, "shop", 1, 5, 8),
        EmbedBatch(2, "shop", 7, 7, 4),
        EmbedBatch(3, "team", 2, 2, 1),
    ]


def test_an_asset_larger_than_a_batch_is_one_of_its_own() -> None:
    assert cut_batches([("shop", 1, 1), ("shop", 2, 50), ("shop", 3, 1)], 8) == [
        EmbedBatch(1, "shop", 1, 1, 1),
        EmbedBatch(2, "shop", 2, 2, 50),
        EmbedBatch(3, "shop", 3, 3, 1),
    ]


def test_batches_grow_when_there_would_be_too_many() -> None:
    missing = [("shop", key, 3) for key in range(20 * BATCHES_LIMIT)]
    batches = cut_batches(missing, 3)
    assert BATCHES_LIMIT / 2 <= len(batches) <= BATCHES_LIMIT
    assert sum(batch.texts for batch in batches) == 3 * len(missing)
    assert max(batch.texts for batch in batches) <= 3 * 64


def test_more_sources_than_batches_are_allowed_still_end() -> None:
    batches = cut_batches([(f"source-{number:04}", 1, 1) for number in range(BATCHES_LIMIT + 100)], 1)
    assert len(batches) == BATCHES_LIMIT + 100


def test_the_missing_are_read_once_and_not_kept() -> None:
    read = 0

    def missing() -> Iterator[tuple[str, int, int]]:
        nonlocal read
        for key in range(1000):
            read += 1
            yield "shop", key, 1

    assert sum(batch.texts for batch in cut_batches(missing(), 100)) == read == 1000


sources = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60), st.integers(1, 9)), max_size=60)


@given(sources, st.integers(1, 20))
def test_every_asset_lies_in_one_batch(found: Missing, batch_texts: int) -> None:
    missing = sorted({(source, key): (source, key, texts) for source, key, texts in found}.values())
    batches = cut_batches(missing, batch_texts)
    parts = covered(batches, missing)
    assert [item for part in parts for item in part] == missing
    assert [sum(texts for _, _, texts in part) for part in parts] == [batch.texts for batch in batches]
    assert [batch.number for batch in batches] == list(range(1, len(batches) + 1))
    assert all(batch.texts <= batch_texts or batch.first_key == batch.last_key for batch in batches)
