"""Settings: what is read from where, and that whatever is wrong is named by its key and keeps its secrets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from services.errors import SettingsError
from services.settings import (
    Settings,
    SourceSettings,
    connection_from_environment,
    load_settings,
    load_sources,
)

SECRET = "hunter2-hunter2"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("VOUCH_"):
            monkeypatch.delenv(name)


def sources_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "sources.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_environment_wins_over_the_defaults_and_types_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOUCH_API_PORT", "9000")
    monkeypatch.setenv("VOUCH_PIN_EXACT_NAMES", "false")
    monkeypatch.setenv("VOUCH_GATE_THRESHOLD_BY_TYPE", '{"table": 40}')
    settings = load_settings()
    assert (settings.api_port, settings.pin_exact_names) == (9000, False)
    assert settings.gate_threshold_by_type == {"table": 40.0}


def test_home_is_absolute_so_that_a_change_of_folder_moves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOUCH_HOME", "here")
    assert load_settings().home == Path.cwd() / "here"


def test_an_unknown_setting_stops_the_start_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOUCH_TRESHOLD", "40")
    with pytest.raises(SettingsError, match=r"unknown setting VOUCH_TRESHOLD; known are: .*VOUCH_GATE_THRESHOLD"):
        load_settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("VOUCH_API_PORT", "0"),
        ("VOUCH_EMBED_THREADS", "9999999999"),
        ("VOUCH_EXACT_SCAN_ROWS", "99999999999999999999"),
        ("VOUCH_LEASE_SECONDS", "999999999999"),
        ("VOUCH_STATEMENT_TIMEOUT_MS", "99999999999"),
        ("VOUCH_API_PORT", "http"),
        ("VOUCH_ENGINE", "sqlite"),
        ("VOUCH_GATE_THRESHOLD", "101"),
        ("VOUCH_MIN_RELEVANCE", "-0.1"),
        ("VOUCH_DEFAULT_CLASSIFICATION", "Secret"),
        ("VOUCH_GATE_THRESHOLD_BY_TYPE", "table=40"),
        ("VOUCH_GATE_THRESHOLD_BY_SOURCE", "40"),
        ("VOUCH_GATE_THRESHOLD_BY_TYPE", '{"table": 400}'),
        ("VOUCH_POOL_SIZE", "1"),
    ],
)
def test_an_impossible_value_stops_the_start_by_its_key(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=f"^{name}"):
        load_settings()


def test_no_message_and_no_print_shows_the_database_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOUCH_DATABASE_URL", f"postgresql://u:{SECRET}@h/d")
    assert SECRET not in repr(load_settings())
    monkeypatch.setenv("VOUCH_API_PORT", "x")
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "url", [f"http://u:{SECRET}@h/d", f"postgresql://u:{SECRET}%@h/d", f"dbname=x {SECRET}", "localhost"]
)
def test_a_database_url_that_is_none_is_named_and_not_told(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("VOUCH_DATABASE_URL", url)
    with pytest.raises(SettingsError, match=r"^VOUCH_DATABASE_URL: ") as caught:
        load_settings()
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["VOUCH_HOME", "VOUCH_DATABASE_URL", "VOUCH_MODEL", "VOUCH_TRUST_RULES", "VOUCH_API_PORT"]
)
def test_an_empty_variable_is_an_unset_one(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    without = load_settings()
    monkeypatch.setenv(name, "")
    assert load_settings() == without


def test_a_misspelt_setting_is_noticed_in_small_letters_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("vouch_treshold", "40")
    with pytest.raises(SettingsError, match="unknown setting vouch_treshold"):
        load_settings()


def test_every_setting_can_be_given_and_has_a_default() -> None:
    assert load_settings() == load_settings(**{name: getattr(load_settings(), name) for name in Settings.model_fields})


def test_the_sources_file_below_home_is_taken_when_it_is_there(tmp_path: Path) -> None:
    settings = load_settings(home=tmp_path)
    assert settings.sources_path is None
    path = sources_file(tmp_path, "sources: []")
    assert settings.sources_path == path
    assert load_settings(home=tmp_path, sources_file=tmp_path / "other.yaml").sources_path == tmp_path / "other.yaml"


def test_paths_are_taken_from_the_files_own_folder(tmp_path: Path) -> None:
    text = "sources: [{name: a, kind: jsonl, path: x/a.jsonl}, {name: b, kind: datahub, path: /abs, overlay: true}]"
    first, second = load_sources(sources_file(tmp_path, text))
    assert (first.path, first.overlay) == (tmp_path / "x/a.jsonl", False)
    assert (second.path, second.overlay) == (Path("/abs"), True)


def test_a_blank_sources_file_has_no_sources(tmp_path: Path) -> None:
    assert load_sources(sources_file(tmp_path, "# nothing yet\n")) == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sources: [{name: a, kind: oracle, path: x}]", "sources.0.kind"),
        ("sources: [{name: a, kind: jsonl}]", "sources.0: Value error, a jsonl source needs a path"),
        ("sources: [{name: a, kind: jsonl, path: x, colour: red}]", "sources.0.colour: Extra inputs"),
        ("sources: [{name: a, kind: jsonl, path: x, schemas: [s]}]", "a jsonl source has no schemas"),
        ("sources: [{name: a/b, kind: jsonl, path: x}]", "sources.0.name"),
        ("sources: [{name: a, kind: postgres}]", "needs either dsn or connection"),
        ("sources: [{name: a, kind: postgres, dsn: x, connection: y}]", "needs either dsn or connection"),
        ("sources: [{name: a, kind: postgres, dsn: x, path: y}]", "has no path"),
        ("sources: [{name: a, kind: jsonl, path: x}, {name: a, kind: jsonl, path: y}]", "'a' stands twice"),
        ("sources: 5", "sources: Input should be"),
        ("[a, b]", "file: Input should be"),
        ("source: []", "source: Extra inputs"),
    ],
)
def test_what_is_wrong_with_a_sources_file_is_named_by_its_key(tmp_path: Path, text: str, said: str) -> None:
    path = sources_file(tmp_path, text)
    with pytest.raises(SettingsError) as caught:
        load_sources(path)
    assert f"sources file {path}: " in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        f"sources: [{{name: a, kind: postgres, dsn: 'postgresql://u:{SECRET}@h/d'",
        f"sources:\n  - name: a\n    dsn: postgresql://u:{SECRET}@h/d\n   kind: postgres",
        f"sources: [{{name: a, kind: jsonl, path: x, dsn: 'postgresql://u:{SECRET}@h/d'}}]",
    ],
)
def test_a_broken_sources_file_does_not_tell_its_passwords(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_sources(sources_file(tmp_path, text))
    assert SECRET not in str(caught.value)


def test_broken_yaml_is_named_by_its_line(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"is not YAML: line 3: "):
        load_sources(sources_file(tmp_path, "sources:\n  - name: a\n kind: b\n"))


@pytest.mark.parametrize(
    "value",
    ["2020-13-45", "9" * 5000, "[" * 3000 + "]" * 3000],
    ids=["a date that there is not", "a number without end", "nested without end"],
)
def test_yaml_that_no_value_can_be_read_from_names_the_file(tmp_path: Path, value: str) -> None:
    path = sources_file(tmp_path, f"sources: {value}")
    with pytest.raises(SettingsError, match=f"^sources file {path} holds an impossible value"):
        load_sources(path)


def test_a_path_with_a_nul_character_is_no_path(tmp_path: Path) -> None:
    text = 'sources: [{name: a, kind: jsonl, path: "a\\0b"}]'
    with pytest.raises(SettingsError, match=r"sources\.0: Value error, a path holds no NUL character"):
        load_sources(sources_file(tmp_path, text))


def test_a_sources_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        load_sources(tmp_path / "nowhere.yaml")
    (tmp_path / "sources.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingsError, match="is not YAML"):
        load_sources(tmp_path / "sources.yaml")


def test_a_secret_is_not_in_a_printed_source() -> None:
    given: dict[str, Any] = {"name": "a", "kind": "postgres", "dsn": f"postgresql://u:{SECRET}@h/d"}
    assert SECRET not in repr(SourceSettings(**given))


def test_connections_come_from_airflows_variable() -> None:
    assert connection_from_environment("shop", {"AIRFLOW_CONN_SHOP": "postgres://h/d"}) == "postgres://h/d"
    with pytest.raises(SettingsError, match="set AIRFLOW_CONN_SHOP"):
        connection_from_environment("shop", {})
