"""What the tests of replay share: an app without a disk, and functions that forget each other."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure
from perdure._durable.declare import versions

AppMaker = Callable[[], Any]


@pytest.fixture(autouse=True)
def _own_functions() -> Iterator[None]:
    """Each test declares durable functions of its own, under whatever names."""
    before = dict(versions._known)
    versions._known.clear()
    yield
    versions._known.clear()
    versions._known.update(before)


@pytest.fixture
def open_app() -> AppMaker:
    """Opens the same store in memory, each time it is called."""
    url = f"memory://replay-{os.urandom(6).hex()}"

    @asynccontextmanager
    async def opened() -> AsyncIterator[Perdure]:
        async with Perdure(url) as app:
            yield app

    return opened


@pytest.fixture
def open_disk(tmp_path: Path) -> AppMaker:
    """The same with a file."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Perdure]:
        async with Perdure(tmp_path / "store" / "perdure.db") as app:
            yield app

    return opened
