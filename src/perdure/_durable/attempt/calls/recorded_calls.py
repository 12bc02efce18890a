"""The walk that every recorded call takes: ask the journal, make the call if it is not recorded, record its outcome.

    ask the scope's track
        recorded   wait for its turn, and return the recorded outcome
        diverged   close the attempt: the code asks for another call than the recorded one
        cut        wait until the code cancels the call, as it did before
        fresh      make the call, record how it ended, wait for its turn, give it to the code

A kind of call is a subclass of RecordedCall: it says how the call is made, how its entry is written, and how an entry
is read. Its Policy selects the variant of the walk. An async call is awaited with `walk`, a plain one is made with
`walk_here`. Two hot loops are the same walk, unrolled for speed: async steps (step_walk.py) and async effects
(effects/effect_decorator.py). tests/replay/test_one_walk.py compares their journals with those of this walk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from threading import Lock
from time import perf_counter
from typing import Any, TypeVar

from msgspec import Struct

from perdure._durable.attempt.attempt import Attempt
from perdure._durable.attempt.blocking import two_threads
from perdure._durable.attempt.calls.call import Note, cut_off, never
from perdure._durable.attempt.scopes import Scope, current
from perdure._durable.values import declared_here, decode_error, encode_error
from perdure._ground.encoding import codec
from perdure._model import Entry
from perdure._replay import Answer, Cut, Diverged, Fresh, Recorded, Uncertain
from perdure._store import Write
from perdure.errors import StoreUnavailable, TooLarge

T = TypeVar("T")
_counting = Lock()  # of plain calls under way, each in a thread of its own


class Policy(Struct, frozen=True):
    """Which way a kind of call takes through the walk."""

    is_plain: bool = False  # made in the caller's thread and handed out at once; else awaited, and handed out in order
    has_scope: bool = False  # its body is a scope of its own, in which nothing is numbered
    flush: bool | None = True  # its entry is waited for; None: if the body took long; False: it rides along
    waits_to_start: bool = True  # it starts only while the attempt may start bodies: not while the attempt ends
    is_under_way: bool = True  # the attempt is not unwound before it has ended
    is_alone: bool = False  # its scope makes no other plain call meanwhile
    is_timed: bool = False  # its entry says how long the body took
    counts: bool = True  # as replayed, in the attempt's report


class RecordedCall:
    """One call on its way. A subclass says how the call is made and read."""

    policy: Policy = Policy()
    op = "child"
    as_type: Any = Any
    is_in_step = False  # made by a step's body, so it has no turn
    known: Recorded | Fresh | Cut | Uncertain | None = None  # what the journal has, if that was asked before the walk
    position: int | None = None  # of its entry
    value: Any = None
    data: bytes | None = None  # the value as the journal keeps it
    copy: Any = None  # the value as the caller gets it
    error: BaseException | None = None
    trouble: bytes | None = None  # the error as the journal keeps it
    note: Note | None = None  # kept beside it
    took = 0.0  # seconds

    def __init__(self, scope: Scope, name: str, asked: bytes) -> None:
        self.scope, self.name, self.asked = scope, name, asked
        self.attempt: Attempt = scope.attempt
        self.path = ""

    def declared(self) -> Sequence[type[BaseException]]:
        """The exceptions that are rebuilt as they were."""
        return ()

    # ── what the journal has ────────────────────────────────────────────────────────────────────

    def ask(self) -> Answer:
        return self.scope.track.ask(self.name, self.asked, self.is_in_step)

    async def take_turn(self, found: Recorded) -> None:
        """Wait until it is the turn of a recorded result."""
        if not self.policy.is_plain and not self.is_in_step:
            await self.attempt.hand_out(found.position)

    def read(self, entry: Entry) -> Any:
        """Return to the caller the outcome of a recorded call."""
        if entry.error is not None:
            raise decode_error(entry.error, self.declared())
        assert entry.value is not None
        return codec.decode(entry.value, self.as_type)

    async def wait_for_cancellation(self, found: Cut) -> None:
        """The code has cancelled this call before, and does so again."""
        await never(self.attempt, found.position)

    # ── a call that is made now ─────────────────────────────────────────────────────────────────

    def make(self) -> Any:
        """The value of the call; of an async call, a coroutine that gives it."""
        raise NotImplementedError

    def keep(self) -> None:
        """Encode the value. A value that cannot be stored is an error of the call."""
        self.data, self.copy = codec.round_trip(self.value, self.as_type)

    def fail(self, raised: BaseException) -> None:
        """Keep an exception as the call's result. Raises it again if it is not the call's own."""
        if isinstance(raised, StoreUnavailable):
            # The outcome of the call is not known. Another attempt makes it again.
            raise self.attempt.poison(raised) from None
        if not isinstance(raised, Exception):
            raise raised
        self.attempt.fence.check()
        self.error, self.trouble = raised, encode_error(raised, self.declared())

    def entry(self) -> Entry:
        """The outcome of the call, as the journal stores it."""
        attempt = self.attempt
        now, took_ms = attempt.store.clock.now_ms(), int(self.took * 1000) if self.policy.is_timed else 0
        ended = self.data, self.trouble
        return Entry("result", self.op, self.path, self.asked, *ended, now, took_ms, attempt.epoch, self.note)

    def shortened(self, problem: TooLarge) -> Entry:
        """The entry in place of one that is too large."""
        raise problem

    def is_waited_for(self) -> bool:
        return self.attempt.pipeline.is_worth_waiting(self.took, self.policy.flush)

    def record(self) -> Write | None:
        """Put into the journal how the call ended. Returns the write if the call waits for it."""
        attempt, entry, waits = self.attempt, self.entry(), self.is_waited_for()
        try:
            position, write = attempt.record(entry, waits)
        except TooLarge as problem:
            entry = self.shortened(problem)
            position, write = attempt.record(entry, waits)
        self.position = position
        if self.is_in_step:
            attempt.cursor.learn(position, entry)
        elif not self.policy.is_plain and (waits or attempt.activity.ordered > 1):
            attempt.gate.expect(position)
        self.after_record(position, entry)
        return write if waits else None

    def after_record(self, position: int, entry: Entry) -> None:
        """The entry is on its way to the disk."""

    async def hand_out(self) -> None:
        """Wait until it is this result's turn to reach the code."""
        if self.position is not None and not self.is_in_step:
            await self.attempt.hand_out(self.position)

    async def cancelled(self) -> None:
        """The call was cancelled. If that was the code, record it, and wait for the cancellation's turn."""
        attempt = self.attempt
        if attempt.is_ending:
            return
        if self.position is not None and not self.is_in_step:
            attempt.passed(self.position)
        await self.cut_off()

    async def cut_off(self) -> None:
        await cut_off(self.attempt, self.op, self.path, self.asked, in_body=self.is_in_step)

    def give(self) -> Any:
        """Return to the caller the outcome of a call that was made just now."""
        if self.trouble is not None:
            raise decode_error(self.trouble, self.declared())
        return self.copy


