"""Hear at once that there may be something to do: from this process, and from others that use the same store.

Every waiter relies on looking. A ring makes it look sooner, and a lost ring costs as much as the time
until the next look. It says of what kind the change was, not which task has changed: the store knows that.

    work     some task may be free to claim
    moved    some task has changed its status
    changed  something else that a worker looks for may have been written

Owns who is told, and which writes are worth telling. remote_bell.py connects other processes.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from perdure._ground.bridge import Hop
from perdure._store.committer import Committer
from perdure._store.contract import Engine, Kinds
from perdure._store.remote_bell import Listener, Teller
from perdure._store.write import Write, verb_of

WORK, MOVED, CHANGED = "work", "moved", "changed"
_NOTHING: Kinds = frozenset()
_ONLY_WORK: Kinds = frozenset({WORK})
_BOTH: Kinds = frozenset({WORK, MOVED})
_ONLY_CHANGED: Kinds = frozenset({CHANGED})
# What no worker waits for, however long it rests.
_SILENT = frozenset(
    {
        *("append_entry", "beat", "checkpoint", "mark_progress", "invalidate", "pin", "prune", "rebase"),
        *("put_chunk", "drop_chunks", "drop_memory", "put_memory", "record_memory", "write_memory"),
        *("reseal_call", "reseal_checkpoint", "reseal_delivery", "reseal_entry", "reseal_event", "reseal_memory"),
        *("reseal_pause", "reseal_signal", "reseal_task", "reseal_value", "reseal_webhook"),
    }
)
_STARTS = ("start_function", "start_hidden")
_RINGING: dict[str, Kinds] = {
    "answer_pause": _BOTH,
    "complete_function": _BOTH,
    "delete_task": frozenset({MOVED}),
    "fork_function": _ONLY_WORK,
    "import_task": _ONLY_WORK,
    "move_task": _BOTH,
    "reap": _ONLY_WORK,
    "release": _ONLY_WORK,
    "rollback": _BOTH,
    "send_signal": _ONLY_WORK,
    "set_switch": _ONLY_WORK,
    **dict.fromkeys(_STARTS, _ONLY_WORK),
    "suspend": frozenset({MOVED}),
}
# Those of which only one that was not refused is news.
_WHEN_DONE = frozenset(_RINGING.keys() - {*_STARTS}) | _SILENT
# Those who wait look again after this many seconds, if others can be heard; else after so few.
_PATIENT, _IMPATIENT = 0.25, 0.02
LEAST_GAP = 0.005

Subscriber = Callable[[Kinds], None]


def kinds_of(writes: Sequence[Write]) -> Kinds:
    """The kinds of news in these finished writes. That a task begins in its own process is news to those only who look
    for whatever changes."""
    found = _NOTHING
    if _SILENT.issuperset(map(verb_of, writes)):
        return found  # entries, nearly always
    verbs = set(map(verb_of, writes))
    if not verbs <= _WHEN_DONE:
        found = _ONLY_CHANGED
    # Those that ring for all come first: mostly one write has been looked at when there is no more to find.
    for verb in sorted(_RINGING.keys() & verbs, key=_how_little):
        if not _RINGING[verb] <= found and _is_news(verb, writes):
            found |= _RINGING[verb]
    return found


def _how_little(verb: str) -> int:
    return -len(_RINGING[verb])


def _is_news(verb: str, writes: Sequence[Write]) -> bool:
    for write in writes:
        if write.verb == verb and write.row is not None and (verb not in _STARTS or write.params["worker"] is None):
            return True
    return False


class Bell:
    """One for all apps of a process that use one store."""

    def __init__(self, engine: Engine, committer: Committer) -> None:
        self._subscribers: tuple[Subscriber, ...] = ()
        self._changed = threading.Condition()
        self._moves = 0
        self._waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        line = engine.line()
        self._listener, self._teller = Listener(line, self._ring), Teller(line)
        committer.listeners.append(self._committed)

    def _committed(self, writes: Sequence[Write]) -> None:
        """In the committing thread: not a moment more than it takes to pass it on."""
        kinds = kinds_of(writes)
        if kinds:
            self._teller.tell(kinds)
            self._ring(kinds)

    def _ring(self, kinds: Kinds) -> None:
        for subscriber in self._subscribers:
            subscriber(kinds)
        if MOVED in kinds:
            with self._changed:
                self._moves += 1
                self._changed.notify_all()
                waiters, self._waiters = self._waiters, []
            for loop, future in waiters:
                with suppress(RuntimeError):  # the loop was closed meanwhile, so there is nothing to wake
                    loop.call_soon_threadsafe(_wake, future)

    # ── those who are told ──────────────────────────────────────────────────────────────────────

    @contextmanager
    def subscribed(self, subscriber: Subscriber) -> Iterator[None]:
        """Have it called, in whatever thread, whenever something has happened here or elsewhere."""
        self._subscribers = (*self._subscribers, subscriber)
        try:
            with self.listening():
                yield
        finally:
            self._subscribers = tuple(other for other in self._subscribers if other is not subscriber)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Hear other processes while the block lasts."""
        self._listener.join()
        try:
            yield
        finally:
            self._listener.leave()

    @property
    def is_heard(self) -> bool:
        """True if rings of other processes reach us, as far as can be known."""
        return self._listener.is_open

    # ── those who wait ──────────────────────────────────────────────────────────────────────────

    @property
    def moves(self) -> int:
        """The number of rings about changed statuses so far; read it before a look."""
        return self._moves

    def moved_since(
        self, moves: int, longest: float = _PATIENT, *, unheard: float = _IMPATIENT, gap: float = LEAST_GAP
    ) -> Moved:
        """Await the next such ring, if there was none since; after a while return anyway, for a look. It takes at least
        `gap`, however often the bell rings."""
        return Moved(self, moves, gap, min(longest, _PATIENT if self.is_heard else unheard))

    def close(self) -> None:
        self._teller.close()
        self._listener.close()


class Moved(Hop[None]):
    __slots__ = ("_bell", "_gap", "_moves", "_seconds")

    def __init__(self, bell: Bell, moves: int, gap: float, seconds: float) -> None:
        self._bell, self._moves = bell, moves
        self._gap, self._seconds = min(gap, seconds), max(seconds - gap, 0.0)

    def block(self) -> None:
        bell = self._bell
        time.sleep(self._gap)
        with bell._changed:
            bell._changed.wait_for(lambda: bell._moves != self._moves, self._seconds)

    def on_loop(self) -> Generator[Any, None, None]:
        return (yield from self._wait().__await__())

    async def _wait(self) -> None:
        bell, loop = self._bell, asyncio.get_running_loop()
        await asyncio.sleep(self._gap)
        waiter = (loop, loop.create_future())
        with bell._changed:
            if bell._moves != self._moves:
                return
            bell._waiters.append(waiter)
        try:
            await asyncio.wait({waiter[1]}, timeout=self._seconds)
        finally:
            with bell._changed:
                if waiter in bell._waiters:
                    bell._waiters.remove(waiter)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
