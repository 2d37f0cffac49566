"""A live crawl of a small database that has one of every kind."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping

import psycopg
import pytest
from psycopg import sql

from services.catalog.model import CatalogRecord, canonical_json
from services.catalog.sources import postgres
from services.catalog.sources.base import PAGE_SIZE, Ending, Outcome, Page, Source
from services.catalog.sources.postgres import PostgresSource
from services.embedded import EmbeddedServer
from services.errors import SourceError, SourceUnavailable

SCHEMA = """
CREATE SCHEMA app;
COMMENT ON SCHEMA app IS 'Everything of the app.';
CREATE SCHEMA bare;
CREATE TYPE app.mood AS ENUM ('calm', 'busy');

CREATE TABLE app.person (
    country char(2), number integer, name varchar(40) NOT NULL, born date, height numeric(5, 2), mood app.mood,
    is_active boolean, notes text, settings jsonb, dropped_one integer,
    PRIMARY KEY (country, number)
);
ALTER TABLE app.person DROP COLUMN dropped_one;
COMMENT ON TABLE app.person IS 'People we know.';
COMMENT ON COLUMN app.person.name IS 'What they are called.';
INSERT INTO app.person
SELECT CASE WHEN n <= 150 THEN 'DE' ELSE 'AT' END, n, 'Person ' || n, DATE '1990-01-01' + n, 1.50 + n / 1000.0,
       CASE WHEN n % 4 = 0 THEN 'busy' ELSE 'calm' END::app.mood, n % 2 = 0,
       CASE WHEN n % 4 = 0 THEN repeat('long note ', 30) END, '{"same": true}'
FROM generate_series(1, 200) AS n;

CREATE TABLE app.visit (
    visit_id bigint PRIMARY KEY, person_country char(2), person_number integer, visited_at timestamptz,
    FOREIGN KEY (person_country, person_number) REFERENCES app.person (country, number)
);
CREATE TABLE app.unchecked (
    visit_id bigint
);
ALTER TABLE app.unchecked ADD FOREIGN KEY (visit_id) REFERENCES app.visit NOT VALID;

CREATE TABLE app.event (event_id integer, happened_on date, PRIMARY KEY (event_id, happened_on))
    PARTITION BY RANGE (happened_on);
CREATE TABLE app.event_2024 PARTITION OF app.event FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
CREATE TABLE app.event_2025 PARTITION OF app.event FOR VALUES FROM ('2025-01-01') TO ('2026-01-01')
    PARTITION BY RANGE (happened_on);
CREATE TABLE app.event_2025_h1 PARTITION OF app.event_2025 FOR VALUES FROM ('2025-01-01') TO ('2025-07-01');
INSERT INTO app.event SELECT n, DATE '2024-10-01' + n FROM generate_series(1, 200) AS n;
CREATE TABLE app.event_note (event_id integer, happened_on date, FOREIGN KEY (event_id, happened_on)
    REFERENCES app.event);

CREATE VIEW app.adult AS SELECT country, number, name FROM app.person WHERE born < DATE '1990-05-01';
CREATE VIEW app.adult_visit AS SELECT a.name, v.visited_at FROM app.adult AS a JOIN app.visit AS v
    ON (v.person_country, v.person_number) = (a.country, a.number);
CREATE VIEW app.event_of_2024 AS SELECT event_id FROM app.event_2024;
CREATE MATERIALIZED VIEW app.visits_by_name AS SELECT name, count(*) AS visits FROM app.adult_visit GROUP BY name;
COMMENT ON MATERIALIZED VIEW app.visits_by_name IS 'Visits counted.';

CREATE FOREIGN DATA WRAPPER nowhere NO HANDLER;
CREATE SERVER far_away FOREIGN DATA WRAPPER nowhere;
CREATE FOREIGN TABLE app.remote (id integer NOT NULL) SERVER far_away;

