"""The suites live in modules of their own; their assertions shall explain themselves all the same."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite(
    "tests.contract.draft_contract",
    "tests.contract.evaluation_contract",
    "tests.contract.publish_contract",
    "tests.contract.record_contract",
    "tests.contract.run_contract",
    "tests.contract.score_contract",
    "tests.contract.search_contract",
)
