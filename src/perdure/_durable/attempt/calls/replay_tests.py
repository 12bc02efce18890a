"""For tests: replay a durable function after every step, so that what is another thing each time shows at once.

In this mode an attempt is unwound after each entry it records and begins again from its journal. Code that
takes another way the second time asks for something that is not recorded, and diverges in the test
instead of after a crash.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from perdure._durable.attempt.attempt import Attempt
from perdure._ground.encoding.codec import peek
from perdure.errors import ReplayDiverged

_is_on: ContextVar[bool] = ContextVar("perdure_always_replay", default=False)


@contextmanager
def always_replay() -> Iterator[None]:
    """Inside the block, durable functions are replayed after every step, and once more when they have ended."""
    token = _is_on.set(True)
    try:
        yield
    finally:
        _is_on.reset(token)


def replays_always() -> bool:
    return _is_on.get()


def is_same_again(attempt: Attempt, before: bytes | None, now: bytes) -> bytes:
    """The result, if it equals the one the function returned before it was replayed.

    Raises:
        ReplayDiverged: it is another one.
    """
    if before is not None and before != now:
        raise ReplayDiverged(
            attempt.task_id, attempt.cursor.last, f"the result {peek(before)!r}", f"the result {peek(now)!r}"
        )
    return now
