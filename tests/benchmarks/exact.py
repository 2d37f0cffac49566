"""What a search by vectors should have found, computed over all of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import psycopg
from pgvector.psycopg import register_vector

from services.index.store import Vectors
from services.retrieval.ranking import BEST_CHUNK_SHARE
from tests.benchmarks.filling import VERSION

Keys = npt.NDArray[np.int64]
ROWS_AT_ONCE = 20_000


@dataclass(frozen=True)
class StoredVectors:
    """Every vector of the index, by asset key and chunk number."""

    keys: Keys
    numbers: Keys
    vectors: Vectors

    def nearest_chunks(self, query: Vectors, limit: int) -> list[int]:
        """Rows of the nearest chunks, nearest first."""
        return best(self.vectors @ query, limit)

    def similarities(self, query: Vectors) -> tuple[Keys, npt.NDArray[np.float64]]:
        """Each asset that has vectors, and its vector similarity before clipping."""
        starts = np.flatnonzero(np.diff(self.keys, prepend=-1))
        chunks = np.diff(starts, append=len(self.keys))
        cosines = (self.vectors @ query).astype(np.float64)
        means = np.add.reduceat(cosines, starts) / chunks
        return self.keys[starts], BEST_CHUNK_SHARE * np.maximum.reduceat(cosines, starts) + (
            1 - BEST_CHUNK_SHARE
        ) * means


def stored_vectors(uri: str) -> StoredVectors:
    with psycopg.connect(uri, options="-c search_path=vouch,public") as connection:
        register_vector(connection)
        (rows,) = connection.execute(f"SELECT count(*) FROM embedding_{VERSION}").fetchone() or (0,)
        keys, numbers = np.empty(rows, np.int64), np.empty(rows, np.int64)
        vectors: Vectors | None = None
        with connection.cursor(name="vectors", binary=True) as cursor:
            cursor.itersize = ROWS_AT_ONCE
            cursor.execute(f"SELECT asset_key, number, embedding FROM embedding_{VERSION} ORDER BY asset_key, number")
            for place, (key, number, vector) in enumerate(cursor):
                if vectors is None:
                    vectors = np.empty((rows, vector.dimensions()), np.float32)
                keys[place], numbers[place], vectors[place] = key, number, vector.to_numpy()
    return StoredVectors(keys, numbers, np.empty((0, 0), np.float32) if vectors is None else vectors)


def best(values: npt.NDArray[np.floating], limit: int) -> list[int]:
    """Places of the largest values, largest first."""
    some = np.argpartition(-values, min(limit, len(values)) - 1)[:limit]
    return [int(place) for place in some[np.argsort(-values[some], kind="stable")]]


def recall(found: Iterable[Collection[object]], wanted: Iterable[Collection[object]]) -> float:
    """The mean share of what was wanted that was found."""
    shares = [len(set(got) & set(want)) / len(want) for got, want in zip(found, wanted, strict=True) if want]
    return float(np.mean(shares))
