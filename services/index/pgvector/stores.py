"""All stores of one database together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from services.index.pgvector.database import Database, PgDatabase
from services.index.pgvector.drafts import PgDraftStore
from services.index.pgvector.embeddings import PgEmbeddingStore
from services.index.pgvector.history import PgHistoryStore
from services.index.pgvector.records import PgRecordStore
from services.index.pgvector.runs import PgRunStore, PgSourceStore
from services.index.pgvector.scores import PgScoreStore
from services.index.store import IndexStores


class PgIndexStores:
    """See `services.index.store.IndexStores`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.runs = PgRunStore(database)
        self.sources = PgSourceStore(database)
        self.records = PgRecordStore(database)
        self.drafts = PgDraftStore(database)
        self.embeddings = PgEmbeddingStore(database)
        self.scores = PgScoreStore(database)
        self.history = PgHistoryStore(database)

    @contextmanager
    def rehearsal(self) -> Iterator[IndexStores]:
        if not isinstance(self._database, PgDatabase):
            yield self
            return
        with self._database.rehearsal() as rehearsal:
            yield PgIndexStores(rehearsal)
