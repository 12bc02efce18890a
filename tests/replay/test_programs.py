"""Random programs, crashed after every entry: what they see and how they end is as if nothing had happened."""

from __future__ import annotations

import pytest

from tests.replay.programs import run_program
from tests.support import loops

# Each is another program; torture goes through thousands (python -m tests.replay.programs FIRST LAST).
SEEDS = range(40)
# Programs that hung or diverged once.
# 30929: after a crash the code sets a timer while its own cancellation of another branch still waits for its turn.
FOUND = (30929,)


@pytest.mark.req("R67")
@pytest.mark.parametrize("kind", loops.KINDS)
@pytest.mark.parametrize("tens", range(0, len(SEEDS), 10))
def test_a_crashed_program_goes_on_as_if_it_had_not_been(tens: int, kind: str) -> None:
    loops.skip_unless_here(kind)
    crashes = sum(run_program(seed, kind) for seed in SEEDS[tens : tens + 10])
    assert crashes > 10


@pytest.mark.req("R67")
@pytest.mark.parametrize("seed", FOUND)
def test_a_program_that_went_wrong_once_goes_on(seed: int) -> None:
    assert run_program(seed) > 0
