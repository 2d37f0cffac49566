"""Everything that the refresh may rely on, whichever engine keeps the index.

An engine's test class inherits `StoreContract` and gives the fixture `engine`.
"""

from __future__ import annotations

from tests.contract.draft_contract import DraftContract
from tests.contract.publish_contract import PublishContract
from tests.contract.record_contract import RecordContract
from tests.contract.run_contract import RunContract
from tests.contract.score_contract import ScoreContract


class StoreContract(RunContract, RecordContract, DraftContract, PublishContract, ScoreContract):
    """All parts together."""
