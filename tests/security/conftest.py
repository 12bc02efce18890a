"""A store with a keeper of its own for each attack; whatever the keeper holds ends with the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.kit import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Where a store usually is: in .perdure."""
    place = Place(tmp_path / ".perdure" / "perdure.db")
    try:
        yield place
    finally:
        place.clear()
