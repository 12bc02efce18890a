"""A store with a keeper of its own for each test, and a client of the MCP server on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.kit import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path / "store" / "perdure.db")
    try:
        yield place
    finally:
        place.clear()
