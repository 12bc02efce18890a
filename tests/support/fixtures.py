"""Fixtures that the tests of several folders share: real processes, folders, databases, and forgetting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.support import postgres
from tests.support.folders import fast_folder
from tests.support.processes import Nursery, nursery


@pytest.fixture
def children() -> Iterator[Nursery]:
    """Where real processes come from; none of them outlives the test."""
    with nursery() as warm:
        yield warm


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of this test's own; in memory, as a killed process loses nothing the kernel has."""
    with fast_folder() as path:
        yield path


# ── PostgreSQL ───────────────────────────────────────────────────────────────────────────────────


@contextmanager
def postgres_database() -> Iterator[str]:
    """The address of an empty PostgreSQL database; skips the test where no server can be started."""
    try:
        postgres.ensure_server()
    except postgres.ServerUnavailable as problem:
        pytest.skip(str(problem))
    with postgres.fresh_database() as url:
        yield url


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """The address of an empty PostgreSQL database of this test's own."""
    with postgres_database() as url:
        yield url


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """One PostgreSQL database for the tests of a module: each has a namespace of its own in it."""
    with postgres_database() as url:
        yield url


# ── forgetting ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def fresh_process() -> Iterator[None]:
    """This process knows no task's runtime and no secret, before the test and after it."""
    _forget()
    yield
    _forget()


def _forget() -> None:
    from perdure._runtime.context.context import forget_contexts
    from perdure._runtime.secrets import redaction

    forget_contexts()
    redaction.forget_all()


class Clearable(Protocol):
    def clear(self) -> None: ...


def emptied_for_each_test(*lists: Clearable) -> Callable[..., Any]:
    """An autouse fixture for the module that calls this: `_nothing_ran = emptied_for_each_test(ran)`."""

    @pytest.fixture(autouse=True)
    def emptied() -> None:
        for one in lists:
            one.clear()

    return emptied
