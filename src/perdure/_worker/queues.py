"""How a queue's tasks are limited: how many at a time, how many of one key, how many beginnings in a time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import force_setattr

from perdure._ground.durations import Duration, require_timedelta
from perdure.errors import InvalidInput

# More beginnings in one window than this are not counted one by one.
MOST_IN_A_WINDOW = 10_000


class Queue(Struct, frozen=True, kw_only=True):
    """The limits of one queue, over all workers of a store.

    concurrency   so many of its tasks are worked on at a time; None: as many as workers have room for
    per_key       of those started with the same `options(key=…)`, so many at a time
    rate          (10, "1s"): at most ten attempts begin in any second
    """

    concurrency: int | None = None
    per_key: int = 1
    rate: tuple[int, timedelta] | None = None

    if TYPE_CHECKING:  # the time of a rate may be given as a text

        def __init__(
            self, *, concurrency: int | None = None, per_key: int = 1, rate: tuple[int, Duration] | None = None
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.concurrency is not None and self.concurrency < 1:
            raise InvalidInput(f"concurrency is {self.concurrency}; a queue that takes nothing would wait for ever")
        if self.per_key < 1:
            raise InvalidInput(f"per_key is {self.per_key}; at least one task of a key may be worked on")
        if self.rate is not None:
            count, given = self.rate
            window = require_timedelta("the time of a rate", given, is_positive=True)
            if not 1 <= count <= MOST_IN_A_WINDOW:
                raise InvalidInput(f"rate is {count} in {given}", do=f'write (10, "1s"), up to {MOST_IN_A_WINDOW:,}')
            force_setattr(self, "rate", (count, window))


UNLIMITED = Queue()
Queues = Mapping[str, Queue]
