"""Durable functions are tested on every engine; what does not depend on it, on the two quick ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import Nursery, nursery


@pytest.fixture(params=["memory", "sqlite"])
def quick_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store that needs no server."""
    if request.param == "sqlite":
        return f"sqlite://{tmp_path}/store/perdure.db"
    return f"memory://test-{os.urandom(6).hex()}"


@pytest.fixture
def children() -> Iterator[Nursery]:
    """Where real processes come from; none of them outlives the test."""
    with nursery() as warm:
        yield warm
