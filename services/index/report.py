"""A finished run as people and programs read it."""

from __future__ import annotations

from typing import Any

from services.index.run_store import Run

REPORTED = ("seen", "changed", "written", "embedded", "cached", "unchanged", "quarantined", "deleted", "blocked")
REPORTED_WHEN_PRESENT = ("missing", "would_publish", "would_embed", "rescored", "entered", "left")


def report(run: Run) -> dict[str, Any]:
    """A run as `vouch refresh --json` prints it: counts per source and in total, status, index version."""
    names = list(dict.fromkeys([*run.sources, *run.counts]))
    per_source = {name: _source_report(run, name) for name in names}
    extra = [name for name in REPORTED_WHEN_PRESENT if any(name in counts for counts in per_source.values())]
    total: dict[str, Any] = {
        name: sum(int(counts.get(name, 0)) for counts in per_source.values()) for name in (*REPORTED, *extra)
    }
    return {
        "run_id": run.run_id,
        "status": run.status,
        "dry_run": run.dry_run,
        "index_version": run.index_version,
        "error": run.error,
        "sources": per_source,
        "total": {**total, "seconds": round(run.seconds, 3)},
    }


def _source_report(run: Run, name: str) -> dict[str, Any]:
    counts = run.counts.get(name, {})
    listing = run.listings.get(name)
    return {
        **{counted: int(counts.get(counted, 0)) for counted in REPORTED},
        **{counted: int(counts[counted]) for counted in REPORTED_WHEN_PRESENT if counted in counts},
        "seconds": counts.get("seconds", 0.0),
        "outcome": listing.outcome if listing else None,
        "detail": listing.detail if listing else "",
    }
