"""Durable functions are tested on every engine; what does not depend on it, on the two quick ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.durable.kept_kit import fresh_home
from tests.torture.kills import Home


@pytest.fixture(params=["sqlite", "postgres"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    """An empty store that several processes can open."""
    return fresh_home(request, request.param, tmp_path)


@pytest.fixture(params=["memory", "sqlite"])
def quick_home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    """An empty store that needs no server."""
    return fresh_home(request, request.param, tmp_path)
