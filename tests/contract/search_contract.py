"""Reads for search, whichever engine answers."""


class SearchContract:
    """Needs the fixture `engine`."""
