"""The demo shop is built alike every time, only when needed, and never over somebody's own schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from services.catalog.model import canonical_json
from services.catalog.sources.base import Ending, Outcome, Page
from services.catalog.sources.postgres import PostgresSource
from services.demo.database import SCHEMAS, create_demo_database
from services.embedded import EmbeddedServer
from services.errors import SettingsError, StoreUnavailable

REVENUE = ("finance.customer_revenue_monthly", "sales.customer_monthly_revenue", "staging.monthly_customer_revenue")


@pytest.fixture(scope="module")
def shop_uri(postgres_server: EmbeddedServer) -> Iterator[str]:
    """The demo shop, built once for the tests that only read it."""
    name = f"shop_{uuid4().hex}"
    postgres_server.ensure_database(name)
    create_demo_database(postgres_server.uri(name))
    yield postgres_server.uri(name)
    with psycopg.connect(postgres_server.uri("postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def rows(uri: str, query: str | sql.Composed, *values: object) -> list[tuple[object, ...]]:
    with psycopg.connect(uri) as connection:
        return connection.execute(query.encode() if isinstance(query, str) else query, values).fetchall()


def relations(uri: str) -> list[tuple[str, str]]:
    found = rows(
        uri,
        "SELECT relnamespace::regnamespace::text, relname::text FROM pg_class"
        " WHERE relnamespace::regnamespace::text = ANY(%s) AND relkind IN ('r', 'p', 'v', 'm') AND NOT relispartition"
        " ORDER BY 1, 2",
        list(SCHEMAS),
    )
    return [(str(schema), str(table)) for schema, table in found]


def checksums(uri: str) -> dict[str, tuple[object, ...]]:
    """Relation -> number of rows and a digest of them all."""
    digest = sql.SQL("SELECT count(*), md5(string_agg(t::text, E'\\n' ORDER BY t::text)) FROM {} AS t")
    return {
        f"{schema}.{table}": rows(uri, digest.format(sql.Identifier(schema, table)))[0]
        for schema, table in relations(uri)
    }


def test_two_builds_are_equal_row_by_row(shop_uri: str, database_uri: str) -> None:
    create_demo_database(database_uri)
    assert checksums(database_uri) == checksums(shop_uri)


def test_has_the_tables_that_its_readme_lists(shop_uri: str) -> None:
    readme = (Path(__file__).parents[2] / "sql" / "demo" / "README.md").read_text()
    listed = set(re.findall(r"`postgres:table:shop\.(\S+)`", readme))
    assert {f"{schema}.{table}" for schema, table in relations(shop_uri)} == listed


def test_every_table_has_rows(shop_uri: str) -> None:
    assert [name for name, (count, _) in checksums(shop_uri).items() if count == 0] == []


def payloads(uri: str) -> list[str]:
    """What a crawl of the shop yields, as canonical JSON without the database's name, which differs by test."""
    *pages, ending = PostgresSource("shop", uri, schemas=SCHEMAS).listing()
    assert ending == Ending(Outcome.COMPLETE)
    database = str(conninfo_to_dict(uri)["dbname"])
    records = [record for page in pages if isinstance(page, Page) for record in page.records]
    return [canonical_json(record.payload()).replace(database, "shop") for record in records]


def test_crawls_of_one_shop_and_of_two_builds_are_equal(shop_uri: str, database_uri: str) -> None:
    first = payloads(shop_uri)
    with psycopg.connect(shop_uri, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")  # as the server does by itself some time after the build
    assert payloads(shop_uri) == first
    create_demo_database(database_uri)
    assert payloads(database_uri) == first
    assert len(first) == len(SCHEMAS) + len(relations(shop_uri))


def test_an_existing_shop_is_left_alone(database_uri: str) -> None:
    create_demo_database(database_uri)
    before = rows(database_uri, "SELECT oid FROM pg_class WHERE relname = 'customers'")
    create_demo_database(database_uri)
    assert rows(database_uri, "SELECT oid FROM pg_class WHERE relname = 'customers'") == before


def test_a_shop_of_other_scripts_is_rebuilt(database_uri: str) -> None:
    create_demo_database(database_uri)
    with psycopg.connect(database_uri) as connection:
        connection.execute("DELETE FROM finance.refunds")
        connection.execute(
            sql.SQL("COMMENT ON DATABASE {} IS 'Vouch demo shop 0'").format(sql.Identifier(connection.info.dbname))
        )
    create_demo_database(database_uri)
    assert rows(database_uri, "SELECT count(*) FROM finance.refunds") == [(150,)]


def test_somebody_elses_schema_is_never_dropped(database_uri: str) -> None:
    with psycopg.connect(database_uri) as connection:
        connection.execute("CREATE SCHEMA sales")
        connection.execute("CREATE TABLE sales.precious AS SELECT 1 AS kept")
    with pytest.raises(SettingsError, match="sales"):
        create_demo_database(database_uri)
    assert rows(database_uri, "SELECT kept FROM sales.precious") == [(1,)]


def test_a_server_that_is_away_is_worth_a_retry() -> None:
    with pytest.raises(StoreUnavailable):
        create_demo_database("host=/nowhere dbname=shop")


def test_the_three_revenues_differ_in_words_by_little_and_in_numbers(shop_uri: str) -> None:
    words = {" ".join(sorted(name.split(".")[1].split("_"))) for name in REVENUE}
    assert words == {"customer monthly revenue"}
    comments = [rows(shop_uri, "SELECT obj_description(%s::regclass)", name)[0][0] for name in REVENUE]
    texts = [set(str(comment).split()) for comment in comments]
    assert all(len(one ^ other) <= 4 for one in texts for other in texts)
    total = sql.SQL("SELECT sum(net_revenue) FROM {}")
    assert len({rows(shop_uri, total.format(sql.Identifier(*name.split("."))))[0] for name in REVENUE}) == 3