# ── the walk ─────────────────────────────────────────────────────────────────────────────────────


async def walk(call: RecordedCall) -> Any:
    """The result of an async call: from the journal, or made now and recorded."""
    found = await _walk(call)
    return call.give() if found is None else call.read(found)


def walk_here(call: RecordedCall) -> Any:
    """The result of a plain call: from the journal, or made now in this thread and recorded."""
    found = _finish(_walk(call))
    return call.give() if found is None else call.read(found)


def ask(call: RecordedCall) -> Recorded | Fresh | Cut | Uncertain:
    """Look the call up in the journal: the first part of the walk.

    Raises:
        ReplayDiverged: the code asks for something else than the journal has. The attempt is closed.
        Paused: the attempt is being unwound.
    """
    attempt = call.attempt
    attempt.check()
    answer = call.ask()
    if type(answer) is Cut and call.policy.is_plain and not call.is_in_step:
        # It was async then. A plain call cannot wait to be cancelled.
        answer = Diverged(answer.position, f"{call.name}, cut off", f"{call.name} as a plain function")
    if isinstance(answer, Diverged):
        raise attempt.poison(attempt.diverged(answer))
    call.path = answer.path
    return answer


async def _walk(call: RecordedCall) -> Entry | None:
    """The entry of a call that was recorded; None if the call was made now."""
    # One coroutine: for a plain step each more would be a twentieth of its cost.
    attempt, policy = call.attempt, call.policy
    is_plain, is_in_step = policy.is_plain, call.is_in_step
    answer = call.known or ask(call)
    if type(answer) is Recorded:
        attempt.replayed += policy.counts
        await call.take_turn(answer)
        return answer.entry
    if type(answer) is Cut and not is_in_step:
        await call.wait_for_cancellation(answer)
    if policy.is_alone:
        if call.scope.is_busy:
            raise two_threads(call.name)
        call.scope.is_busy = not is_in_step
    try:
        if policy.waits_to_start and not is_in_step:  # before it is under way: nothing begins any more
            if is_plain:
                attempt.may_start_here()
            else:
                await attempt.may_start()
        is_counted = policy.is_under_way and (not is_plain or attempt.is_elsewhere())
        if is_counted:
            _begin(attempt, is_plain)
        try:
            token = None
            if policy.has_scope:
                token = current.set(Scope(attempt, call.path, True, None if is_plain else asyncio.current_task()))
            began = perf_counter()
            try:
                call.value = call.make() if is_plain else await call.make()
                call.keep()
            except BaseException as raised:
                call.fail(raised)
            finally:
                call.took = perf_counter() - began
                if token is not None:
                    current.reset(token)
            write = call.record()
            if write is not None and is_plain:
                attempt.pipeline.wait_here(write)
            elif write is not None:
                await write
                attempt.check()
        finally:
            if is_counted:
                _end(attempt, is_plain)
        if not is_plain:
            await call.hand_out()
        elif attempt.always_replay and policy.is_alone and not is_in_step:
            attempt.unwinding.is_restarting = True  # as it cannot be unwound itself, the next call is
    except asyncio.CancelledError:
        await call.cancelled()
        raise
    finally:
        if policy.is_alone:
            call.scope.is_busy = False
    return None


