"""A real PostgreSQL for the length of a test."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def open_postgresql(folder: Path) -> Iterator[str]:
    """The address of an empty database; skips where there is no PostgreSQL."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    pgserver = pytest.importorskip("pgserver", reason="needs pgserver, a PostgreSQL from the package index")
    server = pgserver.get_server(str(folder / "postgresql"))
    try:
        yield server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)
    finally:
        server.cleanup()
