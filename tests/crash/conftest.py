"""Crash tests run real processes, on each engine that processes can share."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure._ground.clock import MovableClock
from tests.support import postgres
from tests.support.processes import Nursery, nursery
from tests.torture.kills import Home
from tests.torture.powerloss import fast_folder


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """One PostgreSQL database for the tests of a module: each has a namespace of its own in it."""
    try:
        postgres.ensure_server()
    except postgres.ServerUnavailable as problem:
        pytest.skip(str(problem))
    with postgres.fresh_database() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def home(request: pytest.FixtureRequest, folder: Path) -> Home:
    """An empty store that several processes can open."""
    if request.param == "postgres":
        return Home(request.getfixturevalue("database"), uuid.uuid4().hex)
    return Home(f"sqlite://{folder}/p.db")


@pytest.fixture
def sqlite_home(folder: Path) -> Home:
    return Home(f"sqlite://{folder}/p.db")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of this test's own; in memory, as a killed process loses nothing the kernel has."""
    with fast_folder() as path:
        yield path


@pytest.fixture
def children() -> Iterator[Nursery]:
    """Where processes come from; none outlives the test."""
    with nursery() as warm:
        yield warm


@pytest.fixture
def clock(folder: Path) -> MovableClock:
    """A clock that stands still until the test moves it, for processes that are given `env_of(clock)`."""
    return MovableClock(folder / "clock")


def env_of(clock: MovableClock) -> dict[str, str]:
    return {"PERDURE_TEST_CLOCK": str(clock.path)}
