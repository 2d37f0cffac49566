"""One asset as the caller may see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from services.access.principal import Permission, Principal
from services.access.rule import Level
from services.catalog.model import Asset
from services.catalog.parts import Column
from services.context.labels import reference_ids
from services.context.sensitivity import shows_values
from services.errors import AssetNotFound
from services.retrieval.asset_view import AssetView, ChunkView, CurationPart
from services.retrieval.search import governance_parts
from services.retrieval.store import AssetStore, SearchStore, StoredAsset
from services.retrieval.visibility import Visibility
from services.trust.governance import governance_score
from services.trust.rules import TrustRules
from services.trust.signals import Signals


class AssetService:
    """Looks single assets up. A hidden asset and a missing one are answered alike."""

    def __init__(
        self,
        search_store: SearchStore,
        asset_store: AssetStore,
        visibility: Visibility,
        rules: TrustRules,
        now: Callable[[], datetime],
    ) -> None:
        self._search_store = search_store
        self._asset_store = asset_store
        self._visibility = visibility
        self._rules = rules
        self._now = now

    def get(self, asset_id: str, principal: Principal) -> AssetView:
        """Everything about the asset that the caller may see. Raises AssetNotFound.

        Access lists and source code are for those who operate; code only while nothing that the asset is known to
        refer to is hidden from them.
        """
        acl_ids = self._visibility.acl_ids(principal)
        corpus = self._search_store.corpus()
        stored = self._asset_store.asset(asset_id, corpus.version, acl_ids)
        if stored is None:
            raise AssetNotFound(f"there is no asset {asset_id!r} that you may see")
        asset = Asset.model_validate(stored.payload)
        hidden = self._asset_store.hidden(reference_ids(asset) + asset.siblings, acl_ids)
        governance = governance_score(Signals.from_json(stored.signals), self._rules, now=self._now())
        return AssetView(
            index_version=corpus.version or 0,
            data_age_seconds=corpus.data_age_seconds,
            attributes=self._attributes(asset, stored, hidden, principal),
            narrative=stored.narrative,
            chunks=tuple(
                ChunkView(number=number, section=section, text=text) for number, section, text in stored.chunks
            ),
            governance_score=governance.governance_score,
            governance=governance_parts(governance),
            curation_score=stored.curation_score,
            curation=tuple(_curation_part(item) for item in stored.curation),
            eligible=stored.eligible,
            eligibility_reasons=stored.eligibility_reasons,
        )

    def _attributes(
        self, asset: Asset, stored: StoredAsset, hidden: frozenset[str], principal: Principal
    ) -> dict[str, Any]:
        told = asset.payload()
        told |= shown_values(asset, told, Level(stored.classification), self._rules.sensitive_names)
        payload = dict(without_references(told, hidden))
        operates = Permission.OPERATE in principal.permissions
        if not operates:
            payload = _only(payload, "access", ("classification", "workspaces"))
        if not operates or hidden:
            # Code names tables that no lineage may know of, so it is never shown to everybody.
            others = tuple(key for key in payload.get("attributes", ()) if key != "source_code")
            payload = _only(payload, "attributes", others)
        return payload


def _only(payload: Mapping[str, Any], field: str, shown: tuple[str, ...]) -> dict[str, Any]:
    """The payload with no more than the `shown` keys in an object of it, which goes when none of them is left."""
    kept = {key: value for key, value in payload.get(field, {}).items() if key in shown}
    rest = {key: value for key, value in payload.items() if key != field}
    return {**rest, field: kept} if kept else rest


VALUE_FIELDS = ("top_values", "min", "max")


def shown_values(
    asset: Asset, payload: Mapping[str, Any], own_level: Level, sensitive_names: frozenset[str]
) -> dict[str, Any]:
    """`columns` and `sample_rows` of the asset's payload, as far as it has them, without values that are secret.

    A row names columns in any case, and nests what a column's name parts: of "home.street" it holds "home". What it
    holds beside them is secret when the asset as a whole is sensitive.
    """
    secret: set[str] = set()
    listed: set[str] = set()
    for column in asset.columns:
        listed.add(column.name.casefold())
        if not shows_values(column, asset, own_level, sensitive_names):
            secret |= {column.name.casefold(), column.name.casefold().partition(".")[0]}
    unlisted_shown = shows_values(Column(name="beside the columns"), asset, own_level, sensitive_names)

    def shown(name: str) -> bool:
        folded = name.casefold()
        return folded not in secret and (folded in listed or unlisted_shown)

    values: dict[str, Any] = {}
    if "columns" in payload:
        values["columns"] = [_without_values(column, shown(column["name"])) for column in payload["columns"]]
    if "sample_rows" in payload:
        values["sample_rows"] = [{key: row[key] for key in row if shown(key)} for row in payload["sample_rows"]]
    return values


def _without_values(column: Mapping[str, Any], shown: bool) -> dict[str, Any]:
    return {key: value for key, value in column.items() if shown or key not in VALUE_FIELDS}


def without_references(value: Any, hidden: frozenset[str]) -> Any:
    """The value without what refers to a hidden asset: a list entry or field that is its id, a record that has it.

    Records that carry an id of another asset name it as `id` (terms) or `target` (relationships). A `name` stays: that
    of a column or of the asset itself may read like another's id.
    """
    if isinstance(value, dict):
        kept = {
            key: without_references(item, hidden)
            for key, item in value.items()
            if key == "name" or not _is_hidden(item, hidden)
        }
        # A payload holds no empty list or object: one that is left behind would tell that something was taken away.
        return {key: item for key, item in kept.items() if item != [] and item != {}}
    if isinstance(value, list):
        return [without_references(item, hidden) for item in value if not _names_hidden(item, hidden)]
    return value


def _is_hidden(value: Any, hidden: frozenset[str]) -> bool:
    return isinstance(value, str) and value in hidden


def _names_hidden(value: Any, hidden: frozenset[str]) -> bool:
    if isinstance(value, dict):
        return any(_is_hidden(value.get(key), hidden) for key in ("id", "target", "value"))
    return _is_hidden(value, hidden)


def _curation_part(item: Mapping[str, Any]) -> CurationPart:
    return CurationPart(item=item["item"], weight=item["weight"], achieved=item["achieved"], points=item["points"])
