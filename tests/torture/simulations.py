"""Simulated schedules: real workers and replay on virtual time, killed, stopped and cut off; a seed repeats a run.

python -m tests.torture --part simulations --seeds 0-9999
"""

from __future__ import annotations

from tests.simulator import schedule


def run(seed: int) -> None:
    schedule.run(seed)
