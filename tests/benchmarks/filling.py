"""A synthetic catalog in the database, composed by the product and loaded straight by COPY.

`python -m tests.benchmarks.filling --home FOLDER --assets N` leaves one in an embedded server for other work.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg
from pgvector.psycopg import register_vector
from psycopg import Connection, sql
from psycopg.types.json import Jsonb

from services.access.rule import Level
from services.catalog.model import asset_key
from services.embedded import EmbeddedServer
from services.index.compose import Composer, ComposeSettings
from services.index.pgvector.access_lists import intern_rules
from services.index.pgvector.embeddings import VERSIONS
from services.index.pgvector.migrations import migrate
from services.index.pgvector.tables import version_query
from services.index.store import Composed, Draft, StaleAsset, UncomposedDraft
from services.trust.gate import GateThresholds
from services.trust.rules import load_rules
from services.wiring import INDEX_DATABASE
from tests.benchmarks.synthetic import BATCH_ASSETS, DIMENSION, Batch, SyntheticCatalog, SyntheticEmbedder

VERSION = 1
SOURCE = "synthetic"
LOADED = ("asset", "asset_document", "asset_score", "posting", f"chunk_{VERSION}", f"embedding_{VERSION}")
ADD_WORDS = """
    INSERT INTO vocabulary (word, term)
    SELECT * FROM unnest(%(words)s::text[], %(terms)s::text[]) ON CONFLICT (word) DO NOTHING
