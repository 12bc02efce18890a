"""Kills at random points: the same transaction or a verdict, never half of it. More of it in tests/torture."""

from __future__ import annotations

import pytest

from tests.sessions.killing import Rounds
from tests.sessions.kit import Stage

SEEDS = 210
PARTS = 3


@pytest.mark.req("R79", "R89")
@pytest.mark.parametrize("part", range(PARTS))
async def test_a_transaction_is_kept_or_told_as_lost_wherever_its_client_and_proxy_die(stage: Stage, part: int) -> None:
    rounds = Rounds(stage)
    for seed in range(part, SEEDS, PARTS):
        await rounds.round(seed)
    rounds.close()
    assert rounds.kept > 0.8 * (SEEDS / PARTS - rounds.hopeless), "far too many are lost"
