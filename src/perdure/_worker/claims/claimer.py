"""Claim free tasks and carry them on.

A worker claims only functions and versions its process knows, and only as many tasks as it has room for. It claims
several tasks in one transaction, together with the ends of the tasks before them: an attempt whose function has
returned, and whose end is on its way to disk, takes up no room.

Owns the question "what may begin?". claim_order.py decides which task comes next, and limits.py whether a queue has
room. perdure/_durable/lifecycle carries on a claimed task, and reaper.py frees the leases of dead workers.
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
    TaskPast,
    come_back,
    function_for,
    known_versions,
    make_attempt,
    only_waiting,
    read_pasts,
    stop_soon,
)
from perdure._ground.exception_text import in_one_line, printable
from perdure._ground.secrets import envelope
from perdure._ground.secrets.known_secrets import redact
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
from perdure._worker.claims.claim_order import ClaimOrder, Turn
from perdure._worker.claims.limits import Limit, Limits
from perdure._worker.claims.queues import Queues
from perdure._worker.duty import Rest
from perdure.errors import CredentialRefused, Incompatible, InvalidTransition, LeaseHeld, NotFound, PerdureError

log = logging.getLogger("perdure.worker")

# Time between two looks while the bell is silent. The shorter one holds where other processes cannot ring, or while a
# task waits for a slot: nothing rings when a slot becomes free.
LOOK, SOON = timedelta(seconds=0.25), timedelta(seconds=0.05)


# A task whose process died twice at the same place may be the cause; so may every task that ran beside it. A worker
# begins only one such suspect in 30 s, so that the culprit does not take other suspects down with it.
SUSPECT, WATCHED_SECONDS = 2, 30.0
_SUSPECTS = "suspects"

Reading = asyncio.Task[dict[str, TaskPast]]


@dataclass(slots=True)
class ClaimedTask:
    """A task that this worker has claimed and works on."""

    turn: Turn
    hold: Hold
    limits: Sequence[Limit] = ()
    since: float = 0.0
    task: Task | None = None  # None until the task's records were read
    work: asyncio.Task[None] | None = field(default=None, repr=False)


# Called with "started" or "ended", the task, and the error its attempt ended with.
Observer = Callable[[str, ClaimedTask, BaseException | None], None]


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
        self._order = ClaimOrder(tasks, queues, workers)
        self.claimed: dict[str, ClaimedTask] = {}  # by uid
        self.is_stopped = False  # no new claims
        self.ring: Callable[[], None] = lambda: None
        self.observers: list[Observer] = []
        self._claiming: set[str] = set()
        self._ending: set[str] = set()  # tasks whose function has returned and whose end is on its way to disk
        self._tidying: set[asyncio.Task[None]] = set()
        self._full: set[str] = set()  # queues and keys that were full at this look

    # ── a round ─────────────────────────────────────────────────────────────────────────────────

    async def round(self) -> timedelta | Rest | None:
        if self.is_stopped:
            return None
        free = self._free()
        if free <= 0 or self._will_be_more(free):
            return LOOK  # nothing rings when a task under way begins to wait for another one
        if await self._order.find(free, {*self.claimed, *self._claiming}):
            self._full.clear()
        while free > 0 and self._order and not self.is_stopped:
            await self._claim_all(self._order.choose(free))
            free = self._free()
            if self._will_be_more(free):
                return LOOK
            if free > 0 and self._order:
                await self._order.find(free, {*self.claimed, *self._claiming})
        if self._order and free > 0:
            return timedelta(0)
        if not self._store.bell.is_heard or self._full:
            return SOON
        if self.claimed or self._order.has_resting:
            return LOOK  # nothing rings when a task under way begins to wait, or a task has rested
        known = sorted(known_versions())
        return Rest(LOOK, await self._order.until_next(), has_changed=lambda: sorted(known_versions()) != known)

    def _free(self) -> int:
        taken = len(self.claimed) - len(self._ending) - only_waiting(self.claimed)
        return self._concurrency - taken - len(self._claiming)

    def _will_be_more(self, free: int) -> bool:
        """True when the worker should wait for attempts that are about to end (they ring): tasks are claimed together
        once half of the slots are free, not one by one."""
        return bool(self._ending) and free < self._concurrency // 2

    @property
    def waits_for_room(self) -> bool:
        """True when the last look skipped a task because its queue or key was full."""
        return bool(self._full)

    async def _claim_all(self, turns: Sequence[Turn]) -> None:
        """Claim all free tasks together. Beside that, claim tasks with the same limit one after the other, since their
        order counts, and suspects one by one."""
        together: list[Turn] = []
        lanes: dict[object, list[Turn]] = {}
        for turn in turns:
            if (
                function_for(turn.function, turn.version) is None
                or turn.uid in self.claimed
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
        """Read the records of tasks that were begun before, all in one query."""
        if not uids:
            return None
        reading = asyncio.create_task(self._read_pasts(uids), name="perdure reads pasts")
        reading.add_done_callback(lambda done: done.cancelled() or done.exception())  # those who await it report it
        return reading

    async def _read_pasts(self, uids: Sequence[str]) -> dict[str, TaskPast]:
        return await read_pasts(self._store, uids)

    # ── one task ────────────────────────────────────────────────────────────────────────────────

    async def _claim_in_order(self, turns: Sequence[Turn]) -> None:
        for turn in turns:
            await self._claim(turn)

    async def _claim(self, turn: Turn) -> None:
        if turn.uid in self.claimed or turn.uid in self._claiming:
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
        claimed = self.claimed[turn.uid] = ClaimedTask(turn, hold, limits, self._store.clock.boottime())
        hold.at_end = partial(self._is_ending, turn.uid)  # the uid, not the claimed task: that one holds the hold
        claimed.work = asyncio.create_task(self._carry_on(claimed, past), name=f"perdure task {turn.id}")
        claimed.work.add_done_callback(lambda done: self._ended(claimed, done))
        self._tell("started", claimed, None)

    def _watches_another(self) -> bool:
        since = self._store.clock.boottime() - WATCHED_SECONDS
        return any(claimed.turn.losses >= SUSPECT and claimed.since > since for claimed in self.claimed.values())

    async def _carry_on(self, claimed: ClaimedTask, reading: Reading | None) -> None:
        """Make one attempt. A task that was begun before first gets its runtime back. If its surroundings have changed
        or a credential is refused, the task pauses with a question instead."""
        turn, hold = claimed.turn, claimed.hold
        function = function_for(turn.function, turn.version)
        assert function is not None  # it was known at the claim, and a known function stays known
        try:
            beginning = self._beginning(claimed, function)
            found = (await asyncio.shield(reading)).get(turn.uid) if beginning is None and reading is not None else None
            task = claimed.task = claimed.task or await self._attach(turn.uid, found)
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
        await make_attempt(self._tasks, task, hold, function, beginning, found.past if found is not None else None)

    async def _attach(self, uid: str, found: TaskPast | None) -> Task:
        call = found.past.call if found is not None and found.past is not None else None
        # Without a budget on record nothing was kept in the state when the task began.
        if found is not None and call is not None and not found.row.seq and call.budget is None:
            return task_without_state(self._tasks, found.row)
        return await task_by_uid(self._tasks, uid)

    def _beginning(self, claimed: ClaimedTask, function: DurableFunction[..., Any]) -> Beginning | None:
        """The arguments of a task that was never begun, if its row of find_claimable has them: no query is needed."""
        turn, store = claimed.turn, self._store
        is_known = function.version == turn.version and not function.namesakes
        if turn.arguments is None or claimed.hold.fence.epoch != 1 or not is_known:
            return None
        arguments = envelope.unseal(turn.arguments, kind="arguments", bound_to=turn.uid, ring=store.ring)
        claimed.task = untouched_task(self._tasks, turn.id, turn.uid)
        return Beginning(arguments, None)

    async def _enter(self, limits: Sequence[Limit], turn: Turn) -> bool:
        """Take a slot in each limit. A full limit is remembered, so that other tasks need not ask during this look."""
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
        if uid in self.claimed:
            self._ending.add(uid)
            self.ring()

    def _ended(self, claimed: ClaimedTask, done: asyncio.Task[None]) -> None:
        turn = claimed.turn
        self.claimed.pop(turn.uid, None)
        self._ending.discard(turn.uid)
        error = None if done.cancelled() else done.exception()
        if error is None:
            self._order.has_begun(turn.uid)
        elif claimed.task is None or not claimed.task.is_finished:
            self._order.let_rest(turn.uid)
            log.warning("task %s could not run here: %s\n%s", turn.id, _said(error), trace_of(error))
        elif not self.observers:  # observers report it themselves
            log.error("task %s %s: %s\n%s", turn.id, claimed.task.status, _said(error), trace_of(error))
        if claimed.limits:
            tidying = asyncio.ensure_future(self._tidy(claimed))
            self._tidying.add(tidying)
            tidying.add_done_callback(self._tidying.discard)
        self._tell("ended", claimed, error)
        self.ring()

    async def _tidy(self, claimed: ClaimedTask) -> None:
        try:
            await self._limits.tidy(claimed.limits, claimed.turn.uid, claimed.turn.epoch + 1)
        except PerdureError as error:
            log.debug("left the slots of task %s for other workers to reuse: %s", claimed.turn.id, error.what)

    def _tell(self, what: str, claimed: ClaimedTask, error: BaseException | None) -> None:
        for observer in self.observers:
            observer(what, claimed, error)

    # ── the end ─────────────────────────────────────────────────────────────────────────────────

    async def drain(self, grace: timedelta) -> None:
        """Claim no more tasks; wait at most `grace` for those under way to reach their next safe point, then give them
        back. Other workers can carry them on at once."""
        self.is_stopped = True
        for claimed in self.claimed.values():
            stop_soon(self._store, claimed.turn.uid)
        works = [claimed.work for claimed in self.claimed.values() if claimed.work is not None]
        if works:
            await asyncio.wait(works, timeout=grace.total_seconds())
        await self.end()

    async def end(self) -> None:
        """Give back the tasks under way, wherever they are."""
        self.is_stopped = True
        under_way = list(self.claimed.values())
        works = [claimed.work for claimed in under_way if claimed.work is not None]
        for work in works:
            work.cancel()
        self._order.stop()
        await asyncio.gather(*works, *self._tidying, return_exceptions=True)
        for claimed in under_way:
            if held_lease(self._store, claimed.turn.uid) is claimed.hold:  # cancelled before its first line ran
                with suppress(PerdureError):
                    await release_lease(self._store, claimed.hold, "interrupted")
