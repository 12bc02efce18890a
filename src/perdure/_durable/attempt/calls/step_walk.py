"""The walk of a step: ask the journal, run the body if it is not recorded, record its outcome, hand it out.

A plain step takes the general walk (recorded_calls.py). An async step takes the same walk, unrolled here for speed.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from perdure._durable.attempt.attempt import Attempt
from perdure._durable.attempt.blocking import refuse_lost_thread, watch_coroutines_of
from perdure._durable.attempt.calls.call import Call, never, on_another_loop
from perdure._durable.attempt.calls.current_task import running_effect
from perdure._durable.attempt.calls.recorded_calls import Policy, RecordedCall, walk_here
from perdure._durable.attempt.calls.step_tries import attempts_of
from perdure._durable.attempt.pipeline import SHORTEST_WAIT
from perdure._durable.attempt.scopes import Scope, current
from perdure._durable.attempt.unwinding import Paused, is_leaving
from perdure._durable.values import decode_error
from perdure._ground.bridge import drive
from perdure._model import Entry
from perdure._replay import Cut, Diverged, Fresh, Recorded, plain_digest
from perdure.errors import InvalidInput, TooLarge

_ABSORBED: dict[str, str | int | float | None] = {"absorbed": 1}


def async_step(call: Call) -> Callable[..., Any]:
    """An async step: a hot loop, whose slow twin is `walk(StepCall(…))`. Both write the same entries."""
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
            elif scope.attempt.unwinding.stopping:
                _refuse(scope.attempt)
            return await function(*args, **kwargs)
        attempt = scope.attempt
        activity, unwinding = attempt.activity, attempt.unwinding
        if attempt.fence.closed is not None or unwinding.has_begun or attempt.is_over:
            attempt.check()
        asked = (plain_digest(args) if told_plainly and not kwargs else None) or digest(args, kwargs)
        answer = (scope.made_track or scope.track).ask(name, asked)
        if type(answer) is not Fresh:
            if type(answer) is Recorded:
                if activity.ordered > 1:
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
        if unwinding.draining:
            await attempt.may_start()  # before it counts as under way: nothing begins any more
        ending: StepCall | None = None
        was_cut: asyncio.CancelledError | None = None
        activity.bodies += 1
        try:
            began = perf_counter()
            pipeline = attempt.pipeline
            if began > pipeline.near_until or attempt.fence.position > pipeline.near_up_to or unwinding.stopping:
                await attempt.may_start()
                began = perf_counter()
            # Told its loop, Python 3.11 need not find it by a system call: a twentieth of what a small step costs.
            task = None if attempt.is_elsewhere() else asyncio.current_task(attempt.loop)
            if task is None:
                raise on_another_loop(name)
            before = task.cancelling()
            attempt.fresh += 1
            token = enter(Scope(attempt, path, True, task))
            activity.steps[path] = (call, args, kwargs)
            value = None
            try:
                if is_plain:
                    value = await (function(*args, **kwargs) if kwargs else function(*args))
                else:
                    value = await attempts_of(attempt, path, call, asked, args, kwargs)
            except BaseException as raised:
                ending = StepCall(scope, call, asked, args, kwargs, path, before)
                ending.fail(raised)
            finally:
                took = perf_counter() - began
                del activity.steps[path]
                leave(token)
            if attempt.is_over:
                raise asyncio.CancelledError  # the function has ended without it
            if ending is None:
                if task.cancelling() == before and activity.ordered == 1 and not attempt.always_replay:
                    kept = _keep(call, attempt, path, asked, value, took)
                    if kept is not None:
                        return kept[1]
                ending = StepCall(scope, call, asked, args, kwargs, path, before)
                ending.value = value
            ending.took = took
            ending.absorbed = task.cancelling() > before
            write = ending.record()
            if write is not None:
                await write
                attempt.check()
        except asyncio.CancelledError as raised:
            if attempt.is_ending:
                raise
            was_cut = raised
            ending = ending or StepCall(scope, call, asked, args, kwargs, path)
        finally:
            activity.bodies -= 1
            if unwinding.pausing or unwinding.stopping:
                unwinding.begin_when_still()
        if was_cut is not None:
            await ending.cancelled()
            raise was_cut  # itself: anyio knows its own by what it says
        if activity.ordered > 1 or attempt.always_replay:
            try:
                await ending.hand_out()
            except asyncio.CancelledError:
                await ending.cancelled()
                raise
        elif (gate := attempt.made_gate) is not None and ending.position is not None:
            gate.passed(ending.position)
        return ending.copy if ending.trouble is None else ending.give()

    watch_coroutines_of(stepped)
    return stepped


def _refuse(attempt: Attempt) -> None:
    """Refuse to begin anything more, also inside a step. Only an effect that is under way continues to its outcome."""
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
    """Record the usual case: a value that needs no wait, in a function with one scope, where it is handed out at once.
    Returns its bytes and the caller's value. Returns None for any other case, with nothing recorded."""
    is_quick = took < SHORTEST_WAIT
    if (call.flush is not None or not is_quick) and attempt.pipeline.is_worth_waiting(took, call.flush):
        return None
    kept = call.plainly(value)
    if kept is None:
        return None
    now, took_ms = attempt.store.clock.now_ms(), 0 if is_quick else int(took * 1000)
    note = attempt.activity.touched.pop(path, None) if attempt.activity.touched else None
    entry = Entry("result", "step", path, asked, kept[0], None, now, took_ms, attempt.epoch, note)
    try:
        position, _ = attempt.pipeline.record(entry)
    except TooLarge:
        return None
    if attempt.made_gate is not None:
        attempt.made_gate.passed(position)
    return kept


