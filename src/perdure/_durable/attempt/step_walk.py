"""The walk of a step: ask the journal, run the body if it must be, record how it ended, hand it out."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from time import perf_counter
from typing import Any

from perdure._durable.attempt.attempt import SHORTEST_WAIT, Attempt
from perdure._durable.attempt.call import Call, cut_off, never, on_another_loop
from perdure._durable.attempt.current_task import running_effect
from perdure._durable.attempt.retry import attempts_of
from perdure._durable.attempt.scopes import Scope, current
from perdure._durable.attempt.threads import refuse_lost_thread, two_threads, watch_coroutines_of
from perdure._durable.attempt.unwinding import Paused, is_leaving
from perdure._durable.values import decode_error
from perdure._ground.bridge import drive
from perdure._model import Entry
from perdure._replay import Cut, Diverged, Fresh, Recorded, plain_digest
from perdure._store import Write
from perdure.errors import InvalidInput, TooLarge

_counting = Lock()  # of plain steps under way, each in a thread of its own
_ABSORBED: dict[str, str | int | float | None] = {"absorbed": 1}


def async_step(call: Call) -> Callable[..., Any]:
    function, name, digest, read = call.function, call.name, call.digest, call.read
    is_plain, told_plainly = call.is_plain, call.told_plainly
    here, enter, leave = current.get, current.set, current.reset

    @functools.wraps(function)
    async def stepped(*args: Any, **kwargs: Any) -> Any:
        # One coroutine from the call to its result: a second one would be a twentieth of what a small step costs.
        scope = here()
        if scope is None or scope.is_body:
            if scope is None:
                refuse_lost_thread(name)
            elif scope.attempt.stopping:
                _refuse(scope.attempt)
            return await function(*args, **kwargs)
        attempt = scope.attempt
        if attempt.fence.closed is not None or attempt.unwinding or attempt.is_over:
            attempt.check()
        asked = (plain_digest(args) if told_plainly and not kwargs else None) or digest(args, kwargs)
        answer = (scope.made_track or scope.track).ask(name, asked)
        if type(answer) is not Fresh:
            if type(answer) is Recorded:
                if attempt.ordered > 1:
                    await _turn(attempt, answer)
                elif (gate := attempt.made_gate) is not None:
                    gate.passed(answer.position)
                attempt.replayed += 1
                return read(answer.entry)
            if type(answer) is Diverged:
                raise attempt.poison(attempt.diverged(answer))
            if type(answer) is Cut:
                return await never(attempt, answer.position)
        # Fresh; or with an intent: it was being tried again.
        path = answer.path
        if attempt.draining:
            await attempt.may_start()  # before it counts as under way: nothing begins any more
        ending: _Ending | None = None
        attempt.bodies += 1
        try:
            began = perf_counter()
            if began > attempt.near_until or attempt.fence.position > attempt.near_up_to or attempt.stopping:
                await attempt.may_start()
                began = perf_counter()
            # Told its loop, Python 3.11 need not find it by a system call: a twentieth of what a small step costs.
            task = None if attempt.is_elsewhere() else asyncio.current_task(attempt.loop)
            if task is None:
                raise on_another_loop(name)
            before = task.cancelling()
            attempt.fresh += 1
            token = enter(Scope(attempt, path, True, task))
            attempt.under_way[path] = (call, args, kwargs)
            value = None
            try:
                if is_plain:
                    value = await (function(*args, **kwargs) if kwargs else function(*args))
                else:
                    value = await attempts_of(attempt, path, call, asked, args, kwargs)
            except BaseException as raised:
                ending = _Ending(call, attempt, path, asked)
                ending.ended_by(raised, task.cancelling() > before)
            finally:
                took = perf_counter() - began
                del attempt.under_way[path]
                leave(token)
            if attempt.is_over:
                raise asyncio.CancelledError  # the function has ended without it
            if ending is None:
                if task.cancelling() == before and attempt.ordered == 1 and not attempt.always_replay:
                    kept = _keep(call, attempt, path, asked, value, took)
                    if kept is not None:
                        return kept[1]
                ending = _Ending(call, attempt, path, asked)
                ending.value = value
            ending.took = took
            if ending.was_cut is None:
                ending.absorbed = task.cancelling() > before
                write = ending.record("step")
                if write is not None:
                    await write
                    attempt.check()
        except asyncio.CancelledError as raised:
            if attempt.is_ending:
                raise
            ending = ending or _Ending(call, attempt, path, asked)
            ending.was_cut = raised
        finally:
            attempt.bodies -= 1
            if attempt.pausing or attempt.stopping:
                attempt.look_for_unwinding()
        if ending.was_cut is not None or attempt.ordered > 1 or attempt.always_replay:
            await _hand_out(attempt, ending)
        else:
            attempt.passed(ending.position)
        return ending.copy if ending.trouble is None else ending.give()

    watch_coroutines_of(stepped)
    return stepped


def _refuse(attempt: Attempt) -> None:
    """Nothing begins any more, also inside a step; only an effect that is under way goes on to its end."""
    if running_effect.get(None) is None:
        attempt.check()
        raise Paused


async def _turn(attempt: Attempt, answer: Recorded) -> None:
    entry, position = answer.entry, answer.position
    if entry.op != "step":
        return  # it was had at once when it was recorded
    if entry.note is not None and "absorbed" in entry.note:
        await attempt.gate.turn(position, absorbs=True)
        return
    gate = attempt.gate
    try:
        await gate.come(position)
    finally:
        gate.leave(position)


def _keep(call: Call, attempt: Attempt, path: str, asked: bytes, value: Any, took: float) -> tuple[bytes, Any] | None:
    """Record what most steps come to: a value that nobody waits for, in a function of one scope, where it goes out at
    once. Its bytes and what the caller gets; None when it is something else, and nothing was recorded."""
    is_quick = took < SHORTEST_WAIT
    if (call.flush is not None or not is_quick) and attempt.is_worth_waiting(took, call.flush):
        return None
    kept = call.plainly(value)
    if kept is None:
        return None
    now, took_ms = attempt.store.clock.now_ms(), 0 if is_quick else int(took * 1000)
    note = attempt.touched.pop(path, None) if attempt.touched else None
    entry = Entry("result", "step", path, asked, kept[0], None, now, took_ms, attempt.epoch, note)
    try:
        position, _ = attempt.record(entry)
    except TooLarge:
        return None
    if attempt.made_gate is not None:
        attempt.made_gate.passed(position)
    return kept


async def _hand_out(attempt: Attempt, ending: _Ending) -> None:
    if ending.was_cut is not None:
        await ending.cut_off()
        raise ending.was_cut  # itself: anyio knows its own by what it says
    try:
        await attempt.hand_out(ending.position)
    except asyncio.CancelledError:
        if not attempt.is_ending:
            await ending.cut_off()
        raise


class _Ending:
    """How a step's body ended, on its way to the journal and to the caller."""

    __slots__ = (
        "absorbed", "asked", "attempt", "call", "copy", "error", "path", "position", "took", "trouble", "value",
        "was_cut",
    )  # fmt: skip

    def __init__(self, call: Call, attempt: Attempt, path: str, asked: bytes) -> None:
        self.call, self.attempt, self.path, self.asked = call, attempt, path, asked
        self.value: Any = None
        self.copy: Any = None
        self.error: BaseException | None = None
        self.trouble: bytes | None = None
        self.was_cut: asyncio.CancelledError | None = None
        self.absorbed = False
        self.position = 0
        self.took = 0.0

    def ended_by(self, raised: BaseException, is_cancelled: bool) -> None:
        """The body has raised: an error of the step, its cancellation, or something that is not for it to record."""
        attempt = self.attempt
        if isinstance(raised, asyncio.CancelledError):
            if attempt.is_ending:
                raise raised
            if is_cancelled:
                self.was_cut = raised
            else:
                self.error = raised  # something that it awaited was cancelled, not the step
        elif not isinstance(raised, Exception) and is_leaving(raised):
            attempt.leave(raised)
            raise raised
        elif attempt.fence.closed is not None:
            raise attempt.fence.closed from raised  # ours to raise again, not the step's to record
        else:
            self.error = raised

    def record(self, op: str) -> Write | None:
        """Put it into the journal; the write, if it is worth waiting for."""
        attempt, call = self.attempt, self.call
        data: bytes | None
        if self.error is None and (kept := call.plainly(self.value)) is not None:
            data, self.copy = kept
        else:
            data, self.trouble, self.copy = call.end_or_refuse(self.value, self.error)
        wait = attempt.is_worth_waiting(self.took, call.flush)
        note = attempt.touched.pop(self.path, None) if attempt.touched else None
        if self.absorbed:
            note = {**(note or {}), **_ABSORBED}
        how = attempt.store.clock.now_ms(), int(self.took * 1000), attempt.epoch, note
        try:
            entry = Entry("result", op, self.path, self.asked, data, self.trouble, *how)
            self.position, write = attempt.record(entry, urgent=wait)
        except TooLarge as problem:  # an error of the step, now as in replay
            _, self.trouble, self.copy = self.call.end(None, problem)
            entry = Entry("result", op, self.path, self.asked, None, self.trouble, *how)
            self.position, write = attempt.record(entry, urgent=wait)
        if op == "step" and (wait or attempt.ordered > 1):
            attempt.gate.expect(self.position)
        return write if wait else None

    async def cut_off(self) -> None:
        self.attempt.passed(self.position)
        await cut_off(self.attempt, "step", self.path, self.asked)

    def give(self) -> Any:
        if self.trouble is not None:
            raise decode_error(self.trouble, self.call.raises) from self.error
        return self.copy


