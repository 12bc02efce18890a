"""Bring requests from outside to the attempts of this process: cancel, pause, kill switch, and answers.

A cancel request is a signal to the task and a pause is its status, so both outlive every process; a kill switch is a
row of its own (kill_switch.py). A process that claims a task finds them there. A process that is already working looks
a few times a second, with three queries for all its attempts together. A request made in the same process reaches the
attempt at once.

The same look fails a task that exceeds its time-out, which counts from the task's start and includes pauses. And it
notes which steps and effects are under way, for `where`. A step leaves nothing in the journal before it ends, because a
chain of small steps would cost twice, and the intent of an effect says nothing of the functions around it. A call that
is still under way at the second look is worth one entry, which replay does not count.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Awaitable, Generator, Iterator, Sequence
from contextlib import suppress
from contextvars import Context
from itertools import islice
from typing import Any

from msgspec import Struct

from perdure._durable.attempt import Attempt, LoopWatchdog, Note, Watched, find_lost, stack_of, stop
from perdure._ground.bridge import Nap
from perdure._ground.encoding import codec
from perdure._model import Entry, Pause, scope_of
from perdure._store import PauseRow, SignalRow, Store, SwitchRow, Waiting, wake_here
from perdure._tasks import Task, event_of, fail_overdue, store_of
from perdure.errors import LeaseLost, PerdureError

CANCEL = "~cancel"
ROLLBACK = "~rollback"
BEGUN = "begun"
# The most calls under way to note; more would not help a reader.
_MOST_NOTED = 16
LOOK_SECONDS = 0.25
NO_SWITCHES: frozenset[str] = frozenset()


async def request_cancel(task: Task, *, undo: bool) -> bool:
    """Store a request to cancel the task. Returns False when the task has ended meanwhile."""
    store = store_of(task)
    params = {
        **event_of(task, "cancel asked for", {"undo": undo}),
        "name": CANCEL,
        "value": store.seal(task.uid, "answer", {"undo": undo}),
        "once": None,
    }
    if await store.verb("send_signal", task.uid, params, key=task.id) is None:
        return False
    attempt = _attempt_of(store, task.uid)
    if attempt is not None:
        attempt.loop.call_soon_threadsafe(attempt.unwinding.stop)
    return True


async def request_rollback(task: Task, *, seq: int, line: int) -> bool:
    """Store a request to undo what the task has done on this line since a checkpoint, and to go back there. Returns
    False when the task has ended meanwhile. A line that the task has left makes it void."""
    store = store_of(task)
    wish = {"to": seq, "line": line}
    params = {
        **event_of(task, "rollback asked for", wish),
        "name": ROLLBACK,
        "value": store.seal(task.uid, "answer", wish),
        "once": None,
    }
    return await store.verb("send_signal", task.uid, params, key=task.id) is not None


def rollback_request(store: Store, uid: str, signals: Sequence[SignalRow], line: int) -> int | None:
    """The checkpoint that a task on this line is to go back to, by the newest request; None if there is none."""
    wishes = [store.unseal(uid, "answer", one.value) for one in signals if one.name == ROLLBACK]
    found = [wish["to"] for wish in wishes if isinstance(wish, dict) and wish.get("line") == line]
    return int(found[-1]) if found else None


def is_live(task: Task) -> bool:
    """True if an attempt of this process works on the task."""
    return _attempt_of(store_of(task), task.uid) is not None


def stop_soon(store: Store, uid: str) -> None:
    """Ask the attempt of this process to give its task back at the next safe point, for another worker."""
    attempt = _attempt_of(store, uid)
    if attempt is not None:
        attempt.unwinding.drain()


async def why_drained(attempt: Attempt) -> str:
    """Why an attempt was asked to stop: a caller paused it, and who; or its process is exiting."""
    for _, sealed in await attempt.store.query("find_paused", uids=json.dumps([attempt.uid])):
        pause: Pause = attempt.store.unseal(attempt.uid, "pause", sealed, Pause)
        when = "paused at once" if pause.details.get("now") is True else "paused"
        return f"{when} by {pause.by.get('user', '?')} on {pause.by.get('host', '?')}"
    return "drained"


def has_cancel_request(signals: Sequence[SignalRow]) -> bool:
    """True if a cancel request is among a task's signals."""
    return any(one.name == CANCEL for one in signals)


