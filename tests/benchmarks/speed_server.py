"""The query API over a synthetic catalog: `python -m tests.benchmarks.speed_server PORT ASSETS QUESTIONS`.

Everything is what `vouch serve` runs, but for the vectors of queries: the real ones are computed and thrown away.
"""

from __future__ import annotations

import sys
from unittest.mock import patch

from services import wiring
from services.api.server import serve
from services.index.embedder_query import QueryEmbedder
from services.settings import Settings, load_settings
from services.wsgi import build
from tests.benchmarks.synthetic import SyntheticCatalog, SyntheticEmbedder

real_embedder = wiring.query_embedder


def main() -> None:
    port, assets, questions = map(int, sys.argv[1:])
    catalog = SyntheticCatalog(assets)
    for number in range(questions):
        catalog.query_vector(catalog.question(number))  # remembered: what the synthetic part costs is not to count

    def synthetic(settings: Settings) -> SyntheticEmbedder:
        paid: QueryEmbedder = real_embedder(settings)
        return SyntheticEmbedder(catalog, paid)

    settings = load_settings()
    with patch.object(wiring, "query_embedder", synthetic):
        serve(build, host=settings.api_host, port=port, threads=settings.api_threads)


if __name__ == "__main__":
    main()
