"""Which interned access lists let a principal in. Lists never change once interned, so only new ones are fetched."""

from __future__ import annotations

import threading

from services.access.principal import Principal
from services.access.rule import AccessRule, visible_ids
from services.retrieval.store import SearchStore

REMEMBERED_CALLERS = 1000


class Visibility:
    """The access lists of one index, kept up to date by asking for newer ones before every answer.

    What lets whom in is worked out once for each caller, and again when there are new lists.
    """

    def __init__(self, store: SearchStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._rules: dict[int, AccessRule] = {}
        self._ids: dict[Principal, tuple[int, ...]] = {}
        self._seq = 0

    def acl_ids(self, principal: Principal) -> tuple[int, ...]:
        """The ids of the lists that let the principal in, as of now. A list that is not known yet lets nobody in."""
        with self._lock:
            for seq, acl_id, rule in self._store.access_lists(self._seq):
                self._rules[acl_id] = rule
                self._seq = seq
                self._ids.clear()
            known = self._ids.get(principal)
            if known is not None:
                return known
            rules, as_of = dict(self._rules), self._seq
        ids = tuple(visible_ids(rules, principal))
        with self._lock:
            if as_of == self._seq:  # else there are new lists meanwhile
                if len(self._ids) == REMEMBERED_CALLERS:
                    self._ids.clear()
                self._ids[principal] = ids
        return ids
