"""One effect on its way: intent, run, outcome.

    _intend    the intent is on disk, and the lease is still ours
    _body      ends as done, as definitely failed, or as unknown
    settling   an unknown one is settled, or a person is asked
    ended      the outcome is recorded; it is written to disk with the next entry

An `async def` makes this walk on the event loop; a plain `def` drives it to its end in the calling thread. So
everything it waits for is a hop, and only `_body` does what needs a loop.
"""

from __future__ import annotations

import asyncio
import math
from typing import Any

from perdure._durable.attempt import (
    Attempt,
    Note,
    Policy,
    RecordedCall,
    Retry,
    Scope,
    current,
    cut_off,
    is_leaving,
    running_effect,
    stand_down,
    wait_until,
)
from perdure._durable.effects import settlement
from perdure._durable.effects.declaration import EffectCall, EffectOutcome, is_own_coroutine, key_of, not_awaited
from perdure._durable.effects.effect_in_progress import NO_MARKS, EffectInProgress
from perdure._durable.effects.running_effects import at_work_of
from perdure._durable.values import decode_error
from perdure._ground import crash_points as crash
from perdure._ground.bridge import drive
from perdure._model import Entry
from perdure._replay import Answer, Cut, Recorded, Uncertain
from perdure._store import Write
from perdure.errors import EffectUncertain, NotStorable, ResultNotStorable, TooLarge

# Nothing was stopped for long, whatever the lease, if a commit was waited for no longer than this.
_NO_STOP_SECONDS = 0.05
# Up to this many writes can be on disk and still be held.
_MANY = 16
_enter, _leave = current.set, current.reset
_current_task = asyncio.current_task
_begin_effect, _end_effect = running_effect.set, running_effect.reset


