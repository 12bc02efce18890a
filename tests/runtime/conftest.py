"""A store with a keeper of its own for each test; whatever the keeper holds ends with the test."""

from __future__ import annotations

import os
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


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """The environment of a user with no start files of their own."""
    return {"HOME": str(tmp_path), "PS1": "$ ", "PATH": os.environ["PATH"]}