class StepCall(RecordedCall):
    """A step as the general walk takes it."""

    op = "step"
    policy = Policy(has_scope=True, flush=None, is_timed=True)
    absorbed = False  # the code has cancelled it, and it ended all the same

    def __init__(
        self,
        scope: Scope,
        call: Call,
        asked: bytes,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        path: str = "",
        before: int = 0,
    ) -> None:
        self.scope, self.attempt, self.name = scope, scope.attempt, call.name
        self.call, self.asked, self.args, self.kwargs = call, asked, args, kwargs
        self.path = path
        self.before = before  # how often its task had been cancelled when it began

    def declared(self) -> Sequence[type[BaseException]]:
        return self.call.raises

    async def take_turn(self, found: Recorded) -> None:
        attempt = self.attempt
        if attempt.activity.ordered > 1:
            await _turn(attempt, found)
        else:
            attempt.passed(found.position)

    def read(self, entry: Entry) -> Any:
        return self.call.read(entry)

    async def make(self) -> Any:
        attempt, call, task = self.attempt, self.call, asyncio.current_task()
        if task is None or task.get_loop() is not attempt.loop:
            raise on_another_loop(call.name)
        self.before = task.cancelling()
        attempt.fresh += 1
        attempt.activity.steps[self.path] = (call, self.args, self.kwargs)
        try:
            if call.is_plain:
                return await call.function(*self.args, **self.kwargs)
            return await attempts_of(attempt, self.path, call, self.asked, self.args, self.kwargs)
        finally:
            del attempt.activity.steps[self.path]
            self.absorbed = task.cancelling() > self.before

    def fail(self, raised: BaseException) -> None:
        """Keep an error of the step. Raises its cancellation, and what is not for the step to record."""
        attempt = self.attempt
        if isinstance(raised, asyncio.CancelledError):
            if attempt.is_ending or self._times_cancelled() > self.before:
                raise raised
            self.error = raised  # something that it awaited was cancelled, not the step
        elif not isinstance(raised, Exception) and is_leaving(raised):
            attempt.unwinding.leave(raised)
            raise raised
        elif attempt.fence.closed is not None:
            raise attempt.fence.closed from raised  # ours to raise again, not the step's to record
        else:
            self.error = raised

    def _times_cancelled(self) -> int:
        task = asyncio.current_task()
        return 0 if task is None else task.cancelling()

    def keep(self) -> None:
        if self.attempt.is_over:
            raise asyncio.CancelledError  # the function has ended without it

    def entry(self) -> Entry:
        attempt, call = self.attempt, self.call
        if self.error is None and (kept := call.plainly(self.value)) is not None:
            self.data, self.copy = kept
        else:
            self.data, self.trouble, self.copy = call.end_or_refuse(self.value, self.error)
        note = attempt.activity.touched.pop(self.path, None) if attempt.activity.touched else None
        if self.absorbed:
            note = {**(note or {}), **_ABSORBED}
        self.note = note
        return super().entry()

    def shortened(self, problem: TooLarge) -> Entry:
        """That it is too large is an error of the step, now as in replay."""
        self.data, self.trouble, self.copy = self.call.end(None, problem)
        return super().entry()

    def is_waited_for(self) -> bool:
        return self.attempt.pipeline.is_worth_waiting(self.took, self.call.flush)

    def give(self) -> Any:
        if self.trouble is not None:
            raise decode_error(self.trouble, self.call.raises) from self.error
        return self.copy


# ── plain functions ──────────────────────────────────────────────────────────────────────────────


class PlainStepCall(StepCall):
    """A step that is a plain function."""

    op = "inline"
    policy = Policy(is_plain=True, has_scope=True, is_alone=True, flush=None, is_timed=True)

    async def take_turn(self, found: Recorded) -> None:
        if found.entry.op == "step":  # it was async then, and had its place in the order
            self.attempt.passed(found.position)

    def make(self) -> Any:
        attempt, call = self.attempt, self.call
        attempt.fresh += 1
        attempt.activity.steps[self.path] = (call, self.args, self.kwargs)
        try:
            if call.is_plain:
                return call.function(*self.args, **self.kwargs)
            return drive(attempts_of(attempt, self.path, call, self.asked, self.args, self.kwargs))
        finally:
            del attempt.activity.steps[self.path]

    def fail(self, raised: BaseException) -> None:
        attempt = self.attempt
        if not isinstance(raised, Exception) and is_leaving(raised):
            attempt.unwinding.leave(raised)
            raise raised
        if attempt.fence.closed is not None:
            raise attempt.fence.closed from raised
        self.error = raised

    def keep(self) -> None:
        pass

    def after_record(self, position: int, entry: Entry) -> None:
        self.attempt.warn_if_slow(self.call.name, self.took)

    async def cancelled(self) -> None:
        pass  # not by the code: a plain call cannot be cut off


def sync_step(call: Call) -> Callable[..., Any]:
    """A plain `def`: made where it is called. On an event loop it holds the loop up, as any plain call does."""
    function, name = call.function, call.name
    if call.timeout is not None:
        raise InvalidInput(f"the plain function {name} has a timeout, and nothing can cut it off", do="make it async")

    @functools.wraps(function)
    def stepped(*args: Any, **kwargs: Any) -> Any:
        scope = current.get()
        if scope is None or scope.is_body:
            if scope is None:
                refuse_lost_thread(name)
            elif scope.attempt.unwinding.stopping:
                _refuse(scope.attempt)
            return function(*args, **kwargs)
        scope.attempt.check()
        return walk_here(PlainStepCall(scope, call, call.digest(args, kwargs), args, kwargs))

    return stepped
