"""Coordination is tested with real processes where it is about processes; none outlives its test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.processes import Nursery, nursery


@pytest.fixture
def children() -> Iterator[Nursery]:
    """Where processes come from."""
    with nursery() as warm:
        yield warm