# ── plain functions ──────────────────────────────────────────────────────────────────────────────


def sync_step(call: Call) -> Callable[..., Any]:
    """A plain `def`: done where it is called. On an event loop it holds it up, as any plain call does."""
    function, name = call.function, call.name
    if call.timeout is not None:
        raise InvalidInput(f"the plain function {name} has a timeout, and nothing can cut it off", do="make it async")

    @functools.wraps(function)
    def stepped(*args: Any, **kwargs: Any) -> Any:
        scope = current.get()
        if scope is None or scope.is_body:
            if scope is None:
                refuse_lost_thread(name)
            elif scope.attempt.stopping:
                _refuse(scope.attempt)
            return function(*args, **kwargs)
        attempt = scope.attempt
        attempt.check()
        asked = call.digest(args, kwargs)
        answer = scope.track.ask(name, asked)
        if type(answer) is Recorded:
            attempt.replayed += 1
            if answer.entry.op == "step":  # it was async then, and had its place in the order
                attempt.passed(answer.position)
            return call.read(answer.entry)
        if type(answer) is Cut:  # it was async then; a plain call cannot wait to be cancelled
            answer = Diverged(answer.position, f"{name}, cut off", f"{name} as a plain function")
        if type(answer) is Diverged:
            raise attempt.poison(attempt.diverged(answer))
        if scope.is_busy:
            raise two_threads(name)
        scope.is_busy = True
        try:
            return _run_here(call, attempt, answer.path, asked, args, kwargs)
        finally:
            scope.is_busy = False

    return stepped


