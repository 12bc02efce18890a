"""The walk of a step: ask the journal, run the body if it must be, record how it ended, hand it out."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from time import perf_counter
from typing import Any

from perdure._durable.attempt.attempt import SHORTEST_WAIT, Run
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
            elif scope.run.stopping:
                _refuse(scope.run)
            return await function(*args, **kwargs)
        run = scope.run
        if run.fence.closed is not None or run.unwinding or run.is_over:
            run.check()
        asked = (plain_digest(args) if told_plainly and not kwargs else None) or digest(args, kwargs)
        answer = (scope.made_track or scope.track).ask(name, asked)
        if type(answer) is not Fresh:
            if type(answer) is Recorded:
                if run.ordered > 1:
                    await _turn(run, answer)
                elif (gate := run.made_gate) is not None:
                    gate.passed(answer.position)
                run.replayed += 1
                return read(answer.entry)
            if type(answer) is Diverged:
                raise run.poison(run.diverged(answer))
            if type(answer) is Cut:
                return await never(run, answer.position)
        # Fresh; or with an intent: it was being tried again.
        path = answer.path
        if run.draining:
            await run.may_start()  # before it counts as under way: nothing begins any more
        ending: _Ending | None = None
        run.bodies += 1
        try:
            began = perf_counter()
            if began > run.near_until or run.fence.position > run.near_up_to or run.stopping:
                await run.may_start()
                began = perf_counter()
            task = asyncio.current_task()
            if task is None or task.get_loop() is not run.loop:
                raise on_another_loop(name)
            before = task.cancelling()
            run.fresh += 1
            token = enter(Scope(run, path, True, task))
            run.under_way[path] = (call, args, kwargs)
            value = None
            try:
                if is_plain:
                    value = await (function(*args, **kwargs) if kwargs else function(*args))
                else:
                    value = await attempts_of(run, path, call, asked, args, kwargs)
            except BaseException as raised:
                ending = _Ending(call, run, path, asked)
                ending.ended_by(raised, task.cancelling() > before)
            finally:
                took = perf_counter() - began
                del run.under_way[path]
                leave(token)
            if run.is_over:
                raise asyncio.CancelledError  # the function has ended without it
            if ending is None:
                if task.cancelling() == before and run.ordered == 1 and not run.always_replay:
                    kept = _keep(call, run, path, asked, value, took)
                    if kept is not None:
                        return kept[1]
                ending = _Ending(call, run, path, asked)
                ending.value = value
            ending.took = took
            if ending.was_cut is None:
                ending.absorbed = task.cancelling() > before
                write = ending.record("step")
                if write is not None:
                    await write
                    run.check()
        except asyncio.CancelledError as raised:
            if run.is_ending:
                raise
            ending = ending or _Ending(call, run, path, asked)
            ending.was_cut = raised
        finally:
            run.bodies -= 1
            if run.pausing or run.stopping:
                run.look_for_unwinding()
        if ending.was_cut is not None or run.ordered > 1 or run.always_replay:
            await _hand_out(run, ending)
        else:
            run.passed(ending.position)
        return ending.copy if ending.trouble is None else ending.give()

    watch_coroutines_of(stepped)
    return stepped


def _refuse(run: Run) -> None:
    """Nothing begins any more, also inside a step; only an effect that is under way goes on to its end."""
    if running_effect.get(None) is None:
        run.check()
        raise Paused


async def _turn(run: Run, answer: Recorded) -> None:
    entry, position = answer.entry, answer.position
    if entry.op != "step":
        return  # it was had at once when it was recorded
    if entry.note is not None and "absorbed" in entry.note:
        await run.gate.turn(position, absorbs=True)
        return
    gate = run.gate
    try:
        await gate.come(position)
    finally:
        gate.leave(position)


def _keep(call: Call, run: Run, path: str, asked: bytes, value: Any, took: float) -> tuple[bytes, Any] | None:
    """Record what most steps come to: a value that nobody waits for, in a function of one scope, where it goes out at
    once. Its bytes and what the caller gets; None when it is something else, and nothing was recorded."""
    is_quick = took < SHORTEST_WAIT
    if (call.flush is not None or not is_quick) and run.is_worth_waiting(took, call.flush):
        return None
    kept = call.plainly(value)
    if kept is None:
        return None
    now, took_ms = run.store.clock.now_ms(), 0 if is_quick else int(took * 1000)
    note = run.touched.pop(path, None) if run.touched else None
    entry = Entry("result", "step", path, asked, kept[0], None, now, took_ms, run.epoch, note)
    try:
        position, _ = run.record(entry)
    except TooLarge:
        return None
    if run.made_gate is not None:
        run.made_gate.passed(position)
    return kept


async def _hand_out(run: Run, ending: _Ending) -> None:
    if ending.was_cut is not None:
        await ending.cut_off()
        raise ending.was_cut  # itself: anyio knows its own by what it says
    try:
        await run.hand_out(ending.position)
    except asyncio.CancelledError:
        if not run.is_ending:
            await ending.cut_off()
        raise


class _Ending:
    """How a step's body ended, on its way to the journal and to the caller."""

    __slots__ = (
        "absorbed", "asked", "call", "copy", "error", "path", "position", "run", "took", "trouble", "value", "was_cut",
    )  # fmt: skip

    def __init__(self, call: Call, run: Run, path: str, asked: bytes) -> None:
        self.call, self.run, self.path, self.asked = call, run, path, asked
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
        run = self.run
        if isinstance(raised, asyncio.CancelledError):
            if run.is_ending:
                raise raised
            if is_cancelled:
                self.was_cut = raised
            else:
                self.error = raised  # something that it awaited was cancelled, not the step
        elif not isinstance(raised, Exception) and is_leaving(raised):
            run.leave(raised)
            raise raised
        elif run.fence.closed is not None:
            raise run.fence.closed from raised  # ours to raise again, not the step's to record
        else:
            self.error = raised

    def record(self, op: str) -> Write | None:
        """Put it into the journal; the write, if it is worth waiting for."""
        run, call = self.run, self.call
        data: bytes | None
        if self.error is None and (kept := call.plainly(self.value)) is not None:
            data, self.copy = kept
        else:
            data, self.trouble, self.copy = call.end_or_refuse(self.value, self.error)
        wait = run.is_worth_waiting(self.took, call.flush)
        note = run.touched.pop(self.path, None) if run.touched else None
        if self.absorbed:
            note = {**(note or {}), **_ABSORBED}
        how = run.store.clock.now_ms(), int(self.took * 1000), run.epoch, note
        try:
            entry = Entry("result", op, self.path, self.asked, data, self.trouble, *how)
            self.position, write = run.record(entry, urgent=wait)
        except TooLarge as problem:  # an error of the step, now as in replay
            _, self.trouble, self.copy = self.call.end(None, problem)
            entry = Entry("result", op, self.path, self.asked, None, self.trouble, *how)
            self.position, write = run.record(entry, urgent=wait)
        if op == "step" and (wait or run.ordered > 1):
            run.gate.expect(self.position)
        return write if wait else None

    async def cut_off(self) -> None:
        self.run.passed(self.position)
        await cut_off(self.run, "step", self.path, self.asked)

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
            elif scope.run.stopping:
                _refuse(scope.run)
            return function(*args, **kwargs)
        run = scope.run
        run.check()
        asked = call.digest(args, kwargs)
        answer = scope.track.ask(name, asked)
        if type(answer) is Recorded:
            run.replayed += 1
            if answer.entry.op == "step":  # it was async then, and had its place in the order
                run.passed(answer.position)
            return call.read(answer.entry)
        if type(answer) is Cut:  # it was async then; a plain call cannot wait to be cancelled
            answer = Diverged(answer.position, f"{name}, cut off", f"{name} as a plain function")
        if type(answer) is Diverged:
            raise run.poison(run.diverged(answer))
        if scope.is_busy:
            raise two_threads(name)
        scope.is_busy = True
        try:
            return _run_here(call, run, answer.path, asked, args, kwargs)
        finally:
            scope.is_busy = False

    return stepped


