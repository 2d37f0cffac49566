"""The DAG files as Airflow sees them, and one run from a catalog to the published index."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from services.embedded import EmbeddedServer
from services.evaluation.golden import read_queries
from services.evaluation.pgvector.evaluations import PgEvaluationStore
from services.evaluation.quality import AnsweredQuery, QueryOutcome, decide
from services.evaluation.store import Evaluation
from services.index.pgvector.database import PgDatabase
from services.index.pgvector.migrations import migrate

ROOT = Path(__file__).resolve().parents[2]
DAGS = ROOT / "dags"
PROBE = Path(__file__).with_name("airflow_probe.py")
HEAVY = {"torch", "pandas", "sentence_transformers", "numpy", "flask", "psycopg"}
IGNORED = (DAGS / ".airflowignore").read_text(encoding="utf-8").split()
STEPS = ["begin", "extract", "compose", "plan", "embed", "publish", "verify"]
REEVALUATION_STEPS = ["preview", "begin", "rescore", "plan", "embed", "publish", "verify"]


def probe(home: Path, *arguments: str, **environment: str) -> Any:
    """The answer of airflow_probe.py, run with an empty Airflow of its own in `home`."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "VOUCH_"))}
    configured = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
    }
    finished = subprocess.run(
        [sys.executable, str(PROBE), *arguments],
        env=inherited | configured | environment,
        cwd=home,
        capture_output=True,
        text=True,
        timeout=300,
    )
    head, found, answer = finished.stdout.partition("\nRESULT\n")
    assert finished.returncode == 0 and found, f"{head[-4000:]}\n{finished.stderr[-4000:]}"
    return json.loads(answer)


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    described: dict[str, Any] = probe(tmp_path_factory.mktemp("airflow"), "describe", str(DAGS))
    return described


def test_every_file_defines_one_dag_of_its_name_and_imports(described: dict[str, Any]) -> None:
    assert described["import_errors"] == {}
    assert described["files"] == {file.stem: file.name for file in DAGS.glob("*.py") if file.name not in IGNORED}


def test_two_parses_give_the_same_definition(described: dict[str, Any]) -> None:
    assert described["again"] == described["dags"]


def test_parsing_loads_nothing_heavy_and_of_ours_only_the_errors(described: dict[str, Any]) -> None:
    loaded = set(described["modules"])
    assert loaded & HEAVY == set()
    assert {name for name in loaded if name.startswith("services")} == {"services", "services.errors"}


def test_our_package_is_not_shadowed(described: dict[str, Any]) -> None:
    assert described["package"] == str(ROOT / "services" / "__init__.py")
    names = {file.stem for folder in ("dags", "plugins") for file in (ROOT / folder).glob("*.py")}
    assert "services" not in names
    assert all(name.startswith("vouch_") for name in {file.stem for file in (ROOT / "plugins").glob("*.py")})


def test_what_the_dags_share_is_no_dag_and_shadows_nothing() -> None:
    assert [file.name for file in DAGS.glob("vouch_*.py")] == IGNORED


class EveryDag:
    """What holds for each of our DAGs; `dag_id` names one."""

    dag_id: str

    @pytest.fixture
    def tasks(self, described: dict[str, Any]) -> dict[str, dict[str, Any]]:
        tasks: dict[str, dict[str, Any]] = described["tasks"][self.dag_id]
        return tasks

    @pytest.fixture
    def dag(self, described: dict[str, Any]) -> dict[str, Any]:
        dag: dict[str, Any] = described["dags"][self.dag_id]["dag"]
        return dag

    @pytest.fixture
    def edges(self, described: dict[str, Any]) -> set[tuple[str, str]]:
        return {(above, below) for above, below in described["edges"][self.dag_id]}

    def test_retries_are_decided_by_the_kind_of_error(self, tasks: dict[str, dict[str, Any]]) -> None:
        for task in tasks.values():
            assert task["decisions"] == {"permanent": "fail", "transient": "retry", "unknown": "default"}

    def test_the_page_for_operators_names_every_task(self, dag: dict[str, Any], tasks: dict[str, Any]) -> None:
        assert set(re.findall(r"^\| `(\w+)`", dag["doc_md"], flags=re.MULTILINE)) == set(tasks)

    def test_one_run_at_a_time_without_catching_up(self, dag: dict[str, Any]) -> None:
        assert dag["max_active_runs"] == 1
        assert dag["catchup"] is False


