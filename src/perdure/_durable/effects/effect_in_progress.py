"""An effect between its call and its result, as the modules see it that carry it out, count it and settle it.

Owns its fields and the entries that are written before its outcome. effect_walk.py carries it out, settlement.py
finds its outcome when that is unknown, and running_effects.py cuts it off when its time is over.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from perdure._durable.attempt import Attempt, Note, Retry, failed_try, wait_until
from perdure._durable.effects.declaration import EffectCall, key_of
from perdure._model import Entry
from perdure._store import Write

NO_MARKS: Mapping[str, str | int | float | None] = MappingProxyType({})


class Limited(Struct, eq=False, kw_only=True):
    """Work of a task that is cut off when its time is over."""

    task: asyncio.Task[Any] | None = None
    when: float = math.inf  # its time is over
    is_late: bool = False  # and it was cut off

    def cut_off(self) -> None:
        assert self.task is not None
        self.is_late, self.when = True, math.inf
        self.task.cancel()

    def take_back(self, before: int) -> bool:
        """Take back the cancellation of an effect past its deadline. Returns whether it was the only one since the task
        had been cancelled `before` times: if the code was cancelled besides, that cancellation stands."""
        assert self.task is not None
        self.is_late = False
        return self.task.uncancel() <= before


class EffectInProgress(Limited, eq=False):
    """An effect between its call and its result: all that is known of it, and the writes of its intent."""

    call: EffectCall
    attempt: Attempt
    path: str
    asked: bytes
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    key: str
    is_spelled: bool = False  # its digest identifies its arguments
    # In a step's body, or, while the task is being ended, outside the code: its result skips the gate.
    is_body: bool = False
    is_ending: bool = False
    # An inline one is handed out at once, like an inline step, and never through the gate.
    is_inline: bool = False
    op: str = "effect"
    tries: int = 0
    number: int = 0  # of its key: a Retry can ask for a new one after a definite failure
    marks: Mapping[str, str | int | float | None] = NO_MARKS  # what the body has put on record for its probe
    failed: Mapping[str, str | int | float | None] = NO_MARKS  # how the try before ended, if there was one
    is_open: bool = False  # it may have happened; not known
    again: str = ""  # why it is run once more; EffectOutcome has the words
    value: Any = None  # what its body gave
    took_ms: int = 0  # of its last try
    recorded: tuple[int, Entry] | None = None  # its outcome, and the position of its entry
    _before: int = 0  # how often the task had been cancelled when it began
    _position: int | None = None  # while its result waits to be handed out

    __repr__ = object.__repr__  # not its arguments

    @property
    def shown(self) -> str:
        return self.call.shown(self.args, self.kwargs)

    async def wait_for_another(self, retry: Retry | None, error: BaseException) -> bool:
        """Whether to try it again; if so, returns when that try is due, with the number of tries on disk."""
        if retry is None or not retry.wants_more(self.tries, error):
            return False
        if retry.new_key and not self.is_open:
            self.number += 1
            self.key = key_of(self.attempt.uid, self.attempt.line, self.path, self.asked, self.number)
        delay = retry.delay(self.tries)
        due = self.attempt.store.clock.now_ms() + delay // timedelta(milliseconds=1)
        failed = self.failed = failed_try(self.shown, self.tries, retry, error)
        if not self.is_open:
            note = self._note(number=self.number, until=due, shown=self.shown, **failed)
            await self._on_disk(self._record(note))
        await wait_until(self.attempt.store.clock, due, delay)
        return True

    def _note(self, **more: str | int | float | None) -> Note:
        return {"key": self.key, "tries": self.tries, **more}

    def _record(self, note: Note) -> Write:
        attempt = self.attempt
        now = attempt.store.clock.now_ms()
        entry = Entry("intent", self.op, self.path, self.asked, None, None, now, 0, attempt.epoch, note)
        position, write = attempt.record(entry)
        if self.is_body:
            attempt.cursor.learn(position, entry)
        return write

    async def _on_disk(self, write: Write) -> None:
        if self.is_inline:
            self.attempt.pipeline.wait_here(write)
        else:
            with self.attempt.unwinding.held_off():
                await write
