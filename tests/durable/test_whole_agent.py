"""An agent with all its parts is killed at random and comes to one result; `make torture` has two hundred seeds."""

from __future__ import annotations

import pytest

from tests.torture import agents


@pytest.mark.req("R64", "R66", "R126", "R132")
@pytest.mark.parametrize("seed", range(1000, 1004))
def test_each_effect_and_each_turn_happens_once_wherever_it_dies(seed: int) -> None:
    agents.run(seed)