class IndexingDag(EveryDag):
    """What holds for each DAG that writes the index."""

    def test_only_embedding_is_bounded_by_the_pool_that_compose_creates(self, tasks: dict[str, dict[str, Any]]) -> None:
        pools = {name: task["pool"] for name, task in tasks.items() if task["pool"] != "default_pool"}
        assert pools == {"embed": "vouch_embedding"}
        init = (ROOT / "docker" / "airflow-init.sh").read_text(encoding="utf-8")
        assert re.findall(r"pools set (\w+)", init) == [pools["embed"]]

    def test_the_event_of_the_index_is_sent_by_the_last_step(self, tasks: dict[str, dict[str, Any]]) -> None:
        assert {name: task["outlets"] for name, task in tasks.items() if task["outlets"]} == {"verify": ["vouch_index"]}


class TestCatalogRefresh(IndexingDag):
    dag_id = "catalog_refresh"

    def test_the_steps_follow_each_other_and_release_waits_for_all(self, edges: set[tuple[str, str]]) -> None:
        assert {*itertools.pairwise(STEPS)} <= edges
        assert {(step, "release") for step in STEPS} <= edges
        order = [*STEPS, "every_source_listed", "release"]
        assert all(order.index(above) < order.index(below) for above, below in edges)

    def test_it_runs_each_day(self, dag: dict[str, Any]) -> None:
        assert dag["timetable"]["__var"]["expression"] == "0 4 * * *"

    def test_params_have_safe_defaults_and_name_what_is_allowed(self, dag: dict[str, Any]) -> None:
        params = dict(dag["params"])
        assert {name: param["default"] for name, param in params.items()} == {
            "source": None,
            "mode": "incremental",
            "dry_run": False,
        }
        assert params["mode"]["schema"]["__var"]["enum"] == ["incremental", "full"]
        assert params["dry_run"]["schema"]["__var"]["type"] == "boolean"

    def test_mapped_tasks_have_readable_names(self, tasks: dict[str, dict[str, Any]]) -> None:
        templates = {name: task["map_index_template"] for name, task in tasks.items() if task["mapped"]}
        assert set(templates) == {"extract", "embed"}
        assert all(templates.values())

    def test_who_goes_on_when_a_source_failed_or_nothing_was_to_be_embedded(self, tasks: dict[str, Any]) -> None:
        rules = {name: task["trigger_rule"] for name, task in tasks.items() if task["trigger_rule"] != "all_success"}
        assert rules == {
            "compose": "all_done_min_one_success",
            "publish": "none_failed",
            "release": "all_done_setup_success",
        }

    def test_a_failed_source_and_a_failed_step_both_colour_the_run(
        self, tasks: dict[str, Any], edges: set[tuple[str, str]]
    ) -> None:
        teardowns = {name for name, task in tasks.items() if task["teardown"]}
        assert teardowns == {"release"}
        above_others = {above for above, below in edges if below not in teardowns}
        assert set(tasks) - above_others - teardowns == {"verify", "every_source_listed"}


class TestCurationReevaluation(IndexingDag):
    dag_id = "curation_reevaluation"

    def test_the_steps_follow_each_other_and_release_waits_for_all(self, edges: set[tuple[str, str]]) -> None:
        assert {*itertools.pairwise(REEVALUATION_STEPS)} <= edges
        assert {(step, "release") for step in REEVALUATION_STEPS} <= edges

    def test_it_runs_each_week_after_the_refresh_of_the_day(self, dag: dict[str, Any]) -> None:
        assert dag["timetable"]["__var"]["expression"] == "0 6 * * 0"

    def test_params_have_safe_defaults_and_name_what_is_allowed(self, dag: dict[str, Any]) -> None:
        params = dict(dag["params"])
        assert {name: param["default"] for name, param in params.items()} == {"threshold": None, "dry_run": False}
        schema = params["threshold"]["schema"]["__var"]
        assert (schema["type"], schema["minimum"], schema["maximum"]) == (["null", "number"], 0, 100)

    def test_the_gate_is_asked_when_nothing_is_to_be_embedded_and_not_in_a_dry_run(self, tasks: dict[str, Any]) -> None:
        rules = {name: task["trigger_rule"] for name, task in tasks.items() if task["trigger_rule"] != "all_success"}
        assert rules == {"publish": "none_failed_min_one_success", "release": "all_done_setup_success"}


class TestRetrievalEvaluation(EveryDag):
    dag_id = "retrieval_evaluation"

    def test_it_runs_after_each_change_of_the_index_that_the_others_tell(
        self, dag: dict[str, Any], described: dict[str, Any]
    ) -> None:
        condition = dag["timetable"]["__var"]["asset_condition"]
        told = {asset for tasks in described["tasks"].values() for task in tasks.values() for asset in task["outlets"]}
        assert {condition["name"]} == told

    def test_nothing_is_accepted_unless_asked_for(self, dag: dict[str, Any]) -> None:
        params = dict(dag["params"])
        assert {name: param["default"] for name, param in params.items()} == {"accept": False}
        assert params["accept"]["schema"]["__var"]["type"] == "boolean"

    def test_it_writes_no_index_and_tells_nobody_to_look(self, tasks: dict[str, dict[str, Any]]) -> None:
        assert {name: (task["pool"], task["outlets"]) for name, task in tasks.items()} == {
            "evaluate": ("default_pool", [])
        }


