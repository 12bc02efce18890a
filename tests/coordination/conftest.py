"""Coordination is tested with real processes where it is about processes; none outlives its test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import Nursery, nursery


@pytest.fixture
def children() -> Iterator[Nursery]:
    """Where processes come from."""
    with nursery() as warm:
        yield warm


@pytest.fixture(params=["memory", "sqlite"])
def quick_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store that needs no server."""
    if request.param == "sqlite":
        return f"sqlite://{tmp_path}/store/perdure.db"
    return f"memory://test-{os.urandom(6).hex()}"
