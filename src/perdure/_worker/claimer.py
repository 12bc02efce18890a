"""Find tasks that nobody works on, and carry them on here.

A worker claims only functions and versions its process knows, and only as many tasks as it has room for. It looks
ahead: one query finds the next few hundred in the order of their turns, and they are claimed as room becomes free.
Of what two workers see first, each tries another part, so that they rarely get in each other's way.

Owns the question "what next?". Whether a queue has room is asked in limits.py; what happens to a claimed task is in
perdure/_durable/execute.py; leases of the dead are freed by reaper.py.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

from perdure._durable import (
    Beginning,
    DurableFunction,
    come_back,
    function_for,
    known_versions,
    one_pass,
    only_waiting,
    stop_soon,
)
from perdure._ground import envelope
from perdure._tasks import COULD_NOT_BEGIN, Hold, Task, Tasks, in_words, release_lease, take_free_lease, take_lease
from perdure._worker.limits import Limit, Limits
from perdure._worker.queues import Queues
from perdure.errors import CredentialRefused, Incompatible, InvalidTransition, LeaseHeld, NotFound, PerdureError

log = logging.getLogger("perdure.worker")

# Between two looks when nothing rings: where other processes are heard, and where they are not, or something waits
# for room that nobody will ring for.
LOOK, SOON = timedelta(seconds=0.25), timedelta(seconds=0.05)
AHEAD = 500
# What was found is looked for anew after so long: others may have taken it, or more urgent tasks have come.
FRESH_SECONDS = 0.25
# A task that could not begin here is left to others for a while, longer each time.
FIRST_REST, LONGEST_REST = 1.0, 60.0


# A task whose process has died twice, at the same place, may be what kills them; so may all that were there with it.
# One of them at a time is worked on here, for a while, so that the culprit takes no other suspect along.
SUSPECT, WATCHED_SECONDS = 2, 30.0
_SUSPECTS = "suspects"


class Turn(NamedTuple):
    """A row of find_claimable."""

    uid: str
    id: str
    function: str
    version: int
    epoch: int
    status: str
    queue: str
    key: str
    arguments: bytes | None  # sealed; of one that nobody has begun
    losses: int  # processes in a row that died on it, without its getting further


@dataclass(slots=True)
class Pass:
    """An attempt under way in this worker."""

    turn: Turn
    task: Task
    hold: Hold
    limits: Sequence[Limit] = ()
    since: float = 0.0
    work: asyncio.Task[bytes | None] | None = field(default=None, repr=False)


# What is told of an attempt: "started" or "ended", which one, and the error it ended with.
Observer = Callable[[str, Pass, BaseException | None], None]


class Claimer:
    name = "claimer"

    def __init__(self, tasks: Tasks, concurrency: int, queues: Sequence[str], limits: Queues) -> None:
        self._tasks, self._concurrency, self._queues = tasks, concurrency, list(queues)
        self._limits = Limits(tasks._store, limits)
        self.passes: dict[str, Pass] = {}
        self.is_stopped = False  # no new claims
        self.others = 0  # workers beside this one, as the reaper sees them
        self.ring: Callable[[], None] = lambda: None
        self.observers: list[Observer] = []
        self._turns: deque[Turn] = deque()
        self._claiming: set[str] = set()
        self._tidying: set[asyncio.Task[None]] = set()
        self._found_at = 0.0
        self._full: set[str] = set()  # queues and keys that had no room at this look
        self._resting: dict[str, tuple[float, float]] = {}  # by uid: until when, and how long next time

    # ── a round ─────────────────────────────────────────────────────────────────────────────────

    async def round(self) -> timedelta | None:
        if self.is_stopped:
            return None
        free = self._free() - len(self._claiming)
        if free <= 0:
            return LOOK  # nobody rings when a task that is worked on begins to wait for another
        now = self._tasks._store.clock.boottime()
        if not self._turns or now - self._found_at > FRESH_SECONDS:
            await self._look(now)
        while free > 0 and self._turns and not self.is_stopped:
            chosen = self._choose(free)
            await asyncio.gather(*(self._claim_in_order(turns) for turns in self._apart(chosen)))
            free = self._free()
        if self._turns and free > 0:
            return timedelta(0)
        return LOOK if self._tasks._store.bell.is_heard and not self._full else SOON

    def _free(self) -> int:
        return self._concurrency - len(self.passes) + only_waiting(self.passes)

    @property
    def waits_for_room(self) -> bool:
        """Whether something was left at the last look because its queue or key was full."""
        return bool(self._full)

    async def _look(self, now: float) -> None:
        store, known = self._tasks._store, known_versions()
        rows = await store.query(
            "find_claimable",
            namespace=store.namespace,
            queues=json.dumps(self._queues),
            functions=json.dumps([f"{name} {version}" for name, version, _ in known]),
            upgrading=json.dumps([name for name, _, upgrades in known if upgrades]),
            now=await store.wall_ms(),
            limit=AHEAD,
        )
        self._full.clear()
        self._resting = {uid: rest for uid, rest in self._resting.items() if rest[0] + LONGEST_REST > now}
        self._turns = deque(turn for turn in (Turn(*row) for row in rows) if not self._is_resting(turn.uid, now))
        self._found_at = now

    def _is_resting(self, uid: str, now: float) -> bool:
        rest = self._resting.get(uid)
        return rest is not None and now < rest[0]

    def _choose(self, free: int) -> list[Turn]:
        """The next few. With other workers about, some of those whose turn it nearly is: all of them look at once."""
        window = min(free * (1 + min(self.others, 3)), len(self._turns))
        first = [self._turns.popleft() for _ in range(window)]
        if window <= free:
            return first
        taken = set(random.sample(range(window), free))
        self._turns.extendleft(reversed([turn for n, turn in enumerate(first) if n not in taken]))
        return [turn for n, turn in enumerate(first) if n in taken]

    def _apart(self, turns: Sequence[Turn]) -> list[list[Turn]]:
        """Those that may be claimed at once, and those of one limit, whose order counts; suspects one by one."""
        lanes: dict[object, list[Turn]] = {}
        for turn in turns:
            if turn.losses >= SUSPECT:
                lanes.setdefault(_SUSPECTS, []).append(turn)
                continue
            limits = self._limits.of(turn.queue, turn.key)
            lanes.setdefault(limits[0].scope if limits else turn, []).append(turn)
        return list(lanes.values())

    # ── one task ────────────────────────────────────────────────────────────────────────────────

    async def _claim_in_order(self, turns: Sequence[Turn]) -> None:
        for turn in turns:
            await self._claim(turn)

    async def _claim(self, turn: Turn) -> None:
        function = function_for(turn.function, turn.version)
        if function is None or turn.uid in self.passes or turn.uid in self._claiming:
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
            if hold is None:
                return
            task, beginning = await self._open(turn, hold, function.version)
            made = self.passes[turn.uid] = Pass(turn, task, hold, limits, self._tasks._store.clock.boottime())
        finally:
            self._claiming.discard(turn.uid)
        made.work = asyncio.create_task(self._carry_on(task, hold, function, beginning), name=f"perdure task {turn.id}")
        made.work.add_done_callback(lambda done: self._ended(made, done))
        self._tell("started", made, None)

    def _watches_another(self) -> bool:
        since = self._tasks._store.clock.boottime() - WATCHED_SECONDS
        return any(made.turn.losses >= SUSPECT and made.since > since for made in self.passes.values())

    async def _carry_on(
        self, task: Task, hold: Hold, function: DurableFunction[..., Any], beginning: Beginning | None
    ) -> None:
        """One pass. A task that was at work before gets back what it had around it; it is not carried on in a world
        that has changed under it, or without its credentials, but asks."""
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
        await one_pass(self._tasks, task, hold, function, beginning)

    async def _open(self, turn: Turn, hold: Hold, version: int) -> tuple[Task, Beginning | None]:
        store = self._tasks._store
        try:
            if turn.arguments is None or hold.fence.epoch != 1 or version != turn.version:
                return await self._tasks._attach(turn.uid, created=False), None
            arguments = envelope.unseal(turn.arguments, kind="arguments", bound_to=turn.uid, ring=store.ring)
            return self._tasks._untouched(turn.id, turn.uid), Beginning(arguments, None)
        except BaseException as error:
            await release_lease(store, hold, COULD_NOT_BEGIN, error)
            raise

    async def _enter(self, limits: Sequence[Limit], turn: Turn) -> bool:
        """Whether there is room. One without is remembered: the others of it need not ask at this look."""
        if any(limit.scope in self._full for limit in limits):
            return False
        full = await self._limits.enter(limits, turn.uid, turn.epoch + 1)
        if full is not None:
            self._full.add(full.scope)
        return full is None

    async def _take(self, turn: Turn) -> Hold | None:
        store = self._tasks._store
        if turn.status == "running":
            return await take_free_lease(store, turn.id, turn.uid, turn.epoch)
        try:
            return await take_lease(store, turn.id, turn.uid, "", is_exclusive=True)
        except (LeaseHeld, InvalidTransition, NotFound):
            return None

    def _ended(self, made: Pass, done: asyncio.Task[bytes | None]) -> None:
        turn = made.turn
        self.passes.pop(turn.uid, None)
        error = None if done.cancelled() else done.exception()
        if error is None:
            self._resting.pop(turn.uid, None)
        elif made.task.status not in ("completed", "failed", "cancelled"):
            self._rest(turn, error)
        if made.limits:
            tidying = asyncio.ensure_future(self._tidy(made))
            self._tidying.add(tidying)
            tidying.add_done_callback(self._tidying.discard)
        self._tell("ended", made, error)
        self.ring()

    def _rest(self, turn: Turn, error: BaseException) -> None:
        _, length = self._resting.get(turn.uid, (0.0, FIRST_REST))
        self._resting[turn.uid] = (
            self._tasks._store.clock.boottime() + length,
            min(length * 2, LONGEST_REST),
        )
        log.warning("task %s could not go on here: %s", turn.id, in_words(error))

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
            stop_soon(self._tasks._store, made.turn.uid)
        works = [made.work for made in self.passes.values() if made.work is not None]
        if works:
            await asyncio.wait(works, timeout=grace.total_seconds())
        await self.end()

    async def end(self) -> None:
        """Give back the tasks under way, as they are."""
        self.is_stopped = True
        works = [made.work for made in self.passes.values() if made.work is not None]
        for work in works:
            work.cancel()
        await asyncio.gather(*works, *self._tidying, return_exceptions=True)
