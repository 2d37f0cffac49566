"""What stewards should mend: the assets below their threshold, as far as the caller may see them."""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from services.access.principal import Principal
from services.catalog.model import ObjectType
from services.errors import InvalidRequest
from services.retrieval.search import governance_parts
from services.retrieval.store import RolesWork, SearchStore, StoredWork, WorklistStore, WorkPosition, WorkScope
from services.retrieval.visibility import Visibility
from services.retrieval.worklist_view import (
    CONTACTS_SHOWN,
    ContactView,
    ContactWork,
    StepView,
    WorklistItem,
    WorklistPage,
    WorklistRequest,
    WorklistSummary,
)
from services.text.clean import scrub
from services.trust.curation import POINTS_DECIMALS
from services.trust.governance import governance_score
from services.trust.rules import TrustRules
from services.trust.signals import Signals
from services.trust.stewardship import ScoredAsset, Step, contact, worklist_entry


class WorklistService:
    """Pages of the work list. Rows, totals and cursors are made of what the caller may see, and of nothing else."""

    def __init__(
        self,
        search_store: SearchStore,
        worklist_store: WorklistStore,
        visibility: Visibility,
        rules: TrustRules,
        now: Callable[[], datetime],
    ) -> None:
        self._search_store = search_store
        self._worklist_store = worklist_store
        self._visibility = visibility
        self._rules = rules
        self._now = now

    def page(self, request: WorklistRequest, principal: Principal) -> WorklistPage:
        """One page. Raises InvalidRequest for a cursor that is none."""
        after = None if request.cursor is None else position_of(request.cursor)
        corpus = self._search_store.corpus()
        scope = WorkScope(
            acl_ids=self._visibility.acl_ids(principal),
            sources=request.source,
            object_types=tuple(map(str, request.type)),
            owners=request.owner,
        )
        # One more than is shown tells whether there is a next page.
        found = self._worklist_store.page(scope, after, request.limit + 1)
        shown = found[: request.limit]
        summed_up = request.summary and after is None
        now = self._now()
        return WorklistPage(
            index_version=corpus.version or 0,
            data_age_seconds=corpus.data_age_seconds,
            entries=tuple(self._item(work, now) for work in shown),
            next_cursor=cursor_of(shown[-1].position) if len(found) > len(shown) else None,
            summary=summarised(self._worklist_store.by_roles(scope)) if summed_up else None,
        )

    def pages(self, request: WorklistRequest, principal: Principal) -> Iterator[WorklistPage]:
        """The page that is asked for and all that follow, each read when it is wanted."""
        while True:
            page = self.page(request, principal)
            yield page
            if page.next_cursor is None:
                return
            request = request.model_copy(update={"cursor": page.next_cursor})

    def _item(self, work: StoredWork, now: datetime) -> WorklistItem:
        entry = worklist_entry(
            ScoredAsset(
                asset_id=work.id,
                name=work.name,
                object_type=work.object_type,
                source=work.source,
                curation=work.curation,
                threshold=work.threshold,
                roles=work.roles,
            )
        )
        governance = governance_score(Signals.from_json(work.signals), self._rules, now=now)
        native = work.curation.native
        return WorklistItem(
            id=work.id,
            object_type=ObjectType(work.object_type),
            name=work.name,
            title=work.title,
            source=work.source,
            url=work.url,
            curation_score=work.curation.curation_score,
            curation_native=native,
            threshold=work.threshold,
            points_missing=entry.points_missing,
            gaps=tuple(_step(step, promised=not native) for step in entry.gaps),
            fewest_steps=tuple(_step(step, promised=not native) for step in entry.fewest_steps),
            curation_score_after=entry.curation_score_after,
            contact=ContactView(role=entry.contact.role or None, names=entry.contact.names),
            governance_score=governance.governance_score,
            governance=governance_parts(governance),
        )


def _step(step: Step, *, promised: bool) -> StepView:
    return StepView(item=step.item, points=step.points if promised else None, step=step.text)


def summarised(groups: Iterable[RolesWork]) -> WorklistSummary:
    """Totals, and the work by whom to ask, out of groups of assets that have the same governance roles."""
    assets, points = 0, 0.0
    by_name: dict[str | None, tuple[int, float]] = {}
    for group in groups:
        assets += group.assets
        points += group.points_missing
        for name in contact(group.roles).names or (None,):
            so_far = by_name.get(name, (0, 0.0))
            by_name[name] = (so_far[0] + group.assets, so_far[1] + group.points_missing)
    works = [
        ContactWork(name=name, assets=count, points_missing=round(missing, POINTS_DECIMALS))
        for name, (count, missing) in by_name.items()
    ]
    works.sort(key=lambda work: (-work.assets, work.name or ""))
    return WorklistSummary(
        assets=assets,
        points_missing=round(points, POINTS_DECIMALS),
        contacts=sum(name is not None for name in by_name),
        by_contact=tuple(works[:CONTACTS_SHOWN]),
    )


def cursor_of(position: WorkPosition) -> str:
    """A position as callers carry it; it tells of the last entry they were shown, and of no other asset."""
    text = json.dumps([position.points_missing, position.id], ensure_ascii=False)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def position_of(cursor: str) -> WorkPosition:
    """What `cursor_of` was given. Raises InvalidRequest for any other text."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
        points_missing, asset_id = json.loads(text)
    except (binascii.Error, ValueError, TypeError, RecursionError) as error:
        raise _no_cursor() from error
    if not isinstance(points_missing, float) or not math.isfinite(points_missing):
        raise _no_cursor()
    if not isinstance(asset_id, str) or scrub(asset_id)[1]:
        raise _no_cursor()
    return WorkPosition(points_missing, asset_id)


def _no_cursor() -> InvalidRequest:
    return InvalidRequest("cursor: this is none; give the next_cursor of the page before, unchanged")