CREATE TABLE bare."Größe ""A"".b" ("Spalte 1" text, "ÜBER" integer REFERENCES app.visit);
CREATE TABLE bare.no_columns ();
ANALYZE;
"""


@pytest.fixture
def everything(database_uri: str) -> str:
    """The URI of a database with the schema above."""
    with psycopg.connect(database_uri) as connection:
        connection.execute(SCHEMA.encode())
    return database_uri


def listed(source: Source) -> tuple[list[Page], Ending]:
    *pages, ending = source.listing()
    assert isinstance(ending, Ending)
    return [page for page in pages if isinstance(page, Page)], ending


def records(source: Source) -> dict[str, CatalogRecord]:
    """Records by their place below the database, after a complete listing without rejections."""
    pages, ending = listed(source)
    assert ending == Ending(Outcome.COMPLETE)
    assert [item for page in pages for item in page.rejected] == []
    found = [record for page in pages for record in page.records]
    by_place = {".".join(record.location[1:]): record for record in found}
    assert len(by_place) == len(found)
    return by_place


def short(ids: tuple[str, ...]) -> list[str]:
    """Table ids without database: the test's database has a name by chance."""
    return [table_id.split(".", 1)[1] for table_id in ids]


@pytest.fixture
def found(everything: str) -> Mapping[str, CatalogRecord]:
    return records(PostgresSource("app-db", everything))


def test_lists_each_kind_once_and_no_partitions(found: Mapping[str, CatalogRecord]) -> None:
    kinds = {place: record.extra.get("relation_kind") for place, record in found.items() if "." in place}
    assert kinds == {
        "app.adult": "view",
        "app.adult_visit": "view",
        "app.event": "partitioned table",
        "app.event_note": "table",
        "app.event_of_2024": "view",
        "app.person": "table",
        "app.remote": "foreign table",
        "app.unchecked": "table",
        "app.visit": "table",
        "app.visits_by_name": "materialized view",
        'bare.Größe "A".b': "table",
        "bare.no_columns": "table",
    }
    assert {place for place in found if "." not in place} == {"app", "bare", "public"}


def test_a_schema_says_what_it_holds(found: Mapping[str, CatalogRecord], everything: str) -> None:
    database = psycopg.conninfo.conninfo_to_dict(everything)["dbname"]
    app = found["app"]
    assert (app.id, app.object_type, app.name) == (f"postgres:schema:{database}.app", "schema", "app")
    assert (app.attributes.database_name, app.attributes.table_count) == (database, 10)
    assert app.descriptions.source == "Everything of the app."
    assert found["bare"].descriptions.source is None


def test_columns_have_type_nullability_and_comment(found: Mapping[str, CatalogRecord]) -> None:
    columns = found["app.person"].columns
    assert [(column.name, column.data_type, column.nullable) for column in columns] == [
        ("country", "character(2)", False),
        ("number", "integer", False),
        ("name", "character varying(40)", False),
        ("born", "date", True),
        ("height", "numeric(5,2)", True),
        ("mood", "app.mood", True),
        ("is_active", "boolean", True),
        ("notes", "text", True),
        ("settings", "jsonb", True),
    ]
    assert [column.description for column in columns if column.description] == ["What they are called."]
    assert found["app.person"].descriptions.source == "People we know."


def test_a_view_does_not_claim_that_its_columns_may_be_null(found: Mapping[str, CatalogRecord]) -> None:
    assert {column.nullable for column in found["app.adult"].columns} == {None}


def test_statistics_are_those_of_analyze(found: Mapping[str, CatalogRecord]) -> None:
    person = found["app.person"]
    columns = {column.name: column for column in person.columns}
    assert person.statistics.row_count == 200
    assert person.statistics.size_bytes is not None
    assert person.statistics.size_bytes % 8192 == 0 < person.statistics.size_bytes
    assert columns["country"].top_values == ("DE", "AT")
    assert columns["country"].distinct_count == 2
    assert columns["mood"].top_values == ("calm", "busy")
    assert set(columns["is_active"].top_values) == {"true", "false"}
    assert columns["notes"].null_ratio == 0.75
    assert columns["number"].distinct_count == 200
    assert (columns["number"].min, columns["number"].max) == (1, 200)
    assert (columns["born"].min, columns["born"].max) == ("1990-01-02", "1990-07-20")
    assert (columns["height"].min, columns["height"].max) == (1.5, 1.7)


