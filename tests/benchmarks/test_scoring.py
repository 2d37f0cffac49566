"""How fast a large catalog is scored and gated, and how much memory that takes. Prints; asserts only what was done."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import psutil
import psycopg

from services.catalog.model import Asset, CatalogRecord
from services.catalog.sources.base import PAGE_SIZE, Ending, Outcome, Page
from services.index.scoring import Scorer
from services.trust.gate import GateThresholds
from services.trust.rules import load_rules
from tests.integration.refresh_kit import LIMITS, ListedSource, new_world, table

ASSETS = 100_000
PUBLISHED = 1_000  # through a refresh; the rest are copies of them, which takes seconds instead of an hour
MEGABYTE = 1 << 20
OTHER_RULES = """
curation:
  tags: {weight: 15}
"""

Done = TypeVar("Done")


def line(number: int) -> dict[str, Any]:
    """An asset as catalogs have them: ten columns, some custom fields, now this and now that filled in."""
    columns = [{"name": f"column_{n}", "description": f"What {n} means." if n < number % 11 else ""} for n in range(10)]
    return table(
        f"shop.table_{number}",
        title=f"Table of things {number}" if number % 3 else None,
        descriptions={
            "business": f"Things of kind {number % 997}." if number % 2 else None,
            "source": "Loaded nightly.",
        },
        tags=[["Finance", f"Topic {number % 50}"]] if number % 5 else [],
        governance_roles=[{"role": "owner", "name": f"team-{number % 40}"}] if number % 4 else [],
        custom_fields=[
            {"name": "Critical Data Element", "value": "Yes" if number % 7 else "TBD"},
            {"name": "DQ Score", "value": f"{number % 100}%"},
            {"name": "Cost centre", "value": number % 1000},
        ],
        columns=columns,
    )


# Copy `n` of an asset has a key and an id of its own, and the same texts, hence the same vectors.
MULTIPLY = """
    CREATE TABLE copied AS
        SELECT asset_key AS old_key, ('x' || substr(md5(id || ':' || n), 1, 15))::bit(60)::bigint AS new_key, n
        FROM asset CROSS JOIN generate_series(2, %(copies)s) AS n;
    INSERT INTO asset
        SELECT (jsonb_populate_record(a, jsonb_build_object('asset_key', new_key, 'id', id || ':' || n))).*
        FROM copied JOIN asset a ON asset_key = old_key;
    INSERT INTO asset_document
        SELECT new_key, payload, narrative FROM copied JOIN asset_document ON asset_key = old_key;
    INSERT INTO asset_score
        SELECT (jsonb_populate_record(s, jsonb_build_object('asset_key', new_key))).*
        FROM copied JOIN asset_score s ON asset_key = old_key;
    INSERT INTO chunk_1
        SELECT new_key, number, section, text, content_hash FROM copied JOIN chunk_1 ON asset_key = old_key;
    INSERT INTO embedding_1
        SELECT new_key, number, embedding FROM copied JOIN embedding_1 ON asset_key = old_key;
    UPDATE corpus_stat SET assets = assets * %(copies)s, total_length = total_length * %(copies)s;
    DROP TABLE copied;
"""


class Generated(ListedSource):
    def listing(self) -> Iterator[Page | Ending]:
        numbers = iter(range(PUBLISHED))
        while page := tuple(CatalogRecord.model_validate(line(n)) for n in itertools.islice(numbers, PAGE_SIZE)):
            yield Page(page)
        yield Ending(Outcome.COMPLETE)


@dataclass(frozen=True)
class Measured:
    seconds: float
    peak_megabytes: float  # of this process, above what it had before

    def line(self, what: str) -> str:
        return f"{what}: {ASSETS / self.seconds:,.0f} assets/s, peak memory +{self.peak_megabytes:.0f} MB"


def measured(work: Callable[[], Done]) -> tuple[Done, Measured]:
    process = psutil.Process()
    before = peak = process.memory_info().rss
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.02):
            peak = max(peak, process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    started = time.perf_counter()
    try:
        result = work()
    finally:
        seconds = time.perf_counter() - started
        done.set()
        watcher.join()
    return result, Measured(seconds, (peak - before) / MEGABYTE)


def test_scoring_alone() -> None:
    scorer = Scorer(load_rules(None), prefer_native_curation=False)

    def score_all() -> int:
        return sum(scorer.score(Asset.model_validate(line(number))).curation_score >= 0 for number in range(ASSETS))

    scored, cost = measured(score_all)
    assert scored == ASSETS
    print(f"\n{cost.line('validated and scored')}")


def test_reevaluation_of_a_published_catalog(database_uri: str, tmp_path: Path) -> None:
    world = new_world(database_uri, tmp_path)
    world.limits = replace(LIMITS, exact_scan_rows=10 * ASSETS)
    world.open_as(Generated("shop", ()))
    world.refresh()
    with psycopg.connect(world.uri, autocommit=True, options="-c search_path=vouch,public") as connection:
        for statement in MULTIPLY.split(";"):
            connection.execute(statement.replace("%(copies)s", str(ASSETS // PUBLISHED)))
        connection.execute("VACUUM ANALYZE")
    texts = len(world.embedder.texts)
    print()

    world.thresholds = GateThresholds(50)
    with world.reevaluation() as steps:
        preview, cost = measured(steps.preview)
    print(cost.line("previewed, same rules"))
    raised, cost = measured(world.reevaluate)
    print(cost.line(f"gated at another threshold ({raised['leaving']:,} left)"))
    assert raised["changes"] == preview["changes"]
    assert raised["leaving"] > ASSETS / 10
    again, cost = measured(world.reevaluate)
    print(cost.line("gated, nothing changed"))
    assert again["written"] == 0

    world.thresholds = GateThresholds(0)
    lowered, cost = measured(world.reevaluate)
    print(cost.line(f"gated at the old threshold ({lowered['entering']:,} came back)"))
    assert lowered["entering"] == raised["leaving"]

    rules = tmp_path / "rules.yaml"
    rules.write_text(OTHER_RULES, encoding="utf-8")
    world.rules, world.thresholds = load_rules(rules), GateThresholds(50)
    with world.reevaluation() as steps:
        _, cost = measured(steps.preview)
    print(cost.line("previewed, other rules"))
    rescored, cost = measured(world.reevaluate)
    print(cost.line(f"scored by other rules and gated ({rescored['leaving']:,} left)"))
    assert rescored["rescored"] == ASSETS
    assert len(world.embedder.texts) == texts
