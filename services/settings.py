"""Every setting, read once and typed: environment `VOUCH_*` over the defaults here; sources from a YAML file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import psycopg
import yaml
from psycopg.conninfo import conninfo_to_dict
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings.exceptions import SettingsError as UnreadableValue

from services.errors import SettingsError

PREFIX = "VOUCH_"
Percent = Annotated[float, Field(ge=0, le=100)]


class Settings(BaseSettings):
    """Settings of one process. `load_settings` builds it and names what is wrong; nothing else reads `os.environ`."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="forbid")

    home: Path = Field(default=Path(".vouch"), description="embedded database, exported models, Airflow home, logs")
    engine: Literal["pgvector"] = Field(default="pgvector", description="where the index lives")
    database_url: SecretStr | None = Field(default=None, description="unset: the embedded PostgreSQL under home")
    sources_file: Path | None = Field(default=None, description="unset: sources.yaml under home, if it is there")
    trust_rules: Path | None = Field(default=None, description="extends the trust rules that come with the package")
    golden_queries_file: Path | None = Field(default=None, description="queries with known answers; unset: none asked")

    model: str = Field(default="all-MiniLM-L6-v2", description="embedding model: the packaged one, or a folder")
    embed_batch_texts: int = Field(default=512, ge=1, le=100_000, description="texts that one embedding task takes")
    embed_batch_rows: int = Field(default=32, ge=1, le=4096, description="texts in one forward pass")
    embed_precision: Literal["auto", "float32", "bfloat16"] = Field(
        default="auto", description="of documents; auto: bfloat16 where the processor multiplies it"
    )
    embed_threads: int | None = Field(default=None, ge=1, le=1024, description="unset: all processors")

    default_classification: Literal["Public", "Internal", "Confidential", "Restricted"] = "Internal"
    prefer_native_curation: bool = False
    gate_threshold: Percent = Field(default=0, description="least curation score that is eligible")
    gate_threshold_by_type: dict[str, Percent] = Field(default_factory=dict)
    gate_threshold_by_source: dict[str, Percent] = Field(default_factory=dict)

    quarantine_limit_percent: Percent = Field(default=1, description="of a run's records; with quarantine_limit_count")
    quarantine_limit_count: int = Field(default=20, ge=0)
    lease_seconds: int = Field(
        default=900, ge=10, le=604_800, description="after this silence a refresh counts as dead"
    )

    min_relevance: float = Field(default=0.2, ge=0, le=1, description="analysis refuses when nothing reaches it")
    pin_exact_names: bool = True
    exact_scan_rows: int = Field(
        default=10_000,
        ge=0,
        le=1_000_000_000,
        description="so many visible chunks are compared exactly; more where most are hidden",
    )
    statement_timeout_ms: int = Field(default=2000, ge=100, le=3_600_000)
    pool_size: int = Field(default=4, ge=2, le=100, description="a refresh reads on one and writes on another")

    api_host: str = "127.0.0.1"
    api_port: int = Field(default=8787, ge=1, le=65535)
    api_threads: int = Field(default=4, ge=1, le=64)
    airflow_port: int = Field(default=8080, ge=1, le=65535)
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @field_validator("database_url")
    @classmethod
    def _readable(cls, url: SecretStr | None) -> SecretStr | None:
        try:
            conninfo_to_dict("" if url is None else url.get_secret_value())
        except psycopg.ProgrammingError:  # quotes the URL, password and all, so it is not passed on
            raise ValueError(
                "neither 'key=value ...' nor a postgresql:// URI (special characters of a password in a URI are"
                " percent-encoded)"
            ) from None
        return url

    @property
    def sources_path(self) -> Path | None:
        """The sources file in force, or None when there is none."""
        default = self.home / "sources.yaml"
        return self.sources_file or (default if default.is_file() else None)


