"""Carry on tasks that nobody works on.

A worker claims only functions and versions its process knows, and only as many tasks as it has room for. It claims them
together, in one transaction, with the ends of the tasks before them: an attempt whose function has returned, and whose
end is on its way to disk, takes no room.

Owns the question "what may begin?". Whose turn it is, is asked in claim_order.py, and whether a queue has room in
limits.py;
what happens to a claimed task is in perdure/_durable/lifecycle/app_run.py; leases of the dead are freed by reaper.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from perdure._durable import (
    Beginning,
    DurableFunction,
    Found,
    come_back,
    function_for,
    one_pass,
    only_waiting,
    read_pasts,
    stop_soon,
)
from perdure._ground import envelope
from perdure._ground.exception_text import in_one_line, printable
from perdure._ground.known_secrets import redact
from perdure._ground.traceback_text import trace_of
from perdure._tasks import (
    COULD_NOT_BEGIN,
    Hold,
    Task,
    Tasks,
    held_lease,
    in_words,
    release_lease,
    store_of,
    take_free_leases,
    take_lease,
    task_by_uid,
    task_without_state,
    untouched_task,
)
from perdure._worker.claim_order import Turn, Turns
from perdure._worker.limits import Limit, Limits
from perdure._worker.queues import Queues
from perdure.errors import CredentialRefused, Incompatible, InvalidTransition, LeaseHeld, NotFound, PerdureError

log = logging.getLogger("perdure.worker")

# Between two looks when nothing rings: where other processes are heard, and where they are not, or something waits
# for room that nobody will ring for.
LOOK, SOON = timedelta(seconds=0.25), timedelta(seconds=0.05)


# A task whose process has died twice, at the same place, may be what kills them; so may all that were there with it.
# One of them at a time is worked on here, for a while, so that the culprit takes no other suspect along.
SUSPECT, WATCHED_SECONDS = 2, 30.0
_SUSPECTS = "suspects"
BUDGET = 6  # its column in a row of get_call; without one, nothing was on record when the task began

Reading = asyncio.Task[dict[str, Found]]


@dataclass(slots=True)
class Pass:
    """An attempt under way in this worker."""

    turn: Turn
    hold: Hold
    limits: Sequence[Limit] = ()
    since: float = 0.0
    task: Task | None = None  # once it is known what is on record of it
    work: asyncio.Task[None] | None = field(default=None, repr=False)


# What is told of an attempt: "started" or "ended", which one, and the error it ended with.
Observer = Callable[[str, Pass, BaseException | None], None]


def _said(error: BaseException) -> str:
    return printable(redact(in_one_line(in_words(error))))


class Claimer:
    name = "claimer"

    def __init__(
        self,
        tasks: Tasks,
        concurrency: int,
        queues: Sequence[str],
        limits: Queues,
        workers: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self._tasks, self._concurrency = tasks, concurrency
        self._store = store_of(tasks)
        self._limits = Limits(self._store, limits)
        self._turns = Turns(tasks, queues, workers)
        self.passes: dict[str, Pass] = {}
        self.is_stopped = False  # no new claims
        self.ring: Callable[[], None] = lambda: None
        self.observers: list[Observer] = []
        self._claiming: set[str] = set()
        self._ending: set[str] = set()  # those whose function has returned, and whose end is on its way to disk
        self._tidying: set[asyncio.Task[None]] = set()
        self._full: set[str] = set()  # queues and keys that had no room at this look

    # ── a round ─────────────────────────────────────────────────────────────────────────────────

    async def round(self) -> timedelta | None:
        if self.is_stopped:
            return None
        free = self._free()
        if free <= 0 or self._will_be_more(free):
            return LOOK  # nobody rings when a task that is worked on begins to wait for another
        if await self._turns.find(free, {*self.passes, *self._claiming}):
            self._full.clear()
        while free > 0 and self._turns and not self.is_stopped:
            await self._claim_all(self._turns.choose(free))
            free = self._free()
            if self._will_be_more(free):
                return LOOK
            if free > 0 and self._turns:
                await self._turns.find(free, {*self.passes, *self._claiming})
        if self._turns and free > 0:
            return timedelta(0)
        return LOOK if self._store.bell.is_heard and not self._full else SOON

    def _free(self) -> int:
        taken = len(self.passes) - len(self._ending) - only_waiting(self.passes)
        return self._concurrency - taken - len(self._claiming)

    def _will_be_more(self, free: int) -> bool:
        """Whether it is worth waiting: some attempts are about to end, and will ring. Half of all room is claimed
        together, not one task after the other."""
        return bool(self._ending) and free < self._concurrency // 2

    @property
    def waits_for_room(self) -> bool:
        """Whether something was left at the last look because its queue or key was full."""
        return bool(self._full)

    async def _claim_all(self, turns: Sequence[Turn]) -> None:
        """Claim together what can be; beside that, those of one limit one after the other, as their order counts, and
        suspects one by one."""
        together: list[Turn] = []
        lanes: dict[object, list[Turn]] = {}
        for turn in turns:
            if (
                function_for(turn.function, turn.version) is None
                or turn.uid in self.passes
                or turn.uid in self._claiming
            ):
                continue
            limits = self._limits.of(turn.queue, turn.key)
            if turn.losses >= SUSPECT:
                lanes.setdefault(_SUSPECTS, []).append(turn)
            elif limits:
                lanes.setdefault(limits[0].scope, []).append(turn)
            elif turn.status == "running":
                together.append(turn)
            else:
                lanes.setdefault(turn, []).append(turn)
        if not lanes:
            await self._claim_together(together)
            return
        await asyncio.gather(
            *([self._claim_together(together)] if together else []),
            *(self._claim_in_order(lane) for lane in lanes.values()),
        )

    async def _claim_together(self, turns: Sequence[Turn]) -> None:
        if not turns:
            return
        uids = {turn.uid for turn in turns}
        self._claiming |= uids
        try:
            holds = await take_free_leases(self._store, [(turn.id, turn.uid, turn.epoch) for turn in turns])
            taken = [(turn, hold) for turn, hold in zip(turns, holds, strict=True) if hold is not None]
            past = self._read([turn.uid for turn, hold in taken if turn.arguments is None or hold.fence.epoch > 1])
            for turn, hold in taken:
                self._begin(turn, hold, (), past)
        finally:
            self._claiming -= uids

    def _read(self, uids: Sequence[str]) -> Reading | None:
        """Read what is on record of tasks that were at work before, for all of them at once."""
        if not uids:
            return None
        reading = asyncio.create_task(self._read_pasts(uids), name="perdure reads pasts")
        reading.add_done_callback(lambda done: done.cancelled() or done.exception())  # told by those who wait for it
        return reading

    async def _read_pasts(self, uids: Sequence[str]) -> dict[str, Found]:
        return await read_pasts(self._store, uids)

    # ── one task ────────────────────────────────────────────────────────────────────────────────

    async def _claim_in_order(self, turns: Sequence[Turn]) -> None:
        for turn in turns:
            await self._claim(turn)

    async def _claim(self, turn: Turn) -> None:
        if turn.uid in self.passes or turn.uid in self._claiming:
            return
        self._claiming.add(turn.uid)
        try:
            if turn.losses >= SUSPECT and self._watches_another():
                self._full.add(_SUSPECTS)
                return
            limits = self._limits.of(turn.queue, turn.key)
            if limits and not await self._enter(limits, turn):
                return
            hold = await self._take(turn)
            if hold is not None:
                self._begin(turn, hold, limits)
        finally:
            self._claiming.discard(turn.uid)

    def _begin(self, turn: Turn, hold: Hold, limits: Sequence[Limit], past: Reading | None = None) -> None:
        made = self.passes[turn.uid] = Pass(turn, hold, limits, self._store.clock.boottime())
        hold.at_end = partial(self._is_ending, turn.uid)  # not made itself, which has the hold
        made.work = asyncio.create_task(self._carry_on(made, past), name=f"perdure task {turn.id}")
        made.work.add_done_callback(lambda done: self._ended(made, done))
        self._tell("started", made, None)

    def _watches_another(self) -> bool:
        since = self._store.clock.boottime() - WATCHED_SECONDS
        return any(made.turn.losses >= SUSPECT and made.since > since for made in self.passes.values())

    async def _carry_on(self, made: Pass, reading: Reading | None) -> None:
        """One pass. A task that was at work before gets back what it had around it; it is not carried on in a world
        that has changed under it, or without its credentials, but asks."""
        turn, hold = made.turn, made.hold
        function = function_for(turn.function, turn.version)
        assert function is not None  # it was known when the task was claimed, and functions are not forgotten
        try:
            beginning = self._beginning(made, function)
            found = (await asyncio.shield(reading)).get(turn.uid) if beginning is None and reading is not None else None
            task = made.task = made.task or await self._attach(turn.uid, found)
        except BaseException as error:
            await release_lease(self._store, hold, COULD_NOT_BEGIN, error)
            raise
        if beginning is None:
            try:
                await come_back(self._tasks, task, hold)
            except (Incompatible, CredentialRefused) as error:
                await task.pause(
                    f"{error.what}. Put it right, then resume.",
                    reason="human_input",
                    question="Is the world as the task needs it?",
                )
                return
        await one_pass(self._tasks, task, hold, function, beginning, found.past if found is not None else None)

    async def _attach(self, uid: str, found: Found | None) -> Task:
        if found is not None and found.past is not None and not found.row.seq and found.past.call[BUDGET] is None:
            return task_without_state(self._tasks, found.row)
        return await task_by_uid(self._tasks, uid)

    def _beginning(self, made: Pass, function: DurableFunction[..., Any]) -> Beginning | None:
        """What a task that nobody has begun begins with, if that came with its turn: then nothing has to be read."""
        turn, store = made.turn, self._store
        is_known = function.version == turn.version and not function.namesakes
        if turn.arguments is None or made.hold.fence.epoch != 1 or not is_known:
            return None
        arguments = envelope.unseal(turn.arguments, kind="arguments", bound_to=turn.uid, ring=store.ring)
        made.task = untouched_task(self._tasks, turn.id, turn.uid)
        return Beginning(arguments, None)

    async def _enter(self, limits: Sequence[Limit], turn: Turn) -> bool:
        """Whether there is room. One without is remembered: the others of it need not ask at this look."""
        if any(limit.scope in self._full for limit in limits):
            return False
        full = await self._limits.enter(limits, turn.uid, turn.epoch + 1)
        if full is not None:
            self._full.add(full.scope)
        return full is None

    async def _take(self, turn: Turn) -> Hold | None:
        store = self._store
        if turn.status == "running":
            [hold] = await take_free_leases(store, [(turn.id, turn.uid, turn.epoch)])
            return hold
        try:
            return await take_lease(store, turn.id, turn.uid, "", is_exclusive=True)
        except (LeaseHeld, InvalidTransition, NotFound):
            return None

    def _is_ending(self, uid: str) -> None:
        if uid in self.passes:
            self._ending.add(uid)
            self.ring()

    def _ended(self, made: Pass, done: asyncio.Task[None]) -> None:
        turn = made.turn
        self.passes.pop(turn.uid, None)
        self._ending.discard(turn.uid)
        error = None if done.cancelled() else done.exception()
        if error is None:
            self._turns.has_begun(turn.uid)
        elif made.task is None or not made.task.is_finished:
            self._turns.let_rest(turn.uid)
            log.warning("task %s could not go on here: %s\n%s", turn.id, _said(error), trace_of(error))
        elif not self.observers:  # which say it otherwise
            log.error("task %s %s: %s\n%s", turn.id, made.task.status, _said(error), trace_of(error))
        if made.limits:
            tidying = asyncio.ensure_future(self._tidy(made))
            self._tidying.add(tidying)
            tidying.add_done_callback(self._tidying.discard)
        self._tell("ended", made, error)
        self.ring()

    async def _tidy(self, made: Pass) -> None:
        try:
            await self._limits.tidy(made.limits, made.turn.uid, made.turn.epoch + 1)
        except PerdureError as error:
            log.debug("slots of task %s were left for others to take: %s", made.turn.id, error.what)

    def _tell(self, what: str, made: Pass, error: BaseException | None) -> None:
        for observer in self.observers:
            observer(what, made, error)

    # ── the end ─────────────────────────────────────────────────────────────────────────────────

    async def drain(self, grace: timedelta) -> None:
        """Claim nothing more; let what is under way come to its next safe point, at most for `grace`, and give it
        back. Others may carry it on at once."""
        self.is_stopped = True
        for made in self.passes.values():
            stop_soon(self._store, made.turn.uid)
        works = [made.work for made in self.passes.values() if made.work is not None]
        if works:
            await asyncio.wait(works, timeout=grace.total_seconds())
        await self.end()

    async def end(self) -> None:
        """Give back the tasks under way, as they are."""
        self.is_stopped = True
        under_way = list(self.passes.values())
        works = [made.work for made in under_way if made.work is not None]
        for work in works:
            work.cancel()
        self._turns.stop()
        await asyncio.gather(*works, *self._tidying, return_exceptions=True)
        for made in under_way:
            if held_lease(self._store, made.turn.uid) is made.hold:  # it was cancelled before its first line
                with suppress(PerdureError):
                    await release_lease(self._store, made.hold, "interrupted")