def _run_here(
    call: Call, attempt: Attempt, path: str, asked: bytes, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    attempt.may_start_here()
    with _under_way(attempt):
        ending = _ended_here(call, attempt, path, asked, args, kwargs)
    if attempt.always_replay:
        attempt.is_restarting = True
    return ending.give()


@contextmanager
def _under_way(attempt: Attempt) -> Iterator[None]:
    """A plain step in a thread of its own holds the unwinding up, as an async one does."""
    if not attempt.is_elsewhere():
        yield
        return
    with _counting:
        attempt.inline += 1
    try:
        yield
    finally:
        with _counting:
            attempt.inline -= 1
        if attempt.pausing or attempt.draining:
            attempt.look_for_unwinding()


def _ended_here(
    call: Call, attempt: Attempt, path: str, asked: bytes, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> _Ending:
    """Run it, and record how it ended."""
    attempt.fresh += 1
    ending = _Ending(call, attempt, path, asked)
    token = current.set(Scope(attempt, path, is_body=True))
    attempt.under_way[path] = (call, args, kwargs)
    began = perf_counter()
    try:
        if call.is_plain:
            ending.value = call.function(*args, **kwargs)
        else:
            ending.value = drive(attempts_of(attempt, path, call, asked, args, kwargs))
    except BaseException as raised:
        if not isinstance(raised, Exception) and is_leaving(raised):
            attempt.leave(raised)
            raise
        if attempt.fence.closed is not None:
            raise attempt.fence.closed from raised
        ending.error = raised
    finally:
        ending.took = perf_counter() - began
        del attempt.under_way[path]
        current.reset(token)
    write = ending.record("inline")
    attempt.warn_if_slow(call.name, ending.took)
    if write is not None:
        attempt.wait_here(write)
    return ending