class Walk(EffectInProgress, eq=False):
    """An effect on its way from its call to its result."""

    async def go(self, intent: Entry | None = None) -> Any:
        """The effect's result; `intent` is what an earlier attempt has left."""
        try:
            return await self.ended(await self.run(intent) or EffectOutcome(self.value))
        except asyncio.CancelledError:
            await self.cancelled()
            raise

    async def run(self, intent: Entry | None = None) -> EffectOutcome | None:
        """Run the effect and return how it ended; None when its body returned `value`. `intent` is left by an earlier
        attempt."""
        # One coroutine from the intent to the outcome: each more would be a fiftieth of what a small effect costs.
        attempt, call = self.attempt, self.call
        task, cancelled = None, 0
        at_work = at_work_of(attempt)
        if not self.is_inline:
            task = self.task = _current_task(attempt.loop)
            cancelled = self._before = 0 if task is None else task.cancelling()
        if intent is not None:
            outcome = await self._take_up(intent)
            if not outcome.again:
                return outcome
            self.again = outcome.again
            attempt.check()
            cancelled = self._times_cancelled()
        while True:
            if task is None:
                attempt.may_start_here()
            elif attempt.unwinding.stopping or attempt.unwinding.draining:
                # Unlike a step, it does not wait for entries that are not on disk yet: its own intent is written after
                # them.
                await attempt.may_start()
            # From its intent to its outcome the attempt is not unwound: the body ends, and its outcome is recorded.
            at_work.walks.add(self)
            try:
                self.tries += 1
                if self.marks:
                    self.marks = NO_MARKS
                before = at_work.boottime()
                if crash.armed:
                    crash.place("effect.before_intent")
                write = self._intend(at_work.now_ms())
                if task is None:
                    attempt.pipeline.wait_here(write)
                else:
                    await write
                # Its commit was fenced. Only after a long stop (a laptop's lid) can the lease have gone since.
                if attempt.fence.closed is not None or crash.armed or at_work.boottime() - before > _NO_STOP_SECONDS:
                    await self._make_sure(before)
                if self.again:
                    settlement.withdraw(self)
                if len(attempt.fence.unflushed) > _MANY:
                    attempt.pipeline.behind()  # it is not; asked, it lets go of the writes that are on disk
                attempt.fresh += 1
                self.is_open, trouble = True, None  # a body that knows better says so
                began, limits = at_work.limits.time(), at_work.limits
                scope = _enter(Scope(attempt, self.path, True, task))  # in which nothing is numbered
                running = _begin_effect(self)
                try:
                    if task is None:
                        value = call.function(*self.args, **self.kwargs)
                    else:
                        when = self.when = began + call.limit_seconds
                        if when < limits.earliest:
                            limits.set_for(when)
                        value = await call.function(*self.args, **self.kwargs)
                        if self.is_late:
                            self.take_back(cancelled)
                except BaseException as error:
                    value, trouble = None, self._trouble(error, cancelled)
                finally:
                    _end_effect(running)
                    _leave(scope)
                if crash.armed and (trouble is None or trouble.is_known):
                    crash.place("effect.done")
            finally:
                at_work.walks.discard(self)
                if attempt.unwinding.pausing or attempt.unwinding.stopping:
                    attempt.unwinding.begin_when_still()
                if attempt.fence.closed is not None:
                    stand_down(attempt)
            self.took_ms = int((limits.time() - began) * 1000)
            if trouble is None:
                self.value = value
                return None
            if not trouble.is_known:
                trouble = await settlement.settle(self, trouble.error)
            is_again = trouble.again or (
                trouble.error is not None
                and trouble.may_retry
                and await self.wait_for_another(call.retry, trouble.error)
            )
            if not is_again:
                return trouble
            self.again = trouble.again
            attempt.check()
            cancelled = self._times_cancelled()

    async def cancelled(self) -> None:
        """The walk was cancelled: by the code, or because its attempt ends."""
        attempt = self.attempt
        if self._was_cancelled() and not attempt.is_ending:
            await self._cut_off()
        elif self.is_open and attempt.has_returned():  # then no next attempt will settle it
            settlement.ask_later(self, EffectUncertain(self.call.name, "the function returned while it ran"))
        # At the end of an attempt it leaves its intent, which the next one settles.

    def _was_cancelled(self) -> bool:
        """True if the code cancelled the call, and not something that its body awaited."""
        return self._times_cancelled() > self._before

    def _times_cancelled(self) -> int:
        return 0 if self.task is None else self.task.cancelling()

    def follow(self, intent: Entry) -> Note:
        """Continue the walk that this intent began: the same key, always."""
        note = intent.note or {}
        self.key, self.tries = str(note.get("key", self.key)), int(note.get("tries") or 1)
        self.number = int(note.get("number") or 0)
        self.marks = {name: value for name, value in note.items() if name.startswith("mark.")}
        self.is_open = "until" not in note
        return note

    async def _take_up(self, intent: Entry) -> EffectOutcome:
        """How an effect begun by an earlier attempt has ended, or that it must run again."""
        note = self.follow(intent)
        if not self.is_open:  # it had definitely failed, and waited for its next try
            retry = self.call.retry or Retry()
            await wait_until(self.attempt.store.clock, int(note.get("until") or 0), retry.delay(self.tries))
            return EffectOutcome(again="not done")
        await settlement.may_settle(self.attempt, self.path, intent)
        return await settlement.settle(self, None)

    # ── intent ──────────────────────────────────────────────────────────────────────────────────

    def _intend(self, now: int) -> Write:
        """Record that it is about to run, with what is known so far. The caller awaits the returned hop. That wait
        makes the write urgent: the committer is woken when this thread is about to rest, and need not wait until it
        releases the interpreter."""
        attempt, call = self.attempt, self.call
        note: Note = {
            "key": self.key,
            "tries": self.tries,
            "number": self.number,
            "not_after": now + call.limit_ms,
        }
        if not self.is_spelled:
            note["shown"] = call.shown(self.args, self.kwargs)
        kept: bytes | None = None
        if call.found_by:
            kept = call.keep(self.args, self.kwargs)
            note = {**note, **call.found_by, **self.marks}
        elif self.marks:
            note = {**note, **self.marks}
        if self.failed:
            note = {**self.failed, **note}
        entry = Entry("intent", self.op, self.path, self.asked, kept, None, now, 0, attempt.epoch, note)
        position, write = attempt.record(entry)
        if self.is_body:
            attempt.cursor.learn(position, entry)
        return write

    async def _make_sure(self, before: float) -> None:
        """Return when the intent, which was begun at that time, is on disk and the lease is still ours."""
        attempt, clock = self.attempt, self.attempt.store.clock
        while True:
            crash.place("effect.intended")
            if attempt.fence.closed is not None:
                raise attempt.fence.closed
            if clock.boottime() - before < max(_NO_STOP_SECONDS, attempt.store.presence.lease.total_seconds() / 3):
                return
            await attempt.pipeline.check_holder()  # and it has a new one, for the old one's deadline means nothing
            before = clock.boottime()
            crash.place("effect.before_intent")
            await self._on_disk(self._intend(self.attempt.store.clock.now_ms()))

    # ── trouble ─────────────────────────────────────────────────────────────────────────────────

    def _trouble(self, error: BaseException, cancelled: int) -> EffectOutcome:
        """How a body ended that raised this error, in a task that had been cancelled `cancelled` times when it began.
        Raises the error again if it is not the effect's."""
        attempt, is_late = self.attempt, self.is_late
        self.when = math.inf
        if is_late and self.take_back(cancelled) and type(error) is asyncio.CancelledError:
            late = TimeoutError(f"it took longer than {self.call.timeout}")
            late.__cause__, error = error, late
        if isinstance(error, asyncio.CancelledError):
            if attempt.is_ending or self._was_cancelled():
                raise error
            return EffectOutcome(error=error, is_known=False)  # the body's own: something it awaited was cancelled
        if not isinstance(error, Exception) and is_leaving(error):
            attempt.unwinding.leave(error)
            raise error
        attempt.fence.check()  # ours to raise again, not the effect's to record
        if self.call.is_definite(error, is_sent_again=self.again == "same key") and not is_late:
            self.is_open = False
            return EffectOutcome(error=error, may_retry=True)
        return EffectOutcome(error=error, is_known=False)

    async def mark(self, **marks: str | int | float | None) -> None:
        """Put something on record that the probe will need; returns when it is on disk."""
        self.marks = {**self.marks, **{f"mark.{name}": value for name, value in marks.items()}}
        await self._on_disk(self._intend(self.attempt.store.clock.now_ms()))

    # ── outcome ─────────────────────────────────────────────────────────────────────────────────

    def keep(self) -> tuple[bytes, Any] | None:
        """Record the usual case: a value, in a function with one scope, where it is handed out at once. Returns its
        bytes and the caller's value. Returns None for any other case, with nothing recorded."""
        attempt, task = self.attempt, self.task
        if self.is_body or attempt.activity.ordered > 1 or attempt.always_replay:
            return None
        if task is not None and task.cancelling() > self._before:
            return None
        kept = self.call.plainly(self.value)
        if kept is None:
            return None
        note: Note = {"key": self.key, "tries": self.tries}
        now = attempt.store.clock.now_ms()
        entry = Entry("result", self.op, self.path, self.asked, kept[0], None, now, self.took_ms, attempt.epoch, note)
        try:
            position, _ = attempt.record(entry)
        except TooLarge:
            return None
        if crash.armed:
            crash.place("effect.recorded")
        if attempt.made_gate is not None and task is not None:
            attempt.made_gate.passed(position)
        return kept

    async def ended(self, outcome: EffectOutcome) -> Any:
        """Record the outcome. The write is queued at once, but only the next intent waits for it, and takes it along if
        it comes within the time of a commit: a chain of effects costs one commit each, not two."""
        end = EffectEnd(self, outcome)
        end.record()
        self._position = end.position
        await end.hand_out()  # an inline one is here only while the task is being ended, and has no turn
        self._position = None
        return end.give()

    def _as_bytes(self, outcome: EffectOutcome) -> tuple[bytes | None, bytes | None, Any]:
        try:
            return self.call.end(outcome.value, outcome.error)
        except Exception as problem:  # the effect is done: a result that cannot be stored does not justify repeating it
            if is_own_coroutine(self.call.function, outcome.value):
                outcome.value.close()
                return self.call.end(None, not_awaited(self.call.name))
            where, why = (problem.path, problem.problem) if isinstance(problem, NotStorable) else ("", str(problem))
            return self.call.end(None, ResultNotStorable(self.call.name, where, why))

    async def _cut_off(self) -> None:
        """The code was cancelled while it waited: a replay cancels it there again, and never runs the body."""
        attempt = self.attempt
        if self._position is not None and not self.is_inline:
            attempt.passed(self._position)
        if self.is_open:
            settlement.ask_later(self, None)
        note = self._note(open=int(self.is_open))
        await cut_off(attempt, self.op, self.path, self.asked, note=note, in_body=self.is_body)

    # ── entries ─────────────────────────────────────────────────────────────────────────────────


