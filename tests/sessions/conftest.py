"""A place for sessions whose processes are forked from a warm one and end with the test."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sessions.cluster import Cluster
from tests.sessions.kit import Stage
from tests.support.processes import Nursery, nursery


@pytest.fixture
def children() -> Iterator[Nursery]:
    with nursery() as warm:
        yield warm


@pytest.fixture
def stage(children: Nursery, postgres_url: str) -> Iterator[Stage]:
    folder = Path(tempfile.mkdtemp(prefix="pds-"))
    with Stage(children, folder, postgres_url) as made:
        yield made
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    yield made
    made.remove()
