"""Write an attempt's entries: which of them ride along, and who waits until they are on disk.

Most results go to the code before their entry is on disk: the committer writes many of them in one transaction. Two
rules limit this. No body starts while an entry of its task is too old or too many are unflushed (`behind`). A result
that took longer than a commit is waited for (`is_worth_waiting`).
"""

from __future__ import annotations

import threading
from itertools import filterfalse, takewhile
from operator import attrgetter
from time import perf_counter

from perdure._durable.journal import BLOCK
from perdure._ground import crash_points as crash
from perdure._ground.secrets import envelope
from perdure._model import Entry, encode_entry
from perdure._store import Fence, HolderRow, Store, Write
from perdure.errors import LeaseLost

# No body starts while its task has an unflushed entry older than this, or more unflushed entries than this.
OLDEST_SECONDS = 0.02
MOST_UNFLUSHED = 256
# A result that took no longer than a commit gains nothing by waiting for one.
SHORTEST_WAIT = 0.001
_letting_go = threading.Lock()  # held while writes that are on disk are dropped from the list
_is_done = attrgetter("done")
_seal = envelope.sealer_of("entry")  # closed by the committer, which knows the position


class Pipeline:
    """The entries of one attempt on their way to the disk."""

    __slots__ = (
        "_fence", "_key", "_looked_at", "_outside", "_params", "_store", "_thread", "_uid", "near_until", "near_up_to",
    )  # fmt: skip

    def __init__(self, store: Store, fence: Fence, line: int, last: int, key: str) -> None:
        self._store, self._fence, self._uid, self._key = store, fence, fence.uid, key
        self._thread = threading.get_ident()  # of the attempt's loop
        self._looked_at = store.clock.boottime()  # when the attempt last checked that it had not been suspended
        fence.position = last
        self._outside: Write | None = None  # the newest entry that does not belong to a transaction
        # Until this moment, and up to this position, no entry is too far behind, and a step need not ask.
        self.near_until = 0.0 if fence.unflushed else perf_counter() + OLDEST_SECONDS
        self.near_up_to = last + MOST_UNFLUSHED
        # The parameters of every entry: to copy a dict takes half as long as to make one.
        self._params = {
            "uid": self._uid, "line": line, "position": 0, "entry": b"", "epoch": fence.epoch, "worker": fence.worker,
        }  # fmt: skip

    def record(self, entry: Entry, urgent: bool = False) -> tuple[int, Write]:
        """Give an entry its position and queue it. Results go out in the order of their positions.

        Raises:
            PerdureError: an earlier write of this attempt failed; nothing more is written.
        """
        store, fence = self._store, self._fence
        committer, params = store.committer, self._params.copy()
        sealed = params["entry"] = _seal(encode_entry(entry), self._uid, store.ring)
        write = Write(committer, "append_entry", params, self._key, len(sealed) + 100, fence, True, perf_counter())
        position = committer.submit_entry(write, params, fence, urgent)
        if entry.note is None or BLOCK not in entry.note:
            self._outside = write
        if crash.armed:
            crash.place("journal.recorded")
        return position, write

    async def flush(self) -> None:
        """Wait until everything recorded so far is on disk.

        Raises:
            LeaseLost: another attempt has taken over.
        """
        newest = self._fence.newest
        if newest is not None:
            await newest
        self._fence.check()

    async def flush_outside(self) -> None:
        """Wait until the entries are on disk that do not belong to an open transaction: what was recorded of the
        transaction itself, its session repeats.

        Raises:
            LeaseLost: another attempt has taken over.
        """
        outside = self._outside
        if outside is not None and not outside.done:
            await outside
        self._fence.check()

    def behind(self) -> Write | None:
        """The oldest entry that is not on disk, if no body may start before it is.

        This also drops the writes that are on disk, and sets `near_until` and `near_up_to` for the next steps.
        """
        unflushed, position, now = self._fence.unflushed, self._fence.position, perf_counter()
        if _letting_go.acquire(blocking=False):  # else another thread does so now, and both would drop too many
            try:
                del unflushed[: len(list(takewhile(_is_done, unflushed)))]
            finally:
                _letting_go.release()
        waiting = list(filterfalse(_is_done, unflushed.copy()))
        if not waiting:
            self.near_until, self.near_up_to = now + OLDEST_SECONDS, position + MOST_UNFLUSHED
            return None
        oldest = waiting[0]
        self.near_until = oldest.since + OLDEST_SECONDS
        self.near_up_to = position + MOST_UNFLUSHED - len(waiting)
        return oldest if now > self.near_until or position > self.near_up_to else None

    @property
    def is_near(self) -> bool:
        """True if a body may start without a look at how far the disk is `behind`."""
        return perf_counter() <= self.near_until and self._fence.position <= self.near_up_to

    def was_suspended(self) -> bool:
        """True if so much time has passed since the last look that the lease may have been taken."""
        store, before = self._store, self._looked_at
        now = self._looked_at = store.clock.boottime()
        return now - before > store.presence.lease.total_seconds() / 3

    async def check_holder(self) -> None:
        """
        Raises:
            LeaseLost: another attempt has taken over; the call did not run.
        """
        fence = self._fence
        holder = await self._store.row(HolderRow, "read_holder", uid=self._uid)
        if holder is None or (holder.epoch, holder.worker) != (fence.epoch, fence.worker):
            error = LeaseLost(fence.task_id, "another attempt took over while this one stood still")
            fence.close(error)
            raise error

    def wait_here(self, write: Write) -> None:
        """Hold up this thread until the write is on disk."""
        self._store.committer.wait(write, may_commit=threading.get_ident() != self._thread)
        write.outcome()

    def is_worth_waiting(self, took: float, flush: bool | None) -> bool:
        """Whether to wait until a result is on disk: that costs a long step little and a short one much."""
        if flush is not None:
            return flush
        return took > SHORTEST_WAIT and took > self._store.committer.commit_seconds
