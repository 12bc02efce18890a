"""Find claimable tasks a page at a time, and decide in which order this worker tries to claim them.

A worker looks ahead: one query finds the next 1,000 tasks, and the worker claims them as slots become free. While it
claims the last of them, it already looks for more. When several workers see the same tasks, each tries a different
share first, so that they rarely compete for the same task.

Owns the order. Claiming is in claimer.py.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from datetime import timedelta
from typing import NamedTuple
from zlib import crc32

from perdure._durable import known_versions
from perdure._tasks import Tasks, store_of

AHEAD = 1_000
# A page is read again after this time: other workers may have claimed its tasks, or more urgent tasks may have come.
# A query that takes long, because very many tasks wait, is worth more: its page is kept for ten times as long.
FRESH_SECONDS = 0.25
_LOOKS_WORTH = 10
# With fewer free slots than this, the worker takes tasks strictly in order: it hardly competes with other workers.
_FEW = 8
# A worker looks for its share among this many times the tasks that all workers together would take.
_WINDOWS = 2
_MOST_SHARES = 4
# A task that could not begin here is left to other workers for a while (in seconds), longer each time.
FIRST_REST, LONGEST_REST = 1.0, 60.0


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
    arguments: bytes | None  # sealed; only of a task that was never begun
    losses: int  # how many processes in a row died on it without progress


class ClaimOrder:
    """The claimable tasks found so far. `workers` gives the ids of all known workers, including this one."""

    def __init__(self, tasks: Tasks, queues: Iterable[str], workers: Callable[[], Collection[str]]) -> None:
        self._store, self._queues, self._workers = store_of(tasks), json.dumps(list(queues)), workers
        self._ahead: deque[Turn] = deque()
        self._found_at = float("-inf")
        self._fresh_seconds = FRESH_SECONDS
        self._is_more = False  # the last query found a full page, so there may be more tasks
        self._taken: set[str] = set()  # a query under way can still return these, though they are not free
        self._look: asyncio.Task[None] | None = None
        self._resting: dict[str, tuple[float, float]] = {}  # by uid: until when, and the length of the next rest

    def __bool__(self) -> bool:
        return bool(self._ahead)

    # ── looking ─────────────────────────────────────────────────────────────────────────────────

    async def find(self, room: int, busy: Collection[str]) -> bool:
        """Look for tasks if those found before do not fill `room` or are too old. `busy` are the tasks of this worker.

        Returns whether a query has run: what the claimer noted about full queues may then be outdated.
        """
        now = self._store.clock.boottime()
        age = now - self._found_at
        if self._ahead and age <= self._fresh_seconds:
            is_running_out = self._is_more and len(self._ahead) <= 2 * room
            if self._look is None and (is_running_out or age > self._fresh_seconds / 2):
                self._look = asyncio.create_task(self._look_once(now, busy), name="perdure looks ahead")
                self._look.add_done_callback(self._has_looked)
            return False
        if self._look is not None and age <= self._fresh_seconds:
            await self._look  # it may have begun before the change that rang the bell
        if not self._ahead or age > self._fresh_seconds:
            await self._look_once(self._store.clock.boottime(), busy)
        return True

    def _has_looked(self, look: asyncio.Task[None]) -> None:
        self._look = None
        if not look.cancelled():
            look.exception()  # marked as seen: the next look meets the same error and logs it

    async def _look_once(self, now: float, busy: Collection[str]) -> None:
        self._taken.clear()
        self._taken.update(busy)
        store, known = self._store, known_versions()
        began = time.monotonic()
        rows = await store.query(
            "find_claimable",
            namespace=store.namespace,
            queues=self._queues,
            functions=json.dumps([f"{name} {version}" for name, version, _ in known]),
            upgrading=json.dumps([name for name, _, upgrades in known if upgrades]),
            now=await store.wall_ms(),
            limit=AHEAD,
        )
        self._fresh_seconds = max(FRESH_SECONDS, _LOOKS_WORTH * (time.monotonic() - began))
        self._resting = {uid: rest for uid, rest in self._resting.items() if rest[0] + LONGEST_REST > now}
        self._ahead = deque(turn for turn in map(Turn._make, rows) if self._is_free(turn.uid, now))
        self._found_at, self._is_more = now, len(rows) == AHEAD

    def _is_free(self, uid: str, now: float) -> bool:
        if uid in self._taken:
            return False
        rest = self._resting.get(uid)
        return rest is None or now >= rest[0]

    async def until_next(self) -> timedelta | None:
        """The time until the first delayed task may begin; None if there is none."""
        store, now = self._store, await self._store.wall_ms()
        found = await store.query("next_start", namespace=store.namespace, now=now)
        moments = [moment for (moment,) in found if moment is not None]
        return timedelta(milliseconds=moments[0] - now) if moments else None

    @property
    def has_resting(self) -> bool:
        """True if a task was left to other workers for a while."""
        return bool(self._resting)

    def stop(self) -> None:
        if self._look is not None:
            self._look.cancel()

    # ── choosing ────────────────────────────────────────────────────────────────────────────────

    def choose(self, room: int) -> list[Turn]:
        """Take the next tasks, at most `room`. When there are other workers, our share comes first."""
        chosen = self._of_our_share(room) if room >= _FEW else []
        while self._ahead and len(chosen) < room:
            chosen.append(self._ahead.popleft())
        self._taken.update(turn.uid for turn in chosen)
        return chosen

    def _of_our_share(self, room: int) -> list[Turn]:
        workers = sorted(self._workers())
        me = self._store.presence.worker
        if len(workers) < 2 or me not in workers:
            return []
        shares = min(len(workers), _MOST_SHARES)
        ours = workers.index(me) % shares
        window = [self._ahead.popleft() for _ in range(min(room * shares * _WINDOWS, len(self._ahead)))]
        chosen = [turn for turn in window if crc32(turn.uid.encode()) % shares == ours][:room]
        passed_over = {turn.uid for turn in window} - {turn.uid for turn in chosen}
        self._ahead.extendleft(turn for turn in reversed(window) if turn.uid in passed_over)
        return chosen

    # ── resting ─────────────────────────────────────────────────────────────────────────────────

    def has_begun(self, uid: str) -> None:
        """An attempt at this task went well: it no longer rests."""
        self._resting.pop(uid, None)

    def let_rest(self, uid: str) -> None:
        """The task could not run here: leave it to other workers for a while."""
        _, length = self._resting.get(uid, (0.0, FIRST_REST))
        self._resting[uid] = self._store.clock.boottime() + length, min(length * 2, LONGEST_REST)
