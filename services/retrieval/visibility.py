"""Which interned access lists let a principal in. Lists never change once interned, so only new ones are fetched."""

from __future__ import annotations

import threading

from services.access.principal import Principal
from services.access.rule import AccessRule, visible_ids
from services.retrieval.store import SearchStore


class Visibility:
    """The access lists of one index, kept up to date by asking for newer ones before every answer."""

    def __init__(self, store: SearchStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._rules: dict[int, AccessRule] = {}
        self._seq = 0

    def acl_ids(self, principal: Principal) -> tuple[int, ...]:
        """The ids of the lists that let the principal in, as of now. A list that is not known yet lets nobody in."""
        with self._lock:
            for seq, acl_id, rule in self._store.access_lists(self._seq):
                self._rules[acl_id] = rule
                self._seq = seq
            rules = dict(self._rules)
        return tuple(visible_ids(rules, principal))