def test_text_that_nobody_filters_by_stays_in_the_database(found: Mapping[str, CatalogRecord]) -> None:
    columns = {column.name: column for column in found["app.person"].columns}
    assert columns["notes"].top_values == ()  # repeated, but 300 characters long
    assert columns["settings"].top_values == ()
    assert columns["name"].min is None


def test_values_stay_in_the_database_when_asked(everything: str) -> None:
    for record in records(PostgresSource("app-db", everything, top_values=False)).values():
        assert all(column.top_values == () and column.min is column.max is None for column in record.columns)
    person = records(PostgresSource("app-db", everything, top_values=False))["app.person"]
    assert person.columns[0].distinct_count == 2


def test_what_was_never_analyzed_is_unknown(database_uri: str) -> None:
    with psycopg.connect(database_uri) as connection:
        connection.execute("CREATE TABLE fresh (id integer)")
    fresh = records(PostgresSource("app-db", database_uri))["public.fresh"]
    assert (fresh.statistics.row_count, fresh.statistics.size_bytes) == (None, None)
    assert fresh.columns[0].null_ratio is None


def test_partitions_are_counted_in_their_table(found: Mapping[str, CatalogRecord]) -> None:
    event = found["app.event"]
    assert event.statistics.row_count == 200
    assert event.statistics.size_bytes == 2 * 8192
    assert event.columns[0].distinct_count == 200


def test_keys_and_composite_foreign_keys(found: Mapping[str, CatalogRecord]) -> None:
    assert found["app.person"].extra["primary_key"] == ["country", "number"]
    (key,) = found["app.visit"].relationships
    assert (key.kind, key.confirmed) == ("foreign_key", True)
    assert key.columns == ("person_country", "person_number")
    assert short((key.target,)) == ["app.person"]
    assert key.target_columns == ("country", "number")
    assert key.target == found["app.person"].id


def test_a_key_that_was_never_checked_is_not_confirmed(found: Mapping[str, CatalogRecord]) -> None:
    assert [key.confirmed for key in found["app.unchecked"].relationships] == [False]


def test_a_key_to_a_partitioned_table_is_one_relationship(found: Mapping[str, CatalogRecord]) -> None:
    (key,) = found["app.event_note"].relationships
    assert short((key.target,)) == ["app.event"]


def test_lineage_runs_both_ways_through_views_on_views(found: Mapping[str, CatalogRecord]) -> None:
    assert short(found["app.adult_visit"].lineage.upstream) == ["app.adult", "app.visit"]
    assert short(found["app.adult"].lineage.downstream) == ["app.adult_visit"]
    assert short(found["app.person"].lineage.downstream) == ["app.adult"]
    assert short(found["app.visits_by_name"].lineage.upstream) == ["app.adult_visit"]
    assert found["app.person"].lineage.upstream == ()


def test_a_view_over_a_partition_hangs_on_the_whole_table(found: Mapping[str, CatalogRecord]) -> None:
    assert short(found["app.event_of_2024"].lineage.upstream) == ["app.event"]
    assert short(found["app.event"].lineage.downstream) == ["app.event_of_2024"]


def test_a_view_keeps_its_definition_beside(found: Mapping[str, CatalogRecord]) -> None:
    assert (found["app.adult"].attributes.source_code or "").startswith("SELECT country")
    assert found["app.person"].attributes.source_code is None


def test_odd_names_survive_and_cannot_collide(found: Mapping[str, CatalogRecord]) -> None:
    odd = found['bare.Größe "A".b']
    assert odd.name == 'Größe "A".b'
    assert odd.id.endswith('.bare."Größe ""A"".b"')
    assert [column.name for column in odd.columns] == ["Spalte 1", "ÜBER"]
    assert short((odd.relationships[0].target,)) == ["app.visit"]
    assert found["bare.no_columns"].columns == ()