class SourceSettings(BaseModel):
    """One entry of the sources file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")
    kind: Literal["jsonl", "postgres", "datahub"]
    path: Path | None = Field(default=None, description="jsonl, datahub: the file or folder")
    connection: str | None = Field(default=None, description="Airflow Connection id; environment AIRFLOW_CONN_<ID>")
    dsn: SecretStr | None = Field(default=None, description="postgres: a connection URI")
    overlay: bool = False
    schemas: tuple[str, ...] = Field(default=(), description="postgres: only these; empty: all")
    top_values: bool = Field(default=True, description="postgres: read the most common values")
    classification: str | None = Field(default=None, description="postgres: the access classification of what it lists")

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        if self.kind == "postgres":
            if (self.dsn is None) == (self.connection is None):
                raise ValueError("a postgres source needs either dsn or connection")
            if self.path is not None:
                raise ValueError("a postgres source has no path")
            return self
        if self.path is None:
            raise ValueError(f"a {self.kind} source needs a path")
        if "\0" in str(self.path):
            raise ValueError("a path holds no NUL character")
        given = self.model_fields_set & {"dsn", "connection", "schemas", "top_values", "classification"}
        if given:
            raise ValueError(f"a {self.kind} source has no {', '.join(sorted(given))}")
        return self


class SourcesFile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    sources: tuple[SourceSettings, ...] = ()

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        names = [source.name for source in self.sources]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"the source name {twice[0]!r} stands twice")
        return self


def load_settings(**overrides: Any) -> Settings:
    """The settings from the environment. Raises SettingsError for an unknown `VOUCH_*` variable or a bad value."""
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    unknown = sorted(name for name in os.environ if name.upper().startswith(PREFIX) and name.upper() not in known)
    if unknown:
        raise SettingsError(f"unknown setting {', '.join(unknown)}; known are: {', '.join(sorted(known))}")
    try:
        settings = Settings(**overrides)
    except ValidationError as error:
        raise SettingsError(_explain(error, lambda where: PREFIX + where.upper())) from None
    except UnreadableValue as error:
        named = [PREFIX + name.upper() for name in Settings.model_fields if f'"{name}"' in str(error)]
        raise SettingsError(f"{', '.join(named) or PREFIX}: Input should be a JSON object") from None
    return settings.model_copy(update={"home": settings.home.absolute()})


def load_sources(path: Path) -> tuple[SourceSettings, ...]:
    """The entries of a sources file, relative paths taken from the file's folder. Raises SettingsError."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"sources file {path} cannot be read: {error.strerror}") from error
    except yaml.MarkedYAMLError as error:
        # The error's own text quotes the file, which may hold a password.
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise SettingsError(f"sources file {path} is not YAML: {line}{error.problem}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(f"sources file {path} is not YAML: it holds characters that are not UTF-8 text") from error
    except (ValueError, RecursionError) as error:  # a date or number that there is not, or nested beyond reading
        raise SettingsError(f"sources file {path} holds an impossible value: {error}; put quotes around it") from None
    try:
        parsed = SourcesFile.model_validate({} if document is None else document)
    except ValidationError as error:
        raise SettingsError(f"sources file {path}: {_explain(error, str)}") from None
    return tuple(_anchored(source, path.absolute().parent) for source in parsed.sources)


def _anchored(source: SourceSettings, folder: Path) -> SourceSettings:
    if source.path is None or source.path.is_absolute():
        return source
    return source.model_copy(update={"path": folder / source.path})


def _explain(error: ValidationError, spell: Any) -> str:
    """Every fault with the key it stands at; values are left out, they may be secrets."""
    faults = error.errors(include_url=False, include_input=False)
    return "; ".join(f"{spell('.'.join(map(str, fault['loc'])) or 'file')}: {fault['msg']}" for fault in faults)


def connection_from_environment(connection_id: str, environ: Mapping[str, str] | None = None) -> str:
    """The connection URI or JSON that Airflow's convention keeps under AIRFLOW_CONN_<ID>. Raises SettingsError."""
    variable = f"AIRFLOW_CONN_{connection_id.upper()}"
    value = (os.environ if environ is None else environ).get(variable)
    if not value:
        raise SettingsError(f"connection {connection_id!r} is unknown; set {variable} to its URI or JSON")
    return value