SHOP = [
    {"id": "shop:table:orders", "object_type": "table", "name": "orders", "descriptions": {"business": "Every order."}},
    {"id": "shop:table:customers", "object_type": "table", "name": "customers", "title": "Customers"},
    {"id": "shop:term:revenue", "object_type": "term", "name": "Revenue", "attributes": {"domain": "Finance"}},
]
SOURCES = """
sources:
  - {name: shop, kind: jsonl, path: shop.jsonl}
  - {name: erp, kind: jsonl, path: nowhere.jsonl}
"""


@pytest.fixture(scope="module")
def runs(postgres_server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    home = tmp_path_factory.mktemp("airflow-run")
    (home / "shop.jsonl").write_text("".join(json.dumps(asset) + "\n" for asset in SHOP))
    (home / "sources.yaml").write_text(SOURCES)
    postgres_server.ensure_database("airflow_run")
    migrate(postgres_server.uri("airflow_run"))
    shop = {"source": "shop"}
    confs = [{**shop, "dry_run": True}, shop, shop, {"mode": "full"}, {"source": "crm"}]
    runs: list[dict[str, Any]] = probe(
        home,
        *("run", str(DAGS), "catalog_refresh", json.dumps(confs)),
        VOUCH_DATABASE_URL=postgres_server.uri("airflow_run"),
        VOUCH_SOURCES_FILE=str(home / "sources.yaml"),
        VOUCH_HOME=str(home),
    )
    return runs


class TestOneRunAfterAnother:
    """From a catalog to the published index, through Airflow itself."""

    def test_a_dry_run_publishes_nothing_and_sends_no_event(self, runs: list[dict[str, Any]]) -> None:
        assert runs[0]["state"] == "success"
        assert runs[0]["tasks"]["verify"] == "skipped"
        assert runs[0]["events"] == []

    def test_the_first_refresh_embeds_and_publishes_everything(self, runs: list[dict[str, Any]]) -> None:
        assert runs[1]["state"] == "success"
        assert set(runs[1]["tasks"].values()) == {"success"}
        (event,) = runs[1]["events"]
        assert event["asset"] == "vouch_index"
        counts = event["extra"]
        assert (counts["status"], counts["seen"], counts["quarantined"]) == ("succeeded", 3, 0)
        assert counts["embedded"] >= 3
        assert counts["written"] > 0

    def test_mapped_tasks_are_named_after_their_source_and_batch(self, runs: list[dict[str, Any]]) -> None:
        embedded = runs[1]["events"][0]["extra"]["embedded"]
        assert {name for name in runs[1]["tasks"] if "[" in name} == {
            "extract [shop]",
            f"embed [shop: batch 1, {embedded} texts]",
        }

    def test_the_second_refresh_writes_and_embeds_nothing(self, runs: list[dict[str, Any]]) -> None:
        assert runs[2]["state"] == "success"
        assert runs[2]["tasks"]["publish"] == "success"
        counts = runs[2]["events"][0]["extra"]
        assert (counts["written"], counts["embedded"], counts["unchanged"]) == (0, 0, 3)

    def test_a_source_that_fails_leaves_the_run_red_and_the_others_published(self, runs: list[dict[str, Any]]) -> None:
        assert runs[3]["state"] == "failed"
        assert runs[3]["tasks"]["extract [erp]"] == "failed"
        assert runs[3]["tasks"]["every_source_listed"] == "upstream_failed"
        assert runs[3]["tasks"]["verify"] == "success"
        assert runs[3]["events"][0]["extra"]["status"] == "incomplete"

    def test_an_unknown_source_fails_at_once(self, runs: list[dict[str, Any]]) -> None:
        assert runs[4]["state"] == "failed"
        assert runs[4]["tasks"]["begin"] == "failed"
        assert runs[4]["tasks"]["publish"] == "upstream_failed"
        assert runs[4]["events"] == []


@pytest.fixture(scope="module")
def reevaluations(
    runs: list[dict[str, Any]], postgres_server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    """On the index that `runs` has made: 60 tried out, 60, 60 again, and back to the setting."""
    home = tmp_path_factory.mktemp("airflow-reevaluation")
    assert runs[3]["events"]
    confs = [{"threshold": 60, "dry_run": True}, {"threshold": 60}, {"threshold": 60}, {}]
    done: list[dict[str, Any]] = probe(
        home,
        *("run", str(DAGS), "curation_reevaluation", json.dumps(confs)),
        VOUCH_DATABASE_URL=postgres_server.uri("airflow_run"),
        VOUCH_HOME=str(home),
    )
    return done


class TestTheGateAskedAnew:
    """Through Airflow itself; the shop's two tables and its term have 18, 5 and 25 points."""

    def test_a_dry_run_tells_who_would_leave_and_skips_the_rest(self, reevaluations: list[dict[str, Any]]) -> None:
        tried = reevaluations[0]
        assert tried["state"] == "success"
        assert tried["returned"]["preview"]["changes"] == [
            {"source": "shop", "object_type": "table", "leaving": 2, "entering": 0},
            {"source": "shop", "object_type": "term", "leaving": 1, "entering": 0},
        ]
        assert {tried["tasks"][step] for step in REEVALUATION_STEPS[1:]} == {"skipped"}
        assert tried["events"] == []

    def test_the_real_run_does_what_was_told_and_embeds_nothing(self, reevaluations: list[dict[str, Any]]) -> None:
        tried, raised, again, _ = reevaluations
        assert raised["state"] == "success"
        assert raised["tasks"]["embed"] == "skipped"
        (event,) = raised["events"]
        assert (event["asset"], event["extra"]["changes"]) == ("vouch_index", tried["returned"]["preview"]["changes"])
        assert (event["extra"]["leaving"], event["extra"]["embedded"]) == (3, 0)
        assert raised["returned"]["verify"] == event["extra"]
        assert (again["state"], again["returned"]["verify"]["written"]) == ("success", 0)

    def test_without_a_threshold_the_setting_holds_and_all_come_back(self, reevaluations: list[dict[str, Any]]) -> None:
        report = reevaluations[3]["returned"]["verify"]
        assert (report["thresholds"]["default"], report["entering"], report["embedded"]) == (0, 3, 0)


GOLDEN = {"qid": "golden-1", "question": "every order", "gold": ["shop:term:revenue"]}


@pytest.fixture(scope="module")
def evaluations(
    runs: list[dict[str, Any]], postgres_server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """On the index that `runs` has made: without a file, then with one whose baseline is better than the index."""
    home = tmp_path_factory.mktemp("airflow-evaluation")
    assert runs[3]["events"]
    uri = postgres_server.uri("airflow_run")
    settings = {"VOUCH_DATABASE_URL": uri, "VOUCH_HOME": str(home)}
    without_file = probe(home, *("run", str(DAGS), "retrieval_evaluation", "[{}]"), **settings)
    file = home / "golden.jsonl"
    file.write_text(json.dumps(GOLDEN) + "\n", encoding="utf-8")
    database = PgDatabase(uri)
    (query,) = read_queries(file)
    better = AnsweredQuery(query.digest, query.qid, query.question, QueryOutcome(1.0, {query.gold[0]: 1}, query.gold))
    evaluation = Evaluation("seeded", datetime(2026, 3, 1, tzinfo=UTC), 1, "", {"queries": 1}, (better,))
    store = PgEvaluationStore(database)
    store.record(evaluation, lambda before: decide(before, evaluation.answered, accept=False), kept=10)
    with_file = probe(
        home,
        *("run", str(DAGS), "retrieval_evaluation", json.dumps([{}, {"accept": True}, {}])),
        VOUCH_GOLDEN_QUERIES_FILE=str(file),
        **settings,
    )
    kept = [(run.status.value, run.fallen) for run in store.recent(10)]
    database.close()
    return {"without_file": without_file, "with_file": with_file, "kept": kept}


class TestGoldenQueriesAsked:
    """Through Airflow itself."""

    def test_without_a_file_the_task_is_skipped(self, evaluations: dict[str, Any]) -> None:
        (run,) = evaluations["without_file"]
        assert (run["state"], run["tasks"]) == ("success", {"evaluate": "skipped"})

    def test_a_fall_fails_the_task_until_it_is_accepted(self, evaluations: dict[str, Any]) -> None:
        fell, accepted, after = evaluations["with_file"]
        assert (fell["state"], fell["tasks"]) == ("failed", {"evaluate": "failed"})
        assert (accepted["state"], accepted["returned"]["evaluate"]["status"]) == ("success", "accepted")
        assert (after["state"], after["returned"]["evaluate"]["status"]) == ("success", "passed")
        assert after["returned"]["evaluate"]["measures"]["queries"] == 1
        assert evaluations["kept"] == [
            ("passed", ()),
            ("accepted", ("golden-1",)),
            ("fell", ("golden-1",)),
            ("first", ()),
        ]
