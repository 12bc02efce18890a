"""Sixty rounds of random faults: no false verdict, nothing done twice, nothing left behind. Torture has more."""

from __future__ import annotations

import pytest

from tests.honesty import rounds
from tests.honesty.plan import plan

TOGETHER = 6
# 758: a service waits to be started again, and another store of the same task has made one meanwhile.
# From 10,000 on, some rounds go on under another keeper: of a dead machine, of a living one, of one that comes back.
# 40042: a file of a machine that lives on is opened there again, and was opened elsewhere meanwhile.
SEEDS = (*range(60), 758, 10004, 10010, 10012, 10014, 10017, 40042)


@pytest.mark.req("R79")
@pytest.mark.parametrize("first", range(0, len(SEEDS), TOGETHER))
def test_every_verdict_is_true_nothing_is_repeated_and_nothing_left_behind(first: int) -> None:
    for seed in SEEDS[first : first + TOGETHER]:
        violations = rounds.run(seed)
        assert not violations, "\n  ".join([str(plan(seed)), *map(str, violations)])
