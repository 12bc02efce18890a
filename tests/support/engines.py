"""Stores to test with: the oracle in memory, SQLite and PostgreSQL; and a clock that is moved."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure._ground.clock import MovableClock
from tests.support.folders import fast_folder


@pytest.fixture
def store_folder() -> Iterator[Path]:
    """Where a store of this test's own may be."""
    with fast_folder() as path:
        yield path


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """The address of an empty store."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    if request.param == "sqlite":
        return f"sqlite://{request.getfixturevalue('store_folder')}/store/perdure.db"
    return f"memory://test-{os.urandom(6).hex()}"


@pytest.fixture(params=["memory", "sqlite"])
def quick_url(request: pytest.FixtureRequest) -> str:
    """The address of an empty store that needs no server."""
    if request.param == "sqlite":
        return f"sqlite://{request.getfixturevalue('store_folder')}/store/perdure.db"
    return f"memory://test-{os.urandom(6).hex()}"


@pytest.fixture(params=["sqlite", "postgres"])
def shared_url(request: pytest.FixtureRequest) -> str:
    """The address of an empty store that other processes can open too."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite://{request.getfixturevalue('store_folder')}/store/perdure.db"


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MovableClock:
    """A clock that stands still until the test moves it."""
    movable = MovableClock(tmp_path / "clock")
    monkeypatch.setenv("PERDURE_TEST_CLOCK", str(movable.path))
    return movable
