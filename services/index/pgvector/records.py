"""What the sources said, and the quarantine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from psycopg.types.json import Jsonb

from services.index.pgvector.database import Database
from services.index.pgvector.runs import fenced
from services.index.store import IncomingRecord, QuarantineEntry, StoredRecord
from services.sql_files import load_queries

QUERIES = load_queries("pgvector/queries/records.sql")
COPY_TYPES = ("text", "int8", "text", "bool", "bytea", "jsonb")
KEPT_PAYLOAD_CHARACTERS = 10_000


class PgRecordStore:
    """See `services.index.store.RecordStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def stored(self, keys: Sequence[int]) -> tuple[StoredRecord, ...]:
        with self._database.transaction() as connection:
            rows = connection.execute(QUERIES["stored_records"], {"keys": list(keys)}).fetchall()
        return tuple(StoredRecord(**row) for row in rows)

    def merge(self, run_id: str, source: str, *, overlay: bool, records: Sequence[IncomingRecord]) -> int:
        with fenced(self._database, run_id) as connection:
            connection.execute(QUERIES["incoming_records_table"])
            with connection.cursor().copy(QUERIES["incoming_records_copy"]) as copy:
                copy.set_types(COPY_TYPES)
                for record in records:
                    payload = Jsonb(record.payload)
                    copy.write_row((source, record.asset_key, record.id, overlay, record.payload_hash, payload))
            written = connection.execute(QUERIES["merge_records"]).rowcount
            # A rehearsal never commits, so the next page must not find this one.
            connection.execute("TRUNCATE incoming_record")
            return written

    def keys(self, source: str) -> npt.NDArray[np.int64]:
        with self._database.transaction() as connection, connection.cursor(name="record_keys") as cursor:
            cursor.execute(QUERIES["record_keys"], {"source": source})
            return np.fromiter((row["asset_key"] for row in cursor), dtype=np.int64)

    def quarantine(self, run_id: str, entries: Sequence[QuarantineEntry]) -> None:
        rows = [
            {**vars(entry), "run_id": run_id, "payload": entry.payload[:KEPT_PAYLOAD_CHARACTERS]} for entry in entries
        ]
        with fenced(self._database, run_id) as connection:
            connection.cursor().executemany(QUERIES["quarantine_add"], rows)

    def resolve_quarantine(self, run_id: str, stage: str, source: str | None) -> None:
        with fenced(self._database, run_id) as connection:
            connection.execute(QUERIES["quarantine_resolve"], {"run_id": run_id, "stage": stage, "source": source})

    def quarantined(self, limit: int) -> tuple[Mapping[str, Any], ...]:
        with self._database.transaction() as connection:
            return tuple(connection.execute(QUERIES["quarantine_list"], {"limit": limit}).fetchall())