# ── the general walk ─────────────────────────────────────────────────────────────────────────────


class EffectEnd(RecordedCall):
    """The outcome of an effect, as the general walk records it."""

    op = "effect"
    policy = Policy(flush=False, waits_to_start=False, is_under_way=False)
    plain_policy = Policy(is_plain=True, is_alone=True, flush=False, waits_to_start=False, is_under_way=False)

    def __init__(self, walk: Walk, outcome: EffectOutcome) -> None:
        self.attempt, self.name, self.asked, self.path = walk.attempt, walk.call.name, walk.asked, walk.path
        self.walk, self.call, self.op, self.is_in_step = walk, walk.call, walk.op, walk.is_body
        if walk.is_inline:
            self.policy = self.plain_policy
        self.outcome = outcome

    def entry(self) -> Entry:
        walk, outcome = self.walk, self.outcome
        note = walk._note()
        if outcome.settled:
            note["settled"] = outcome.settled
        if outcome.is_open:
            note["open"] = 1
        if walk._was_cancelled():  # and it ended all the same; so it does in a replay
            note["absorbed"] = 1
        self.note, self.error = note, outcome.error
        self._now = self.attempt.store.clock.now_ms()
        if outcome.error is None and (kept := self.call.plainly(outcome.value)) is not None:
            self.data, self.copy = kept
        else:
            self.data, self.trouble, self.copy = walk._as_bytes(outcome)
        return self._entry()

    def shortened(self, problem: TooLarge) -> Entry:
        trouble = ResultNotStorable(self.call.name, "", str(problem.what))
        self.data, self.trouble, _ = self.call.end(None, trouble)
        return self._entry()

    def _entry(self) -> Entry:
        how = self._now, self.walk.took_ms, self.attempt.epoch, self.note
        return Entry("result", self.op, self.path, self.asked, self.data, self.trouble, *how)

    def after_record(self, position: int, entry: Entry) -> None:
        self.walk.is_open, self.walk.recorded = False, (position, entry)
        crash.place("effect.recorded")
        settlement.tell_inbox(self.walk, self.outcome)

    def give(self) -> Any:
        if self.trouble is not None and self.outcome.is_open and self.call.on_uncertain == "tell":
            return self.call.told(self.trouble, self.walk.key)
        if self.trouble is not None:
            raise decode_error(self.trouble, self.call.raises) from self.outcome.error
        return self.copy


