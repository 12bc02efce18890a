"""What every test has: the `req` mark, async tests, and a real PostgreSQL on request."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.support import postgres

pytest_plugins = [
    "tests.support.requirements",
    "tests.support.engines",
    "tests.support.results",
    "tests.support.async_tests",
]

# Shared machines are slow now and then: how long one example took says nothing. In CI the examples
# are the same each time, so that a change fails for what it changed.
settings.register_profile("perdure", deadline=None, print_blob=True, derandomize="CI" in os.environ)
settings.load_profile("perdure")


def pytest_configure() -> None:
    postgres.own_the_run()


def pytest_unconfigure() -> None:
    postgres.stop_server()


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """The address of an empty PostgreSQL database of this test's own."""
    try:
        postgres.ensure_server()
    except postgres.ServerUnavailable as problem:
        pytest.skip(str(problem))
    with postgres.fresh_database() as url:
        yield url
