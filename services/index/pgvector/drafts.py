"""Assets on their way to being published."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

from psycopg import Connection
from psycopg.types.json import Jsonb

from services.access.rule import AccessRule, narrowed
from services.catalog.model import ObjectType
from services.context.labels import Neighbour
from services.index.pgvector.access_lists import intern_rules, rules_by_id
from services.index.pgvector.database import Database, Row
from services.index.pgvector.runs import fenced
from services.index.store import Composed, Draft, StaleAsset, UncomposedDraft
from services.sql_files import load_queries

QUERIES = load_queries("pgvector/queries/drafts.sql")
PUBLISH = load_queries("pgvector/queries/publish.sql")
COPY_TYPES = ("int8", "text", "text", "text", "text", "text", "int8", "bytea", "jsonb")


class PgDraftStore:
    """See `services.index.store.DraftStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def stale(
        self, fingerprint: bytes, page_size: int, *, everything: bool
    ) -> Generator[tuple[StaleAsset, ...], None, None]:
        with self._database.transaction() as connection, connection.cursor(name="stale_assets") as cursor:
            cursor.itersize = page_size
            cursor.execute(QUERIES["stale_assets"], {"fingerprint": fingerprint, "everything": everything})
            while rows := cursor.fetchmany(page_size):
                yield tuple(
                    StaleAsset(
                        asset_key=row["asset_key"],
                        id=row["id"],
                        record_digest=row["record_digest"],
                        sources=tuple(row["sources"]),
                        payloads=tuple(row["payloads"]),
                    )
                    for row in rows
                )

    def stage(self, run_id: str, drafts: Sequence[Draft]) -> int:
        with fenced(self._database, run_id) as connection:
            acl_ids = intern_rules(connection, {draft.access for draft in drafts})
            connection.execute(QUERIES["incoming_drafts_table"])
            with connection.cursor().copy(QUERIES["incoming_drafts_copy"]) as copy:
                copy.set_types(COPY_TYPES)
                for draft in drafts:
                    copy.write_row(_row(draft, acl_ids[draft.access]))
            relabelled = [row["asset_key"] for row in connection.execute(QUERIES["relabelled"])]
            written = connection.execute(QUERIES["merge_drafts"]).rowcount
            # A rehearsal never commits, so the next page must not find this one.
            connection.execute("TRUNCATE incoming_draft")
            _replace_edges(connection, drafts)
            written += connection.execute(QUERIES["recompose_referring"], {"keys": relabelled}).rowcount
            written += connection.execute(QUERIES["redraft_referring"], {"keys": relabelled}).rowcount
            _tighten(connection, {draft.asset_key: draft.access for draft in drafts})
            return written

    def uncomposed(self, after_key: int, limit: int) -> tuple[UncomposedDraft, ...]:
        with self._database.transaction() as connection:
            rows = connection.execute(QUERIES["uncomposed_drafts"], {"after_key": after_key, "limit": limit}).fetchall()
            rules = rules_by_id(connection, (row["acl_id"] for row in rows))
        return tuple(
            UncomposedDraft(row["asset_key"], row["id"], row["source"], rules[row["acl_id"]], row["payload"])
            for row in rows
        )

    def neighbours(self, keys: Sequence[int]) -> tuple[Neighbour, ...]:
        with self._database.transaction() as connection:
            rows = connection.execute(QUERIES["neighbours"], {"keys": list(keys)}).fetchall()
            rules = rules_by_id(connection, (row["acl_id"] for row in rows))
        return tuple(_neighbour(row, rules[row["acl_id"]]) for row in rows)

    def set_composed(self, run_id: str, composed: Mapping[int, Composed]) -> None:
        row = {"keys": list(composed), "composed": [Jsonb(_plain(value)) for value in composed.values()]}
        with fenced(self._database, run_id) as connection:
            connection.execute(QUERIES["set_composed"], row)

    def publishable(self, source: str, after_key: int, limit: int) -> tuple[int, ...]:
        row = {"source": source, "after_key": after_key, "limit": limit}
        with self._database.transaction() as connection:
            return tuple(found["asset_key"] for found in connection.execute(PUBLISH["publishable_drafts"], row))

    def drafted(self) -> Mapping[str, int]:
        with self._database.transaction() as connection:
            return {row["source"]: row["assets"] for row in connection.execute(PUBLISH["draft_sources"])}


def _row(draft: Draft, acl_id: int) -> tuple[object, ...]:
    named = (draft.asset_key, draft.id, draft.source, str(draft.object_type), draft.name, draft.title)
    return (*named, acl_id, draft.record_digest, Jsonb(draft.payload))


def _plain(composed: Composed) -> dict[str, object]:
    # Not dataclasses.asdict: it copies every posting of every asset, which was a fifth of the time of composing.
    return {**vars(composed), "chunks": [vars(chunk) for chunk in composed.chunks]}


def _replace_edges(connection: Connection[Row], drafts: Sequence[Draft]) -> None:
    pairs = [(draft.asset_key, target) for draft in drafts for target in draft.reference_keys]
    row = {
        "keys": [draft.asset_key for draft in drafts],
        "from_keys": [pair[0] for pair in pairs],
        "to_keys": [pair[1] for pair in pairs],
    }
    connection.execute(QUERIES["drop_edges"], row)
    connection.execute(QUERIES["add_edges"], row)


def _tighten(connection: Connection[Row], new: Mapping[int, AccessRule]) -> None:
    """Until they are published, assets are shown to those alone whom the old and the new list let in."""
    published = connection.execute(QUERIES["published_access"], {"keys": list(new)}).fetchall()
    old = rules_by_id(connection, (row["acl_id"] for row in published))
    rules = {row["asset_key"]: narrowed(old[row["acl_id"]], new[row["asset_key"]]) for row in published}
    acl_ids = intern_rules(connection, rules.values())
    stricter = {row["asset_key"]: acl_ids[rules[row["asset_key"]]] for row in published}
    changed = {row["asset_key"] for row in published if stricter[row["asset_key"]] != row["acl_id"]}
    if changed:
        row = {"keys": list(changed), "acl_ids": [stricter[key] for key in changed]}
        connection.execute(QUERIES["tighten_access"], row)


def _neighbour(row: Row, access: AccessRule) -> Neighbour:
    return Neighbour(row["id"], ObjectType(row["object_type"]), row["name"], row["title"], access)
