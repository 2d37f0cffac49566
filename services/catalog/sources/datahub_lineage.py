"""What flows where, as each entity states it about itself."""

from __future__ import annotations

from collections.abc import Iterator

from services.catalog.sources.datahub_aspects import Aspect
from services.catalog.sources.datahub_files import Entity


def flows(entity: Entity) -> Iterator[tuple[str, str]]:
    """(upstream urn, downstream urn) pairs, repeats and loops to itself included."""
    upstream: list[str] = []
    downstream: list[str] = []
    if entity.kind == "dataset":
        upstream += _named(entity.aspect("upstreamLineage"), "upstreams", "dataset")
    elif entity.kind == "dataJob":
        job = entity.aspect("dataJobInputOutput")
        upstream += [*job.texts("inputDatasets"), *_edges(job, "inputDatasetEdges")]
        upstream += [*job.texts("inputDatajobs"), *_edges(job, "inputDatajobEdges")]
        downstream += [*job.texts("outputDatasets"), *_edges(job, "outputDatasetEdges")]
    elif entity.kind == "chart":
        chart = entity.aspect("chartInfo")
        upstream += [*chart.texts("inputs"), *_edges(chart, "inputEdges")]
    elif entity.kind == "dashboard":
        board = entity.aspect("dashboardInfo")
        upstream += [*dashboard_charts(entity), *_edges(board, "dashboards")]
        upstream += [*board.texts("datasets"), *_edges(board, "datasetEdges")]
    yield from ((urn, entity.urn) for urn in upstream)
    yield from ((entity.urn, urn) for urn in downstream)


def dashboard_charts(entity: Entity) -> tuple[str, ...]:
    """The charts that a dashboard shows."""
    board = entity.aspect("dashboardInfo")
    return (*board.texts("charts"), *_edges(board, "chartEdges"))


def _edges(aspect: Aspect, key: str) -> list[str]:
    return _named(aspect, key, "destinationUrn")


def _named(aspect: Aspect, key: str, field: str) -> list[str]:
    return [urn for part in aspect.parts(key) if (urn := part.text(field))]
