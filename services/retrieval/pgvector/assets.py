"""Single assets in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from services.catalog.model import asset_key
from services.index.pgvector.database import PgDatabase
from services.index.pgvector.tables import version_query
from services.retrieval.store import StoredAsset
from services.sql_files import load_queries
from services.text.clean import scrub

QUERIES = load_queries("pgvector/queries/search.sql")


class PgAssetStore:
    """See `services.retrieval.store.AssetStore`."""

    def __init__(self, database: PgDatabase) -> None:
        self._database = database

    def asset(self, asset_id: str, version: int | None, acl_ids: Sequence[int]) -> StoredAsset | None:
        if scrub(asset_id)[1]:
            return None  # no id holds such characters, and no query may
        with self._database.snapshot() as connection:
            row = connection.execute(QUERIES["asset_by_id"], {"id": asset_id, "acl_ids": list(acl_ids)}).fetchone()
            if row is None:
                return None
            chunks = []
            if version is not None:
                query = version_query(QUERIES["chunks_of_asset"], version)
                chunks = connection.execute(query, {"asset_key": row["asset_key"]}).fetchall()
        return StoredAsset(
            asset_key=row["asset_key"],
            payload=row["payload"],
            narrative=row["narrative"],
            signals=row["signals"],
            curation_score=row["curation_score"],
            curation=row["curation"],
            eligible=row["eligible"],
            eligibility_reasons=tuple(row["eligibility_reasons"]),
            classification=row["classification"],
            chunks=tuple((chunk["number"], chunk["section"], chunk["text"]) for chunk in chunks),
        )

    def hidden(self, asset_ids: Sequence[str], acl_ids: Sequence[int]) -> frozenset[str]:
        keys = list({asset_key(asset_id) for asset_id in asset_ids})
        with self._database.snapshot() as connection:
            known = {row["id"] for row in connection.execute(QUERIES["known_of"], {"keys": keys})}
            row = {"keys": keys, "acl_ids": list(acl_ids)}
            visible = {row["id"] for row in connection.execute(QUERIES["visible_of"], row)}
        return frozenset(known - visible)
