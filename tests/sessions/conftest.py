"""A place for sessions whose processes are forked from a warm one and end with the test."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.runtime.conftest import place
from tests.sessions.cluster import Cluster
from tests.sessions.kit import Stage
from tests.support.processes import Nursery

__all__ = ["place"]


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


@pytest.fixture
def url(postgres_url: str) -> str:
    """The address of a PostgreSQL database with an empty table `t (x int)`."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (x int)")
    return postgres_url


@pytest.fixture
def table(stage: Stage) -> None:
    """An empty table `t (x int)` in the database of the stage."""
    stage.outside("CREATE TABLE t (x int)")
