"""For tests of programs that use perdure: a store in memory, a clock that is moved, places to crash at.

async with memory_app() as app: …                 # nothing touches the disk
with moving_clock() as clock: clock.advance(hours=8)
crash.arm("committer.before_commit", 3)           # SIGKILL the third time it is passed
await check_unit_type(MyType(), make=…, same=…, folder=tmp_path)    # a kind of unit keeps its promises
with always_replay(): await app.run(…)            # replayed after every step: what is another thing each time diverges
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perdure._app import Perdure
from perdure._durable import always_replay
from perdure._ground import crash_points as crash
from perdure._ground.clock import MovableClock
from perdure._runtime import check_unit_type

__all__ = ["MovableClock", "always_replay", "check_unit_type", "crash", "memory_app", "moving_clock"]


def memory_app(*, namespace: str = "default") -> Perdure:
    """An app whose store is gone when it is closed."""
    return Perdure(f"memory://private-{os.urandom(6).hex()}", namespace=namespace)


@contextmanager
def moving_clock() -> Iterator[MovableClock]:
    """A clock that stands still until it is moved, for every app opened inside the block, here and in
    child processes."""
    before = os.environ.get("PERDURE_TEST_CLOCK")
    with tempfile.TemporaryDirectory() as folder:
        clock = MovableClock(Path(folder) / "clock")
        os.environ["PERDURE_TEST_CLOCK"] = str(clock.path)
        try:
            yield clock
        finally:
            if before is None:
                del os.environ["PERDURE_TEST_CLOCK"]
            else:
                os.environ["PERDURE_TEST_CLOCK"] = before