class EffectWalk(EffectEnd):
    """A whole effect in the general walk: a plain one, and the slow twin of an async one."""

    def __init__(
        self,
        scope: Scope,
        call: EffectCall,
        asked: bytes,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        is_spelled: bool,
    ) -> None:
        self.scope, self.attempt, self.call, self.name, self.asked = scope, scope.attempt, call, call.name, asked
        self.args, self.kwargs, self._is_spelled, self.is_in_step = args, kwargs, is_spelled, scope.is_body
        self.op = "effect" if call.is_async else "effect.inline"
        if not call.is_async:
            self.policy = self.plain_policy
        self._intent: Entry | None = None

    def ask(self) -> Answer:
        answer = super().ask()
        self._intent = intent_of(self.attempt, answer)
        return answer

    async def take_turn(self, found: Recorded) -> None:
        if self.is_in_step:
            return
        if self.policy.is_plain:
            self.attempt.passed(found.position)
        else:
            await take_turn(self.attempt, found)

    def read(self, entry: Entry) -> Any:
        return self.call.read(entry)

    def make(self) -> Any:
        attempt, call = self.attempt, self.call
        key = key_of(attempt.uid, attempt.line, self.path, self.asked)
        self.walk = Walk(
            call,
            attempt,
            self.path,
            self.asked,
            self.args,
            self.kwargs,
            key,
            self._is_spelled,
            self.is_in_step,
            is_inline=self.policy.is_plain,
            op=self.op,
        )
        going = self.walk.run(self._intent)
        return drive(going) if self.policy.is_plain else going

    def keep(self) -> None:
        self.outcome = self.value or EffectOutcome(self.walk.value)

    def fail(self, raised: BaseException) -> None:
        raise raised  # an error of the effect is an outcome; this one ends more than the effect

    async def cancelled(self) -> None:
        self.walk._position = self.position
        await self.walk.cancelled()


def intent_of(attempt: Attempt, answer: Answer) -> Entry | None:
    """The intent that an earlier attempt recorded for an effect without an outcome."""
    if type(answer) is Uncertain:
        return answer.intent
    # A step that was cut off can run again, and finds the effect that was cut off with it.
    return attempt.cursor.intent(answer.path) if type(answer) is Cut else None


async def take_turn(attempt: Attempt, answer: Recorded) -> None:
    """Wait until it is the turn of a recorded outcome."""
    if answer.entry.op == "effect" and attempt.activity.ordered > 1:
        await attempt.hand_out(answer.position, absorbs="absorbed" in (answer.entry.note or {}))
    else:  # it was had at once when it was recorded, or is the only one
        attempt.passed(answer.position)