async def cancel_request(store: Store, uid: str) -> dict[str, Any] | None:
    """The first request to cancel the task; None if there is none."""
    rows = await store.rows(SignalRow, "read_signals", uid=uid)
    found: list[dict[str, Any]] = [store.unseal(uid, "answer", row.value) for row in rows if row.name == CANCEL]
    return found[0] if found else None


def halt_here(store: Store, task_id: str | None) -> None:
    """Stop the attempts of this process at once: it has turned the kill switch on itself."""
    for watch in _watches_of(store):
        watch.forget()
        for attempt in list(watch.attempts.values()):
            if task_id in (None, attempt.task_id):
                # Set here too: code that never awaits keeps its loop from running the callback.
                attempt.unwinding.halted = attempt.unwinding.stopping = True
                attempt.loop.call_soon_threadsafe(attempt.unwinding.halt)


async def is_halted(store: Store, task_id: str) -> bool:
    """True if the kill switch is on for a task, as seen in the last 0.25 s."""
    watch = watch_of(store, asyncio.get_running_loop())
    switches = watch.seen()
    while switches is None:
        switches = await watch.switches()
    return includes_task(switches, task_id)


def includes_task(switches: frozenset[str], task_id: str) -> bool:
    """True if one of the switches applies to this task or to all tasks."""
    return bool(switches) and ("" in switches or task_id in switches)


# ── looking ──────────────────────────────────────────────────────────────────────────────────────

_watches: dict[tuple[int, str, int], ControlWatch] = {}
_newest: ControlWatch | None = None


def watch_of(store: Store, loop: asyncio.AbstractEventLoop) -> ControlWatch:
    global _newest
    if (found := _newest) is not None and found.loop is loop and found.store is store:
        return found  # most programs have one store and one loop
    key = (id(store.engine), store.namespace, id(loop))
    found = _watches.get(key)
    if found is None or found.loop is not loop or not found.is_on(store):
        for old in [old for old, watch in _watches.items() if watch.loop.is_closed()]:
            del _watches[old]
        found = _watches[key] = ControlWatch(store, loop)
    _newest = found
    return found


def _watches_of(store: Store) -> list[ControlWatch]:
    return [watch for watch in list(_watches.values()) if watch.is_on(store)]


def _attempt_of(store: Store, uid: str) -> Attempt | None:
    """The attempt of this process at a task, if there is one."""
    found = (watch.attempts.get(uid) for watch in _watches_of(store))
    return next((attempt for attempt in found if attempt is not None), None)


