"""`vouch serve`: the query API under a real WSGI server."""

from __future__ import annotations

import socket

import click

from services.cli.common import settings_for_command
from services.errors import PermanentError


@click.command()
@click.option("--port", type=click.IntRange(1, 65535), help="Instead of VOUCH_API_PORT (default 8787).")
def serve(port: int | None) -> None:
    """Serve the query API until interrupted."""
    # The server's own imports are for who serves.
    from services.api.server import serve as serve_api
    from services.wsgi import build

    settings = settings_for_command()
    chosen = port or settings.api_port
    _require_free(settings.api_host, chosen)
    click.echo(
        f"the query API is starting at http://{settings.api_host}:{chosen}; /readyz says when it answers", err=True
    )
    serve_api(build, host=settings.api_host, port=chosen, threads=settings.api_threads)


def _require_free(host: str, port: int) -> None:
    """Raises PermanentError where another server listens: gunicorn would only try, and try again."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise PermanentError(
                f"{host}:{port} cannot be served: {error.strerror}; after `make demo` the demo's own API may hold it:"
                " stop that one, or give --port another number"
            ) from error
