"""What the query API stands on: small protocols, implemented below and put together in `services.wiring`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from services.access.principal import Principal
from services.retrieval.asset_view import AssetView
from services.retrieval.model import SearchAnswer, SearchRequest
from services.retrieval.status import Readiness, StatusReport
from services.retrieval.worklist_view import WorklistPage, WorklistRequest


class Search(Protocol):
    def search(self, request: SearchRequest, principal: Principal, request_id: str) -> SearchAnswer:
        """The answer under the caller's access. Raises InvalidRequest, TransientError, PermanentError."""
        ...


class Assets(Protocol):
    def get(self, asset_id: str, principal: Principal) -> AssetView:
        """The asset as the caller may see it. Raises AssetNotFound for a hidden and for a missing one alike."""
        ...


class Worklist(Protocol):
    def page(self, request: WorklistRequest, principal: Principal) -> WorklistPage:
        """A page of what stewards should mend, under the caller's access. Raises InvalidRequest for a bad cursor."""
        ...

    def pages(self, request: WorklistRequest, principal: Principal) -> Iterator[WorklistPage]:
        """That page and all that follow, each read when it is wanted."""
        ...


class Status(Protocol):
    def status(self, principal: Principal) -> StatusReport:
        """Freshness per source, the last runs, how scores drift."""
        ...


class ReadinessProbe(Protocol):
    def check(self) -> Readiness:
        """Whether questions can be answered now; what fails is said in the checks, not raised."""
        ...


class Keys(Protocol):
    def authenticate(self, token: str) -> Principal | None:
        """The caller that the token names; None for a malformed, unknown, wrong, expired or revoked one alike."""
        ...


@dataclass(frozen=True)
class QueryServices:
    """One of each, shared by all requests and so by all threads."""

    search: Search
    assets: Assets
    worklist: Worklist
    status: Status
    readiness: ReadinessProbe
    keys: Keys