"""
GRAPH_MEMORY = "3GB"  # a graph that does not fit is built many times slower

Rows = Mapping[str, list[dict[str, Any]]]
Told = Callable[[str], None]


def fill(uri: str, catalog: SyntheticCatalog, told: Told = print) -> None:
    """Load the catalog into a migrated, empty database: one active index version with its graph index."""
    with psycopg.connect(uri, autocommit=True, options="-c search_path=vouch,public") as connection:
        # The foreign keys hold by construction; checking each row would be half of the time.
        connection.execute("SET session_replication_role = replica")
        _begin(connection)
        with without_indexes(connection, LOADED, told):
            for done, rows in enumerate(_composed_batches(connection, catalog), start=1):
                with connection.transaction():
                    for table in LOADED:
                        _copy(connection, table, rows[table])
                if done % 10 == 0:
                    told(f"{min(done * BATCH_ASSETS, catalog.assets):,} of {catalog.assets:,} assets loaded")
        _count(connection)
        build_graph(connection, told)


def _begin(connection: Connection[Any]) -> None:
    model = asdict(SyntheticEmbedder(SyntheticCatalog(0)).identity)
    row = {"version": VERSION, "source": SOURCE, "model_revision": model.pop("revision"), **model}
    for statement in VERSIONS["create_version_tables"].split(";"):
        connection.execute(version_query(statement, VERSION, DIMENSION))
    register_vector(connection)
    connection.execute("INSERT INTO source (name, kind, overlay) VALUES (%(source)s, 'jsonl', false)", row)
    connection.execute(
        "INSERT INTO index_version (version, model_id, model_revision, dimension, status, promoted_at)"
        " VALUES (%(version)s, %(model_id)s, %(model_revision)s, %(dimension)s, 'active', now())",
        row,
    )
    connection.execute(
        "INSERT INTO refresh_run (run_id, holder, status, sources, full_listing, dry_run, finished_at, index_version)"
        " VALUES ('synthetic', 'none', 'succeeded', ARRAY[%(source)s], false, false, now(), %(version)s)",
        row,
    )


@contextmanager
def without_indexes(connection: Connection[Any], tables: Sequence[str], told: Told) -> Iterator[None]:
    """Tables without keys and indexes, which are built again over all rows at the end, as a restore does."""
    constraints = connection.execute(
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE conrelid = ANY(%s::regclass[]) AND contype IN ('p', 'u', 'f') ORDER BY contype <> 'f', conname",
        [list(tables)],
    ).fetchall()
    for table, name, _definition in constraints:
        connection.execute(
            sql.SQL("ALTER TABLE {} DROP CONSTRAINT {} CASCADE").format(sql.Identifier(table), sql.Identifier(name))
        )
    indexes = connection.execute(
        "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index"
        " WHERE indrelid = ANY(%s::regclass[])",
        [list(tables)],
    ).fetchall()
    for name, _definition in indexes:
        connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
    yield
    connection.execute("SET maintenance_work_mem = '1GB'")
    for _name, definition in indexes:
        connection.execute(definition)
    for table, name, definition in reversed(constraints):
        head = sql.SQL("ALTER TABLE {} ADD CONSTRAINT {} ").format(sql.Identifier(table), sql.Identifier(name))
        connection.execute(head + sql.SQL(definition))
    told("keys and indexes built")


def _composed_batches(connection: Connection[Any], catalog: SyntheticCatalog) -> Iterator[Rows]:
    """The rows of every loaded table, batch by batch."""
    settings = ComposeSettings(Level.INTERNAL, prefer_native_curation=False, thresholds=GateThresholds())
    composer = Composer(load_rules(None), SyntheticEmbedder(catalog), settings)
    acl_ids: dict[Any, int] = {}
    for batch in catalog.batches():
        lines = batch.lines
        stale = (StaleAsset(asset_key(line["id"]), line["id"], b"", (SOURCE,), (line,)) for line in lines)
        drafts, failed = composer.merge_page(stale)
        if failed:
            raise ValueError(f"a synthetic asset is none: {failed[0]}")
        uncomposed = [UncomposedDraft(d.asset_key, d.id, d.source, d.access, d.payload) for d in drafts]
        composed = composer.compose_page(uncomposed, ())
        if fresh := {draft.access for draft in drafts} - set(acl_ids):
            acl_ids |= intern_rules(connection, fresh)
        pairs = [(draft, composed[draft.asset_key]) for draft in drafts]
        words = {word: term for item in composed.values() for word, term in item.words.items()}
        connection.execute(ADD_WORDS, {"words": list(words), "terms": list(words.values())})
        yield _rows(pairs, acl_ids, catalog, batch)


def _rows(
    pairs: Sequence[tuple[Draft, Composed]], acl_ids: Mapping[Any, int], catalog: SyntheticCatalog, batch: Batch
) -> Rows:
    rows: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    vectors = iter(catalog.vectors(batch, [len(composed.chunks) for _, composed in pairs]))
    for draft, composed in pairs:
        key = draft.asset_key
        whole = {**vars(draft), **vars(composed), "acl_id": acl_ids[draft.access]}
        whole |= {"location": draft.payload.get("location", []), "url": draft.payload.get("url")}
        whole |= {"gated_score": composed.curation_score, "words": list(composed.words)}
        for table in ("asset", "asset_document", "asset_score"):
            rows[table].append(whole)
        length = composed.keyword_length
        for term, weight in composed.postings.items():
            rows["posting"].append({"term": term, "asset_key": key, "weight": weight, "length": length})
        for item in composed.chunks:
            chunk = {"asset_key": key, **vars(item), "content_hash": bytes.fromhex(item.content_hash)}
            rows[f"chunk_{VERSION}"].append(chunk)
            rows[f"embedding_{VERSION}"].append({"asset_key": key, "number": item.number, "embedding": next(vectors)})
    return rows


@dataclass(frozen=True)
class Column:
    name: str
    type: str

    def value(self, row: Mapping[str, Any]) -> Any:
        value = row[self.name]
        if value is None:
            return None
        if self.type == "jsonb":
            return Jsonb(value)
        return list(value) if isinstance(value, tuple) else value


def table_columns(connection: Connection[Any], table: str) -> list[Column]:
    """Those that are written to, in their order."""
    found = connection.execute(
        "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum",
        [table],
    )
    return [Column(*row) for row in found]


def _copy(connection: Connection[Any], table: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows into a table, each column from the value of its name."""
    columns = table_columns(connection, table)
    into = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(
        sql.Identifier(table), sql.SQL(", ").join(sql.Identifier(column.name) for column in columns)
    )
    with connection.cursor().copy(into) as copy:
        copy.set_types([column.type for column in columns])
        for row in rows:
            copy.write_row([column.value(row) for column in columns])


def _count(connection: Connection[Any]) -> None:
    """What is counted over all assets."""
    connection.execute("INSERT INTO term_stat SELECT term, count(*) FROM posting GROUP BY term")
    connection.execute(
        "UPDATE corpus_stat SET (assets, total_length) = (SELECT count(*), sum(keyword_length::float8) FROM asset)"
    )


def build_graph(connection: Connection[Any], told: Told) -> None:
    """The graph index over all vectors, and the statistics that plans are made from."""
    told("building the graph index")
    connection.execute("SELECT set_config('maintenance_work_mem', %s, false)", [GRAPH_MEMORY])
    connection.execute(version_query(VERSIONS["create_ann_index"], VERSION))
    connection.execute("VACUUM (ANALYZE)")
    told("done")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--home", type=Path, required=True, help="the folder of the embedded server")
    arguments.add_argument("--assets", type=int, default=100_000)
    given = arguments.parse_args()
    server = EmbeddedServer(given.home)
    server.start()
    server.ensure_database(INDEX_DATABASE)
    migrate(server.uri(INDEX_DATABASE))
    fill(server.uri(INDEX_DATABASE), SyntheticCatalog(given.assets))


if __name__ == "__main__":
    main()
