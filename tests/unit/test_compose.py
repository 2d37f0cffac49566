"""docker-compose.yaml and its Dockerfiles, as far as they can be checked without a container engine."""

from __future__ import annotations

import importlib.resources
import importlib.util
import json
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema.validators import validator_for

from services.settings import PREFIX, Settings

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docker-compose.yaml").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILES = sorted((ROOT / "docker").glob("*.Dockerfile"))
IMAGE_USER = "10001:10001"

VARIABLE = re.compile(r"\$\{(?P<name>[A-Z][A-Z0-9_]*)(?P<rule>:[?-])?(?P<rest>[^}]*)\}")
SECRET_NAME = re.compile(r"PASSWORD|SECRET|FERNET|TOKEN|DSN")
URI_PASSWORD = re.compile(r"://[^:/@\s]+:(?P<password>.+)@")


def violations(document: dict[str, Any]) -> list[str]:
    """What the published Compose Specification schema says against the document."""
    schemas = importlib.resources.files("check_jsonschema") / "builtin_schemas" / "vendor"
    schema = json.loads((schemas / "compose-spec.json").read_text(encoding="utf-8"))
    return [error.message for error in validator_for(schema)(schema).iter_errors(document)]


def environment() -> Iterator[tuple[str, str, str]]:
    """(service, variable, value) of the whole file."""
    for name, service in SERVICES.items():
        for variable, value in service.get("environment", {}).items():
            yield name, variable, str(value)


def one_shot(service: dict[str, Any]) -> bool:
    return service.get("restart") == "no"


def test_the_file_follows_the_compose_specification() -> None:
    assert violations(COMPOSE) == []


def test_the_schema_would_notice_a_wrong_key_and_a_wrong_condition() -> None:
    wrong_key = {"services": {"a": {"image": "a:1", "healthchek": {}}}}
    wrong_condition = {"services": {"a": {"image": "a:1", "depends_on": {"b": {"condition": "healthy"}}}}}
    assert any("healthchek" in violation for violation in violations(wrong_key))
    assert violations(wrong_condition)


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_watched_or_a_job_that_somebody_waits_for(name: str) -> None:
    service = SERVICES[name]
    if one_shot(service):
        waiting = [s for s in SERVICES.values() if s.get("depends_on", {}).get(name)]
        assert {s["depends_on"][name]["condition"] for s in waiting} == {"service_completed_successfully"}
    else:
        assert service["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}
        assert service["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_runs_without_root_and_cannot_gain_it(name: str) -> None:
    service = SERVICES[name]
    assert service["user"] in {IMAGE_USER, "postgres"}
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in service


@pytest.mark.parametrize("name", SERVICES)
def test_images_are_pinned_and_ports_stay_on_loopback(name: str) -> None:
    assert re.search(r":v?\d+\.\d+\.\d+", SERVICES[name]["image"])
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name].get("ports", []))


def test_services_start_in_the_order_of_health() -> None:
    graph = {name: set(service.get("depends_on", {})) for name, service in SERVICES.items()}
    order = list(TopologicalSorter(graph).static_order())
    assert order.index("postgres") < order.index("vouch-migrate") < order.index("vouch-api")
    assert order.index("airflow-init") < order.index("airflow-api-server") < order.index("airflow-scheduler")
    for service in SERVICES.values():
        for needed, how in service.get("depends_on", {}).items():
            expected = "service_completed_successfully" if one_shot(SERVICES[needed]) else "service_healthy"
            assert how["condition"] == expected


def test_no_secret_is_written_down_and_none_has_a_default() -> None:
    for name, variable, value in environment():
        passwords = [found["password"] for found in URI_PASSWORD.finditer(value)]
        if SECRET_NAME.search(variable) and not variable.endswith("_FILE"):
            passwords.append(value)
        for password in passwords:
            found = VARIABLE.fullmatch(password)
            assert found, f"{name}: {variable} holds a literal"
            assert found["rule"] == ":?", f"{name}: {variable} may be empty"
            assert found["rest"], f"{name}: {variable} does not say what it is"