def _begin(attempt: Attempt, is_plain: bool) -> None:
    """From here on the attempt is not unwound."""
    if not is_plain:
        attempt.activity.bodies += 1
        return
    with _counting:
        attempt.activity.inline += 1


def _end(attempt: Attempt, is_plain: bool) -> None:
    if not is_plain:
        attempt.activity.bodies -= 1
    else:
        with _counting:
            attempt.activity.inline -= 1
    if attempt.unwinding.pausing or attempt.unwinding.stopping or attempt.unwinding.draining:
        attempt.unwinding.begin_when_still()


def _finish(work: Coroutine[Any, Any, T]) -> T:
    """The result of the walk of a plain call, which waits for nothing. Unlike `drive`, this leaves it to the call's
    body whether hops block."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise RuntimeError(f"{work!r} is the walk of a plain call, and waited")


# ── a call that is made by an async function ─────────────────────────────────────────────────────


class _FunctionCall(RecordedCall):
    """An async function whose result is recorded before the code gets it."""

    policy = Policy(counts=False)

    def __init__(self, scope: Scope, name: str, asked: bytes, as_type: Any, body: Any, takes_path: bool) -> None:
        super().__init__(scope, name.replace("|", "/").replace("#", "%"), asked)
        self.as_type, self._body, self._takes_path = as_type, body, takes_path

    def declared(self) -> Sequence[type[BaseException]]:
        return declared_here()

    def make(self) -> Any:
        return self._body(self.path) if self._takes_path else self._body()


async def recorded_call(
    scope: Scope, name: str, as_type: Any, body: Any, *, asked: bytes = b"", takes_path: bool = False
) -> Any:
    """The value of `body`, from the journal if it is there, else made now and recorded before it is given.

    With `takes_path` the body is given the call's path in the journal, which is the same in every attempt.
    """
    return await walk(_FunctionCall(scope, name, asked, as_type, body, takes_path))