class ControlWatch:
    """One watch per loop and store: it looks for the requests to all attempts on that loop at once."""

    def __init__(self, store: Store, loop: asyncio.AbstractEventLoop) -> None:
        self.store, self.loop = store, loop
        self.thread = threading.get_ident()
        self.attempts: dict[str, Attempt] = {}
        self._expiries: dict[str, asyncio.Task[None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._look: asyncio.Task[None] | None = None
        self._switches = NO_SWITCHES
        self._looked = self._leases_read = float("-inf")
        self._under_way: _Look | None = None

    def is_on(self, store: Store) -> bool:
        return self.store.engine is store.engine and self.store.namespace == store.namespace

    def forget(self) -> None:
        self._looked = float("-inf")

    def add(self, attempt: Attempt) -> None:
        """Stop the attempt when it is asked to, or when its time-out is over; until it is removed."""
        self.attempts[attempt.uid] = attempt
        if not _watchdog.is_awake:
            _watchdog.wake()
        if attempt.deadline_at is not None:
            self._expiries[attempt.uid] = expire(attempt, attempt.deadline_at)
        # Most attempts end before the first look, and cost no asyncio task of their own.
        if self._timer is None and self._look is None:
            self._timer = self.loop.call_later(LOOK_SECONDS, self._begin, context=Context())

    def task_id_of(self, task: asyncio.Future[Any] | None) -> str | None:
        """The task whose attempt an asyncio task belongs to."""
        for attempt in list(self.attempts.values()):
            if task is not None and (task is attempt.body or id(task) in attempt.activity.alive):
                return attempt.task_id
        return None

    def remove(self, attempt: Attempt) -> None:
        if self.attempts.get(attempt.uid) is attempt:
            del self.attempts[attempt.uid]
        if attempt.deadline_at is not None:
            self._expiries.pop(attempt.uid).cancel()
        if not self.attempts and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin(self) -> None:
        self._timer = None
        if self.attempts:
            self._look = self.loop.create_task(self._look_once())
            self._look.add_done_callback(self._again)

    def _again(self, _: object) -> None:
        self._look = None
        if self.attempts:
            self._timer = self.loop.call_later(LOOK_SECONDS, self._begin, context=Context())

    async def _look_once(self) -> None:
        self._stop_closed()
        try:
            self.forget()
            switches = await self.switches()
            if switches is None:
                return  # the reader for all of them was cancelled
            uids = json.dumps(list(self.attempts))
            rows = await self.store.query("find_signalled", signal=CANCEL, uids=uids)
            paused = {str(uid): pause for uid, pause in await self.store.query("find_paused", uids=uids)}
        except PerdureError:
            return  # the store is unreachable; the attempts notice it by themselves
        cancelled = {uid for (uid,) in rows}
        await self._stop_lost()
        for attempt in list(self.attempts.values()):
            if not switches.isdisjoint(("", attempt.task_id)):
                attempt.unwinding.halt()
            elif attempt.uid in cancelled:
                attempt.unwinding.stop()
            elif attempt.uid in paused:
                attempt.unwinding.interrupt() if _is_urgent(attempt, paused[attempt.uid]) else attempt.unwinding.drain()
            else:
                note_calls(attempt)
                if attempt.unwinding.pausing:
                    await _bring_answers(attempt)

    def _stop_closed(self) -> None:
        """Stop attempts that can record nothing more. One whose lease is lost stops at once; another has until the next
        look to end by itself, and to close what it opened. Its code may wait for something that only a call which has
        failed in another branch would have given, such as an item of a queue: then it never ends by itself."""
        for attempt in list(self.attempts.values()):
            closed = attempt.fence.closed
            if closed is not None:
                seen = attempt.part(_Seen)
                if isinstance(closed, LeaseLost) or seen.was_closed:
                    stop(attempt)
                seen.was_closed = True

    async def _stop_lost(self) -> None:
        """Stop attempts that lost their lease. Leases are read once per lease time, and at once after a standstill."""
        now = self.store.clock.boottime()
        if now - self._leases_read < self.store.presence.lease.total_seconds():
            return
        try:
            lost = await find_lost(self.store, self.attempts.values())
        except PerdureError:
            return
        self._leases_read = now
        for attempt in lost:
            if self.attempts.get(attempt.uid) is attempt:
                stop(attempt)

    def seen(self) -> frozenset[str] | None:
        """The switches, if they were read less than 0.25 s ago."""
        return None if time.monotonic() - self._looked > LOOK_SECONDS else self._switches

    def switches(self) -> Awaitable[frozenset[str] | None]:
        """Read the switches now; many callers share one read. If that read is cancelled, the others get None."""
        return self._look_at_switches() if self._under_way is None else self._under_way

    async def _look_at_switches(self) -> frozenset[str]:
        look = self._under_way = _Look(self.loop)
        try:
            began = time.monotonic()
            rows = await self.store.rows(SwitchRow, "read_switches", namespace=self.store.namespace)
            self._switches = look.found = frozenset(row.id for row in rows)
            self._looked = began
            return look.found
        except Exception as error:
            look.error = error
            raise
        finally:
            self._under_way = None
            if look.waiting:
                self.loop.call_soon(wake_here, self.loop, look.waiting)


def _watched() -> Iterator[Watched]:
    for watch in list(_watches.values()):
        if watch.attempts and not watch.loop.is_closed():
            yield Watched(watch.loop, watch.thread, watch)


_watchdog = LoopWatchdog(_watched)
os.register_at_fork(after_in_child=_watchdog.forget)


class _Look(Struct, eq=False):
    """A read of the switches that is under way. Many tasks can wait for it: one callback wakes them all."""

    loop: asyncio.AbstractEventLoop
    waiting: list[Waiting] = []
    found: frozenset[str] | None = None
    error: Exception | None = None  # for all who wait: each would wait as long for its own

    def __await__(self) -> Generator[Any, None, frozenset[str] | None]:
        waiting = Waiting(self.loop)
        self.waiting.append(waiting)
        yield waiting
        if self.error is not None:
            raise self.error.with_traceback(None)
        return self.found


def _is_urgent(attempt: Attempt, sealed: bytes) -> bool:
    pause: Pause = attempt.store.unseal(attempt.uid, "pause", sealed, Pause)
    return pause.details.get("now") is True


async def _bring_answers(attempt: Attempt) -> None:
    """While part of the code is paused and part runs: resume the parts whose questions were answered meanwhile."""
    from perdure._tasks import look_after

    try:
        if attempt.task is not None:
            await look_after(attempt.store, attempt.uid)
        for row in await attempt.store.rows(PauseRow, "read_pauses", uid=attempt.uid):
            if row.answer is not None and row.path in attempt.unwinding.pausing:
                attempt.unwinding.answered(row.path, attempt.store.unseal(attempt.uid, "answer", row.answer))
    except PerdureError:
        return  # the next look, or the next attempt, finds it


# ── time-outs ─────────────────────────────────────────────────────────────────────────────────────


def expire(attempt: Attempt, deadline_at: int) -> asyncio.Task[None]:
    """Watch the deadline: when it passes, fail the task and end the attempt."""
    return attempt.loop.create_task(_expire(attempt, deadline_at))


async def _expire(attempt: Attempt, deadline_at: int) -> None:
    store = attempt.store
    # Every worker checks too. So where the time must be asked from a server, ask less often.
    longest = store.clock.longest_wait * (1 if store.engine.is_local else 10)
    while (left := deadline_at - await store.wall_ms()) > 0:
        await Nap(min(left / 1000, longest))
    if attempt.task is None:
        return
    error = await fail_overdue(attempt.task, deadline_at)
    if error is not None:
        attempt.poison(error)
        if attempt.body is not None:
            attempt.body.cancel()


# ── calls under way ───────────────────────────────────────────────────────────────────────────────


class _Seen:
    """What was under way at the last look, what has been noted, and whether it could still record something."""

    def __init__(self, _: Attempt) -> None:
        self.was_closed = False
        self.before: dict[str, Any] = {}
        self.noted: dict[str, Any] = {}


def note_calls(attempt: Attempt) -> None:
    """Record the steps and effects of this attempt that have been under way since the last look."""
    activity = attempt.activity
    # By path: of a step, its call and its arguments; an effect itself.
    under_way: dict[str, Any] = dict(activity.steps)
    if activity.effects is not None:
        # One whose intent is still on its way to the disk has not entered its body.
        under_way |= {effect.path: effect for effect in list(activity.effects.walks) if effect.is_open}
    if not under_way or attempt.unwinding.has_begun or attempt.is_over:
        return
    seen = attempt.part(_Seen)
    seen.noted = {path: begun for path, begun in seen.noted.items() if under_way.get(path) is begun}
    fresh = [path for path, begun in under_way.items() if seen.before.get(path) is begun and path not in seen.noted]
    seen.before = under_way
    for path in islice(fresh, max(_MOST_NOTED - len(seen.noted), 0)):
        begun = seen.noted[path] = under_way[path]
        with suppress(PerdureError):  # the attempt is closed; its next call raises
            shown = codec.encode(begun[0].shown(*begun[1:]) if isinstance(begun, tuple) else begun.shown)
            now = attempt.store.clock.now_ms()
            stack: Note = {"stack": "\n".join(_stack(attempt, scope_of(path)))}
            entry = Entry("result", BEGUN, f"{path}|{BEGUN}", b"", shown, at=now, epoch=attempt.epoch, note=stack)
            attempt.record(entry, urgent=True)


def _stack(attempt: Attempt, scope: str) -> list[str]:
    """The functions this scope is waiting in; empty for a plain function, which has no asyncio task."""
    tasks = (task for task, alive in attempt.activity.alive.values() if alive.path == scope)
    task = attempt.body if not scope else next(tasks, None)
    return stack_of(task) if isinstance(task, asyncio.Task) and not task.done() else []
