"""The limits of a queue: tasks at a time, tasks at a time with the same key, and attempts begun per period."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import force_setattr

from perdure._ground.durations import Duration, require_timedelta
from perdure.errors import InvalidInput

# The largest count a rate can have: each attempt that begins within the window takes a row.
MOST_IN_A_WINDOW = 10_000


class Queue(Struct, frozen=True, kw_only=True):
    """The limits of one queue, over all workers of a store.

    concurrency   how many of its tasks may be worked on at a time; None: no limit besides the workers' own
    per_key       how many tasks with the same `options(key=…)` may be worked on at a time
    rate          (10, "1s"): at most ten attempts begin in any second
    """

    concurrency: int | None = None
    per_key: int = 1
    rate: tuple[int, timedelta] | None = None

    if TYPE_CHECKING:  # the period of a rate may be given as text

        def __init__(
            self, *, concurrency: int | None = None, per_key: int = 1, rate: tuple[int, Duration] | None = None
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.concurrency is not None and self.concurrency < 1:
            raise InvalidInput(f"concurrency is {self.concurrency}; it must be at least 1, or None for no limit")
        if self.per_key < 1:
            raise InvalidInput(f"per_key is {self.per_key}; it must be at least 1")
        if self.rate is not None:
            count, given = self.rate
            window = require_timedelta("the time of a rate", given, is_positive=True)
            if not 1 <= count <= MOST_IN_A_WINDOW:
                raise InvalidInput(f"rate is {count} in {given}", do=f'write (10, "1s"), up to {MOST_IN_A_WINDOW:,}')
            force_setattr(self, "rate", (count, window))


UNLIMITED = Queue()
Queues = Mapping[str, Queue]
