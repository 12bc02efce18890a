"""Crash tests run real processes, on each engine that processes can share."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from perdure._ground.clock import MovableClock
from tests.torture.kills import Home


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
def clock(folder: Path) -> MovableClock:
    """A clock that stands still until the test moves it, for processes that are given `env_of(clock)`."""
    return MovableClock(folder / "clock")


def env_of(clock: MovableClock) -> dict[str, str]:
    return {"PERDURE_TEST_CLOCK": str(clock.path)}
