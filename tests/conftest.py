"""Fixtures that every kind of test may use."""

from __future__ import annotations

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
SHARED = REPOSITORY.parent / "shared"


@pytest.fixture(scope="session")
def shared_folder() -> Path:
    """Public catalogs and benchmarks kept beside the checkout; tests that read them skip without."""
    if not SHARED.is_dir():
        pytest.skip(f"public catalogs are not here: no folder {SHARED.name!r} beside the checkout")
    return SHARED
