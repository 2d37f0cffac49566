"""From a decoded JSON value to a validated record, or to a rejection that says what is wrong with it."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from services.catalog.model import Asset, CatalogRecord
from services.catalog.sources.base import Rejection
from services.errors import PermanentError
from services.text.clean import scrub

FAULTS_NAMED = 5


class InvalidRecord(PermanentError):
    """A value that is no record; the message names each field at fault, `asset_id` its id where it has a good one."""

    def __init__(self, message: str, asset_id: str | None = None) -> None:
        super().__init__(message)
        self.asset_id = asset_id


def read_record(value: Any, *, overlay: bool) -> tuple[CatalogRecord, list[str]]:
    """The record in a decoded JSON value, and what had to be repaired or is unknown. Raises InvalidRecord."""
    if not isinstance(value, dict):
        raise InvalidRecord(f"not an asset: expected a JSON object, got {type(value).__name__}")
    asset_id = value["id"] if isinstance(value.get("id"), str) else None
    if asset_id is not None and scrub(asset_id)[1]:
        raise InvalidRecord("id: has a NUL or a lone surrogate; an id must be clean, since it is the identity")
    cleaned, replaced = scrub(value)
    try:
        record = (CatalogRecord if overlay else Asset).model_validate(cleaned)
    except ValidationError as error:
        raise InvalidRecord(explain(error), asset_id) from None
    except RecursionError as error:
        raise InvalidRecord("not an asset: nested too deeply", asset_id) from error
    notices = [f"unknown key {key!r} kept in extra" for key in dict.fromkeys(record.unknown_keys())]
    if replaced:
        notices.append("NUL or lone surrogate replaced by U+FFFD")
    return record, notices


def explain(error: ValidationError) -> str:
    """The faults of a record in one line, each with its field."""
    faults = error.errors(include_url=False, include_input=False)
    named = "; ".join(f"{_field(fault['loc'])}: {fault['msg']}" for fault in faults[:FAULTS_NAMED])
    more = len(faults) - FAULTS_NAMED
    return f"{named}; and {more} more" if more > 0 else named


def rejection(record_ref: str, error: InvalidRecord, payload: str = "") -> Rejection:
    """A record that could not be read, as data."""
    return Rejection(record_ref, str(error), payload, error.asset_id)


def _field(location: tuple[int | str, ...]) -> str:
    return ".".join(map(str, location)) or "record"
