"""Random programs of steps, timers and threads, crashed after every entry, on every kind of loop there is.

A seed is a program of tests/replay/programs.py. Unchanged code never diverges: each crash is replayed twice, and the
program sees, does and returns what it would have without the crash.
"""

from __future__ import annotations

from tests.replay.programs import run_program
from tests.support import loops


def run(seed: int) -> None:
    for kind in loops.KINDS:
        if loops.is_here(kind):
            run_program(seed, kind)
