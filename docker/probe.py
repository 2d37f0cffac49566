"""Health check of a container: exit 0 when the URL answers 200, else say why and exit 1."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request

TIMEOUT_SECONDS = 8

try:
    with urllib.request.urlopen(sys.argv[1], timeout=TIMEOUT_SECONDS) as answer:
        sys.exit(0 if answer.status == 200 else f"{sys.argv[1]} answered {answer.status}")
except (urllib.error.URLError, TimeoutError) as error:
    sys.exit(f"{sys.argv[1]}: {error}")