def test_our_variables_are_settings() -> None:
    known = {PREFIX + field.upper() for field in Settings.model_fields}
    ours = {variable for _, variable, _ in environment() if variable.startswith(PREFIX)}
    assert ours
    assert ours <= known
    # A variable in the operator's own environment must not stop the command line there either.
    assert {found["name"] for found in VARIABLE.finditer(TEXT) if found["name"].startswith(PREFIX)} <= known


def test_airflow_variables_are_options_of_airflow() -> None:
    spec = importlib.util.find_spec("airflow")
    assert spec and spec.submodule_search_locations
    template = Path(spec.submodule_search_locations[0]) / "config_templates" / "config.yml"
    options = yaml.safe_load(template.read_text(encoding="utf-8"))
    known = {
        f"AIRFLOW__{section}__{option}".upper() for section, content in options.items() for option in content["options"]
    }
    used = {variable for _, variable, _ in environment() if variable.startswith("AIRFLOW__")}
    assert len(used) > 10
    assert used <= known


def test_only_the_services_that_need_a_secret_have_it() -> None:
    def holders(variable: str) -> set[str]:
        return {name for name, held, _ in environment() if held == variable}

    assert holders("VOUCH_DATABASE_URL") == {"vouch-migrate", "vouch-api", "airflow-scheduler"}
    assert holders("VOUCH_LOG_LEVEL") == {"vouch-api"}  # Airflow configures the logging of its tasks itself
    signing = {"airflow-api-server", "airflow-scheduler", "airflow-triggerer"}
    assert holders("AIRFLOW__API_AUTH__JWT_SECRET") == holders("AIRFLOW__API__SECRET_KEY") == signing
    assert holders("AIRFLOW_ADMIN_PASSWORD") == {"airflow-api-server"}


def test_the_example_environment_names_every_variable_and_fills_in_no_secret() -> None:
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    required = dict(re.findall(r"^([A-Z_]+)=(.*)$", example, flags=re.MULTILINE))
    optional = dict(re.findall(r"^#([A-Z_]+)=(.*)$", example, flags=re.MULTILINE))
    found = list(VARIABLE.finditer(TEXT))
    assert set(required) == {variable["name"] for variable in found if variable["rule"] == ":?"}
    assert not any(required.values())
    defaults = {variable["name"]: variable["rest"] for variable in found if variable["rule"] == ":-"}
    assert set(optional) == set(defaults)
    assert {name: optional[name] for name, value in defaults.items() if value} == {
        name: value for name, value in defaults.items() if value
    }
    assert re.search(r"at least 64 bytes.*\nAIRFLOW_JWT_SECRET=", example)


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.name)
def test_dockerfiles_copy_what_exists_and_end_as_an_ordinary_user(dockerfile: Path) -> None:
    lines = dockerfile.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    sources = [
        source for line in lines if line.startswith("COPY ") and "--from=" not in line for source in line.split()[1:-1]
    ]
    allowed = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert {source for source in sources if f"!{source}" not in allowed} == set()
    assert {source for source in sources if not (ROOT / source).exists()} == set()
    assert [line for line in lines if line.startswith("USER ")][-1] == f"USER {IMAGE_USER}"
    assert all(re.search(r":\d+\.\d+\.\d+", line) for line in lines if line.startswith("FROM "))
    assert any("--constraint constraints.txt" in line for line in lines)


def test_the_image_of_the_query_api_carries_no_airflow() -> None:
    def installs(name: str) -> list[str]:
        return re.findall(r"pip install .*", (ROOT / "docker" / name).read_text(encoding="utf-8"))

    assert [".[airflow]" in line for line in installs("airflow.Dockerfile")] == [True]
    assert ["airflow" in line for line in installs("api.Dockerfile")] == [False]
    for name, service in SERVICES.items():
        expected = "api.Dockerfile" if name.startswith("vouch-") else "airflow.Dockerfile"
        assert name == "postgres" or service["build"]["dockerfile"] == f"docker/{expected}"


def test_the_migration_runs_our_own_command() -> None:
    assert SERVICES["vouch-migrate"]["command"] == ["vouch", "db", "migrate"]
