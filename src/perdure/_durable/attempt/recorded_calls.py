"""The walk of a recorded call: ask the journal, do it if it is not there, record how it ended, hand it out."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from perdure._durable.attempt.attempt import Attempt
from perdure._durable.attempt.call import cut_off, never
from perdure._durable.attempt.scopes import Scope
from perdure._durable.values import declared_here, decode_error, encode_error
from perdure._ground import codec
from perdure._model import Entry
from perdure._replay import Cut, Diverged, Recorded
from perdure.errors import StoreUnavailable


async def recorded_call(
    scope: Scope, name: str, as_type: Any, body: Any, *, asked: bytes = b"", takes_path: bool = False
) -> Any:
    """The value of `body`, from the journal if it is there, else run now and recorded before it is given.

    With `takes_path` it is told the call's place in the journal, which is the same in every attempt.
    """
    attempt: Attempt = scope.attempt
    attempt.check()
    answer = scope.track.ask(name.replace("|", "/").replace("#", "%"), asked)
    if type(answer) is Recorded:
        await attempt.hand_out(answer.position)
        return _read(answer.entry, as_type)
    if type(answer) is Diverged:
        raise attempt.poison(attempt.diverged(answer))
    if type(answer) is Cut:
        return await never(attempt, answer.position)
    position = None
    try:
        await attempt.may_start()  # before it counts as under way: nothing begins any more
        with attempt.not_at_rest():
            entry = await _ended(
                attempt, answer.path, asked, as_type, partial(body, answer.path) if takes_path else body
            )
            position, write = attempt.record(entry, urgent=True)
            if attempt.ordered > 1:
                attempt.gate.expect(position)
            await write
            attempt.check()
        await attempt.hand_out(position)
    except asyncio.CancelledError:
        if position is not None:
            attempt.passed(position)
        await cut_off(attempt, "child", answer.path, asked)
        raise
    return _read(entry, as_type)


async def _ended(attempt: Attempt, path: str, asked: bytes, as_type: Any, body: Any) -> Entry:
    value, trouble = None, None
    try:
        value = await body()
    except StoreUnavailable as error:
        raise attempt.poison(error) from None  # nobody knows how the call ended; another attempt makes it again
    except Exception as raised:
        attempt.fence.check()
        trouble = encode_error(raised, declared_here())
    data = None if trouble is not None else codec.encode(value, as_type)
    return Entry("result", "child", path, asked, data, trouble, at=attempt.store.clock.now_ms(), epoch=attempt.epoch)


def _read(entry: Entry, as_type: Any) -> Any:
    if entry.error is not None:
        raise decode_error(entry.error, declared_here())
    assert entry.value is not None
    return codec.decode(entry.value, as_type)
