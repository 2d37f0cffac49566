"""The command line `vouch`: the steps of the DAG and the calls of the API, without either; the same code."""

from services.cli.main import main

__all__ = ["main"]