def test_payloads_are_json_and_the_same_on_a_second_crawl(everything: str) -> None:
    source = PostgresSource("app-db", everything)
    one, other = (
        {place: canonical_json(record.payload()) for place, record in records(source).items()} for _ in range(2)
    )
    assert one == other
    for text in one.values():
        assert CatalogRecord.model_validate(json.loads(text)).payload() == json.loads(text)


def test_scope_and_classification(everything: str) -> None:
    found = records(PostgresSource("app-db", everything, schemas=("bare",), classification="Confidential"))
    assert set(found) == {"bare", 'bare.Größe "A".b', "bare.no_columns"}
    assert {record.access.classification for record in found.values()} == {"Confidential"}


def test_a_schema_that_does_not_exist_is_named(everything: str) -> None:
    with pytest.raises(SourceError, match="'nope'"):
        list(PostgresSource("app-db", everything, schemas=("bare", "nope")).listing())


def test_the_widest_table_keeps_all_columns(database_uri: str) -> None:
    columns = ", ".join(f"c{number} integer" for number in range(1600))
    with psycopg.connect(database_uri) as connection:
        connection.execute(f"CREATE TABLE wide ({columns})".encode())
    assert [column.name for column in records(PostgresSource("app-db", database_uri))["public.wide"].columns] == [
        f"c{number}" for number in range(1600)
    ]


