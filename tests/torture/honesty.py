"""Honesty: random faults over every kind of unit, each verdict compared with evidence from outside.

python -m tests.torture --part honesty --seeds 0-2999
"""

from __future__ import annotations

from tests.honesty import rounds
from tests.honesty.plan import plan


class Dishonest(Exception):
    """A round in which something false was told, done twice, or left behind."""


def run(seed: int) -> None:
    if violations := rounds.run(seed):
        raise Dishonest("\n  ".join([str(plan(seed)), *map(str, violations)]))
