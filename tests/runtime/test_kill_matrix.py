"""Wherever the agent, the keeper or both are killed, shells carry on, and each command was run once."""

from __future__ import annotations

import pytest

from tests.runtime import matrix
from tests.runtime.kit import Place
from tests.support.processes import nursery


@pytest.mark.req("R83")
@pytest.mark.req("R117")
async def test_kills_at_random_lose_nothing_and_repeat_nothing(place: Place) -> None:
    """`make torture` kills more often."""
    with nursery() as children:
        killed = await matrix.storm(place, children, points=80, seed=5)
    assert set(killed) == set(matrix.VICTIMS)