def _run_here(call: Call, run: Run, path: str, asked: bytes, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    run.may_start_here()
    with _under_way(run):
        ending = _ended_here(call, run, path, asked, args, kwargs)
    if run.always_replay:
        run.is_restarting = True
    return ending.give()


@contextmanager
def _under_way(run: Run) -> Iterator[None]:
    """A plain step in a thread of its own holds the unwinding up, as an async one does."""
    if not run.is_elsewhere():
        yield
        return
    with _counting:
        run.inline += 1
    try:
        yield
    finally:
        with _counting:
            run.inline -= 1
        if run.pausing or run.draining:
            run.look_for_unwinding()


def _ended_here(
    call: Call, run: Run, path: str, asked: bytes, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> _Ending:
    """Run it, and record how it ended."""
    run.fresh += 1
    ending = _Ending(call, run, path, asked)
    token = current.set(Scope(run, path, is_body=True))
    run.under_way[path] = (call, args, kwargs)
    began = perf_counter()
    try:
        if call.is_plain:
            ending.value = call.function(*args, **kwargs)
        else:
            ending.value = drive(attempts_of(run, path, call, asked, args, kwargs))
    except BaseException as raised:
        if not isinstance(raised, Exception) and is_leaving(raised):
            run.leave(raised)
            raise
        if run.fence.closed is not None:
            raise run.fence.closed from raised
        ending.error = raised
    finally:
        ending.took = perf_counter() - began
        del run.under_way[path]
        current.reset(token)
    write = ending.record("inline")
    run.warn_if_slow(call.name, ending.took)
    if write is not None:
        run.wait_here(write)
    return ending
