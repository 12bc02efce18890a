"""Random programs, crashed after every entry: what they see and how they end is as if nothing had happened."""

from __future__ import annotations

import pytest

from tests.replay.programs import run_program

# Each is another program; torture goes through thousands (python -m tests.replay.programs FIRST LAST).
SEEDS = range(60)


@pytest.mark.parametrize("tens", range(0, len(SEEDS), 10))
def test_a_crashed_program_goes_on_as_if_it_had_not_been(tens: int) -> None:
    crashes = sum(run_program(seed) for seed in SEEDS[tens : tens + 10])
    assert crashes > 10
