"""The tries of a step whose body fails: each waits longer, and their number outlives the process."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from perdure._durable.attempt.calls.call import Call
from perdure._durable.attempt.calls.retry import failed_try, wait_until
from perdure._model import Entry

if TYPE_CHECKING:
    from perdure._durable.attempt.attempt import Attempt


def _tried(attempt: Attempt, path: str) -> tuple[int, int]:
    """The number of tries of a step so far, and when the next one is due."""
    intent = attempt.cursor.intent(path)
    note = (intent.note if intent else None) or {}
    return int(note.get("tries") or 0), int(note.get("until") or 0)


async def attempts_of(
    attempt: Attempt, path: str, call: Call, asked: bytes, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Run a step's body until it succeeds or its tries are used up."""
    tries, due = _tried(attempt, path)
    if due and call.retry is not None:
        await wait_until(attempt.store.clock, due, call.retry.delay(tries))
    while True:
        attempt.cursor.begin_again(path)
        try:
            if not call.is_async:
                return call.function(*args, **kwargs)
            if call.timeout is None:
                return await call.function(*args, **kwargs)
            async with asyncio.timeout(call.timeout.total_seconds()):
                return await call.function(*args, **kwargs)
        except Exception as error:
            tries += 1
            if attempt.fence.closed is not None or call.retry is None or not call.retry.wants_more(tries, error):
                raise
            delay = call.retry.delay(tries)
            due = attempt.store.clock.now_ms() + delay // timedelta(milliseconds=1)
            note = {"tries": tries, "until": due, **failed_try(call.shown(args, kwargs), tries, call.retry, error)}
            _, write = attempt.record(Entry("intent", "try", path, asked, epoch=attempt.epoch, note=note), urgent=True)
            await write
            await wait_until(attempt.store.clock, due, delay)
