"""Cutting the texts to embed into batches: ranges of keys, never the texts themselves."""

from __future__ import annotations

from collections.abc import Iterable

from services.index.store import EmbedBatch

BATCHES_LIMIT = 500  # what a scheduler maps; beyond it batches grow


def cut_batches(missing: Iterable[tuple[str, int, int]], batch_texts: int) -> list[EmbedBatch]:
    """Batches of about `batch_texts` texts each, at most `BATCHES_LIMIT`; one asset is never cut in two.

    `missing` is (source, asset key, texts without a vector), ordered by source and key. Memory is bounded by the
    number of batches: when there are too many, neighbours of one source are joined and the size doubles.
    """
    batches: list[EmbedBatch] = []
    size = batch_texts
    for source, key, texts in missing:
        last = batches[-1] if batches else None
        if last is not None and last.source == source and last.texts + texts <= size:
            batches[-1] = EmbedBatch(last.number, source, last.first_key, key, last.texts + texts)
            continue
        batches.append(EmbedBatch(0, source, key, key, texts))
        if len(batches) > BATCHES_LIMIT:
            size *= 2
            batches = _joined(batches, size)
    return [
        EmbedBatch(number, batch.source, batch.first_key, batch.last_key, batch.texts)
        for number, batch in enumerate(batches, start=1)
    ]


def _joined(batches: list[EmbedBatch], size: int) -> list[EmbedBatch]:
    joined: list[EmbedBatch] = []
    for batch in batches:
        last = joined[-1] if joined else None
        if last is not None and last.source == batch.source and last.texts + batch.texts <= size:
            joined[-1] = EmbedBatch(0, batch.source, last.first_key, batch.last_key, last.texts + batch.texts)
        else:
            joined.append(batch)
    return joined