def test_pages_are_bounded_in_tables_and_columns(database_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(database_uri) as connection:
        for number in range(PAGE_SIZE + 5):
            connection.execute(f"CREATE TABLE t{number} (a integer, b integer)".encode())
    source = PostgresSource("app-db", database_uri)
    pages, _ = listed(source)
    assert [len(page.records) for page in pages] == [1, PAGE_SIZE, 5]
    monkeypatch.setattr(postgres, "COLUMNS_PER_PAGE", 200)
    pages, ending = listed(source)
    assert [len(page.records) for page in pages] == [1, 100, 100, 100, 100, 100, 5]
    assert ending.outcome is Outcome.COMPLETE


def test_a_user_without_rights_sees_structure_but_no_values(everything: str) -> None:
    with psycopg.connect(everything) as connection:
        connection.execute("DO $$ BEGIN CREATE ROLE onlooker LOGIN; EXCEPTION WHEN duplicate_object THEN END $$")
    found = records(PostgresSource("app-db", everything.replace("postgres@", "onlooker@")))
    person = found["app.person"]
    assert len(person.columns) == 9
    assert person.columns[0].top_values == ()
    assert person.columns[0].null_ratio is None


def interrupted(source: PostgresSource, action: str) -> Iterator[Page | Ending]:
    """The listing, with `action` run by somebody else after the first page."""
    listing = source.listing()
    yield next(listing)
    with psycopg.connect(source.dsn, autocommit=True) as connection:
        connection.execute(action.encode())
    yield from listing


def test_a_lost_connection_ends_failed_with_the_reason(everything: str) -> None:
    kill = (
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE application_name = 'vouch' AND datname = current_database()"
    )
    *_, ending = interrupted(PostgresSource("app-db", everything), kill)
    assert isinstance(ending, Ending)
    assert ending.outcome is Outcome.FAILED
    assert "terminating connection" in ending.detail


def test_what_is_dropped_meanwhile_is_listed_as_it_was(everything: str) -> None:
    drop = "DROP TABLE app.person CASCADE; DROP TYPE app.mood CASCADE; DROP TABLE app.event CASCADE"
    *pages, ending = interrupted(PostgresSource("app-db", everything), drop)
    assert ending == Ending(Outcome.COMPLETE)
    names = [record.name for page in pages if isinstance(page, Page) for record in page.records]
    assert {"person", "adult", "event"} <= set(names)


def test_a_locked_view_costs_only_its_definition(everything: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "LOCK_TIMEOUT_SECONDS", 0.1)
    with psycopg.connect(everything) as connection:
        connection.execute("LOCK TABLE app.adult IN ACCESS EXCLUSIVE MODE")
        pages, ending = listed(PostgresSource("app-db", everything))
    assert ending.outcome is Outcome.COMPLETE
    by_name = {record.name: record for page in pages for record in page.records}
    assert by_name["adult"].attributes.source_code is None
    assert by_name["event_of_2024"].attributes.source_code
    assert any("app.adult: view definition not read" in notice for page in pages for notice in page.notices)


def test_an_abandoned_listing_closes_its_connection(everything: str) -> None:
    listing = PostgresSource("app-db", everything).listing()
    next(listing)
    assert crawlers(everything) == 1
    del listing
    deadline = time.monotonic() + 10
    while crawlers(everything):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def crawlers(uri: str) -> int:
    with psycopg.connect(uri) as connection:
        return connection.execute(
            "SELECT FROM pg_stat_activity WHERE application_name = 'vouch' AND datname = current_database()"
        ).rowcount


def test_the_crawl_cannot_write(everything: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = PostgresSource("app-db", everything)
    queries = {**postgres.load_queries("sources/postgres.sql"), "schemas": "CREATE TABLE app.intruder ()"}
    monkeypatch.setattr(postgres, "load_queries", lambda _: queries)
    pages, ending = listed(source)
    assert pages == []
    assert ending.outcome is Outcome.FAILED
    assert "ReadOnlySqlTransaction" in ending.detail


def test_probe_says_what_is_there(everything: str) -> None:
    told = PostgresSource("app-db", everything).probe()
    assert told.startswith("database 'test_")
    assert told.endswith("3 schemas, 12 tables and views")


@pytest.mark.parametrize(
    ("dsn", "raised", "words"),
    [
        ("host=/nowhere dbname=shop password=geheim", SourceUnavailable, "cannot be reached"),
        ("postgresql://reader:geheim@127.0.0.1:1/shop", SourceUnavailable, "cannot be reached"),
        ("postgresql://reader:geheim@more@127.0.0.1/shop", SourceError, "percent-encode"),
        ("postgresql://reader:ge%zzheim@127.0.0.1/shop", SourceError, "DSN"),
        ("host geheim", SourceError, "DSN"),
        ("host=/nowhere sslmode=weird password=geheim", SourceError, "correct the DSN"),
        ("host=/nowhere connect_timeout=soon password=geheim", SourceError, "correct the DSN"),
    ],
)
def test_a_wrong_dsn_is_told_apart_from_a_server_that_is_away(dsn: str, raised: type[Exception], words: str) -> None:
    source = PostgresSource("app-db", dsn)
    for reading in (lambda: list(source.listing()), source.probe):
        with pytest.raises(raised, match=words) as caught:
            reading()
        assert "app-db" in str(caught.value)
        assert "heim" not in f"{caught.value!r} {caught.value.__cause__!r}"
    assert "heim" not in repr(source)


def test_an_unknown_database_or_user_is_permanent(postgres_server: EmbeddedServer) -> None:
    with pytest.raises(SourceError, match="names of database and user"):
        PostgresSource("app-db", postgres_server.uri("no_such_database")).probe()
    with pytest.raises(SourceError, match="names of database and user"):
        PostgresSource("app-db", postgres_server.uri("postgres").replace("postgres@", "nobody_here@")).probe()


def test_a_user_who_may_not_connect_is_permanent(database_uri: str) -> None:
    with psycopg.connect(database_uri) as connection:
        connection.execute("DO $$ BEGIN CREATE ROLE onlooker LOGIN; EXCEPTION WHEN duplicate_object THEN END $$")
        database = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("REVOKE CONNECT ON DATABASE {} FROM PUBLIC").format(database))
    with pytest.raises(SourceError, match="grant CONNECT"):
        PostgresSource("app-db", database_uri.replace("postgres@", "onlooker@")).probe()
