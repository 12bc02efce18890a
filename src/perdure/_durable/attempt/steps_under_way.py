"""Note which steps are under way, so that after a crash one can tell what the task was in the middle of.

A step leaves nothing in the journal before it ends, or a chain of small ones would cost twice. Whoever looks after
the attempts of a loop (control_watch.py) calls here each time: a step that was under way at the look before, too, is
worth one entry, which replay does not count. `where` reads it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import islice
from typing import Any

from perdure._durable.attempt.attempt import Attempt
from perdure._durable.attempt.call import Note
from perdure._durable.attempt.call_stack import stack_of
from perdure._ground import codec
from perdure._model import Entry, scope_of
from perdure.errors import PerdureError

BEGUN = "begun"
# Of many at once; more would tell nobody anything.
_AT_MOST = 16


class _Seen:
    """What was under way at the last look, and what has been noted."""

    def __init__(self, _: Attempt) -> None:
        self.before: dict[str, Any] = {}
        self.noted: dict[str, Any] = {}


def note_steps(attempt: Attempt) -> None:
    """Record the steps of this attempt that have been under way since the last look."""
    under_way = dict(attempt.under_way)
    if not under_way or attempt.unwinding or attempt.is_over:
        return
    seen = attempt.part(_Seen)
    seen.noted = {path: begun for path, begun in seen.noted.items() if under_way.get(path) is begun}
    fresh = [path for path, begun in under_way.items() if seen.before.get(path) is begun and path not in seen.noted]
    seen.before = under_way
    for path in islice(fresh, max(_AT_MOST - len(seen.noted), 0)):
        seen.noted[path] = under_way[path]
        call, args, kwargs = under_way[path]
        with suppress(PerdureError):  # the attempt is closed; its next call says so
            shown = codec.encode(call.shown(args, kwargs))
            now = attempt.store.clock.now_ms()
            stack: Note = {"stack": "\n".join(_stack(attempt, scope_of(path)))}
            entry = Entry("result", BEGUN, f"{path}|{BEGUN}", b"", shown, at=now, epoch=attempt.epoch, note=stack)
            attempt.record(entry, urgent=True)


def _stack(attempt: Attempt, scope: str) -> list[str]:
    """The functions that this scope waits in; of a plain function, which has no task to look at, none."""
    tasks = (task for task, alive in attempt.alive.values() if alive.path == scope)
    task = attempt.body if not scope else next(tasks, None)
    return stack_of(task) if isinstance(task, asyncio.Task) and not task.done() else []
