"""The demo's catalog: the shop, crawled live, and the overlay that says what people know of it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import yaml

from services.demo.database import SCHEMAS
from services.errors import SettingsError

DEMO_QUESTION = "Which table should I use for monthly customer revenue?"
SHOP_DATABASE = "shop"  # part of the tables' ids, which the overlay names
OVERLAY = Path(__file__).with_name("overlay.jsonl")
QUESTIONS = Path(__file__).with_name("questions.jsonl")

SOURCES_FILE = "sources.yaml"
MARK = "# The demo's sources. Written by vouch demo, and again while the rest of the file is unchanged; SHA-256 "
PRIVATE = 0o600  # a connection URI may hold a password


def write_demo_sources(home: Path, shop_dsn: str) -> Path:
    """Write `home`/sources.yaml with the demo's two sources, the crawled shop and its overlay; the file's path.

    A file that this function wrote and nobody changed is replaced when it says something else. Raises SettingsError
    when another file stands there (it is left alone) or the folder cannot be written.
    """
    path = home / SOURCES_FILE
    wanted = _marked(_entries(shop_dsn))
    try:
        present = path.read_text(encoding="utf-8") if path.exists() else None
        if present == wanted:
            return path
        if present is not None and not _is_ours(present):
            raise SettingsError(
                f"{path} holds other sources; set VOUCH_HOME to another folder for the demo, or move the file away"
            )
        home.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".new")
        draft.touch(mode=PRIVATE)
        draft.write_text(wanted, encoding="utf-8")
        draft.replace(path)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be written; set VOUCH_HOME to another folder: {error}") from error
    return path


def _entries(shop_dsn: str) -> str:
    shop = {"name": "shop", "kind": "postgres", "dsn": shop_dsn, "schemas": list(SCHEMAS)}
    governance = {"name": "governance", "kind": "jsonl", "path": str(OVERLAY), "overlay": True}
    return yaml.safe_dump({"sources": [shop, governance]}, sort_keys=False, allow_unicode=True, width=1000)


def _marked(entries: str) -> str:
    return f"{MARK}{hashlib.sha256(entries.encode()).hexdigest()}\n{entries}"


def _is_ours(text: str) -> bool:
    _, _, entries = text.partition("\n")
    return text == _marked(entries)
