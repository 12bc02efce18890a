"""Make the writes of this process durable, many at a time.

All writes of a process form one queue. The holder of the baton takes writes from its front and commits them as one
transaction: the committer's own thread, or a blocking caller that finds the baton free and so saves two thread
switches. An event-loop thread never holds it. Nor does the main thread: signal handlers are called there, and one that
raises would tear a transaction in the middle.

A barrier is a write that a caller waits for. A pipelined write is one that no caller waits for: if it fails, its
attempt is closed, so that no later write of that attempt leaves a hole behind it, and the error is raised at the
attempt's next call.

Owns order, batching and failed batches. The engines give the writes their meaning.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from perdure._ground import crash_points as crash
from perdure._ground.secrets.envelope import close
from perdure._store import exit_flush as leaving
from perdure._store.contract import Again, Engine
from perdure._store.interrupts import is_interruptible, start_apart
from perdure._store.rows import Row
from perdure._store.wake_ups import Blocked, Waiter, wake_all
from perdure._store.write import Fence, Write, finish, in_our_words, size_of, waiters_of, were_closed
from perdure.errors import StoreClosed, StoreForked, StoreUnavailable, StoreUnreachable

log = logging.getLogger("perdure.committer")

MAX_BATCH_BYTES = 4_000_000
MAX_BATCH_WRITES = 2_000
_AGAIN_LIMIT = 20
# How the thread sleeps: for a few milliseconds, during which only urgent writes wake it; or until any write does.
_AWAKE, _LIGHT, _DEEP = 0, 1, 2
LONGEST_DOZE = 0.005  # while callers commit one after the other
GATHERING = 0.005  # while no caller waits for any of the writes
FULL_LOAD = 100  # so many writes end the gathering: the next ones are made while these are committed


class Committer:
    """The queue, the baton and the thread of one store in one process."""

    commit_seconds: float
    batches: int
    writes: int

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._queue: deque[Write] = deque()
        self._in_hand: Write | None = None  # the last one taken, until it is done; all before it are done by then
        self._mutex = threading.Lock()
        self._baton = threading.Lock()
        self._sleep = _AWAKE
        self._alarm = _shut()
        self._urgent = False
        self._callers_commit = False  # a write was queued since the thread last looked
        self._gone: type[StoreClosed | StoreForked] | None = None  # why the queue takes nothing any more
        self._thread: threading.Thread | None = None
        self._is_alone = False  # no thread can be started, as when the interpreter is being taken down
        self.commit_seconds = 0.001  # a moving average; what a caller gains by not waiting
        self.batches = self.writes = 0
        self.on_commit: Callable[[float], None] | None = None  # told how many seconds each batch took
        self.listeners: list[Callable[[Sequence[Write]], None]] = []  # told what is done, in the committing thread
        leaving.alive.add(self)

    # ── giving a write ──────────────────────────────────────────────────────────────────────────

    def submit(self, write: Write, *, urgent: bool = True) -> Write:
        """Queue a write and have it committed soon; `urgent` is for a write that a caller is about to wait for.

        Raises:
            StoreClosed, StoreForked: the queue takes nothing any more.
            PerdureError: the attempt was closed by an earlier failure; this is that failure.
        """
        with self._mutex:
            self._append(write)
            self._stir(urgent)
        return write

    def submit_entry(self, write: Write, params: dict[str, Any], fence: Fence, urgent: bool) -> int:
        """Queue the next entry of an attempt's journal. It gets its position here, in the write's `params`, and its
        envelope is closed for it: positions follow the order of the queue, from whatever thread the entries come.

        Raises: what `submit` does.
        """
        with self._mutex:
            if self._gone is not None:
                raise self._gone
            if fence.closed is not None:
                raise fence.closed
            position = fence.position = params["position"] = fence.position + 1
            params["entry"] = close(params["entry"], position)
            write.queued = True
            self._queue.append(write)
            fence.unflushed.append(write)
            if urgent or self._sleep == _DEEP or self._thread is None:
                self._stir(urgent)
            elif self._sleep and len(self._queue) >= FULL_LOAD:
                self._wake()
        return position

    def _stir(self, urgent: bool) -> None:
        if urgent:
            self._urgent = True
        if self._sleep == _DEEP or (urgent and self._sleep):
            self._wake()
        if self._thread is None:
            self._start()

    def enqueue(self, write: Write) -> None:
        """Queue a write without waking the thread: the caller is about to `wait`, and so to commit it."""
        with self._mutex:
            self._append(write)

    def submit_and_wake(self, write: Write, waiter: Waiter) -> bool:
        """Queue a write, if it is not, and have the waiter woken when it is done; False when it is done already."""
        with self._mutex:
            if not write.queued:
                self._append(write)
            elif write.done:
                return False
            write.waiters += (waiter,)
            if self._queue:  # else it is in hand already
                self._urgent = True
                if self._sleep:
                    self._wake()
                elif self._thread is None:
                    self._start()
            return True

    def _append(self, write: Write) -> None:
        if self._gone is not None:
            raise self._gone
        fence = write.fence
        if fence is not None and fence.closed is not None:
            raise fence.closed
        write.queued = True
        self._queue.append(write)

    # ── waiting for it ──────────────────────────────────────────────────────────────────────────

    def wait(self, write: Write, *, may_commit: bool = True) -> None:
        """Block until `write` is done; take the baton if it is free and this thread may commit.

        An exception that a signal handler raises meanwhile is raised once the write is done; a second one, at once. The
        write is carried out all the same.
        """
        may_commit = may_commit and not is_interruptible()
        while not write.done:
            if self._gone is StoreForked:
                raise StoreForked  # it is in the parent's queue
            if not may_commit and not self._is_alone:
                self._wait_undisturbed(write)
            elif not self._commit_here(write):
                self._wait_for_others(write)

    def _wait_undisturbed(self, write: Write) -> None:
        raised: BaseException | None = None
        while not (write.done or self._gone is StoreForked or self._is_alone):
            try:
                self._wait_for_others(write)
            except BaseException as error:
                if raised is not None:
                    raise
                raised = error
        if raised is not None:
            raise raised

    def _wait_for_others(self, write: Write) -> None:
        blocked = Blocked()
        if self.wake_when_done(write, blocked):
            self._ring()
            if not self._is_alone or self._baton.locked():
                blocked.wait()

    def _commit_here(self, write: Write) -> bool:
        """Take the baton and commit, if it is free."""
        if not self._baton.acquire(blocking=False):
            return False
        try:
            if not write.done:
                self._callers_commit = True
                self._commit_some()
        finally:
            self._baton.release()
        return True

    def wake_when_done(self, write: Write, waiter: Waiter) -> bool:
        """Have the waiter woken; False when the write is done already."""
        with self._mutex:
            if write.done:
                return False
            write.waiters += (waiter,)
            return True

    def flush(self) -> None:
        """Block until all that was queued before this call is done."""
        with self._mutex:
            last = self._queue[-1] if self._queue else self._in_hand
        if last is not None:
            self.wait(last)

    # ── committing ──────────────────────────────────────────────────────────────────────────────

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="perdure-committer", daemon=True)
        begin = thread.start
        if not is_interruptible():
            self._thread = thread
            begin()
            return
        try:
            # Nothing can happen between these two.
            self._thread = thread
            start_apart(begin, ())
        except RuntimeError:
            self._thread, self._is_alone = None, True

    def _ring(self) -> None:
        with self._mutex:
            self._urgent = True
            if self._thread is None:
                self._start()
            if self._sleep:
                self._wake()

    def _run(self) -> None:
        while self._wait_for_work():
            with self._baton:
                self._commit_some()

    def _wait_for_work(self) -> bool:
        """Sleep until there is something to commit; False when the committer is closed."""
        with self._mutex:
            self._let_more_join()
            while not self._queue and self._gone is None:
                if self._callers_commit:
                    # One after the other, and most likely the next one too: not to be woken by what it takes along.
                    self._callers_commit = False
                    self._doze(_LIGHT, LONGEST_DOZE)
                else:
                    self._doze(_DEEP, -1)
                    self._let_more_join()
            return bool(self._queue)

    def _let_more_join(self) -> None:
        """While no caller waits for a write, the next ones join the same transaction, and wake nothing.

        However quick a commit is, it takes the interpreter from the code that makes the next write. A commit after
        every other statement of a durable function made each of them take 1.4 times as long (decision 0043).
        """
        if not self._urgent and self._gone is None:
            self._doze(_LIGHT, GATHERING)

    def _doze(self, how: int, seconds: float) -> None:
        """Sleep until the alarm, or so long; called and left with the mutex held."""
        self._sleep = how
        self._mutex.release()
        try:
            was_woken = self._alarm.acquire(timeout=seconds)
        finally:
            self._mutex.acquire()
        if self._sleep == _AWAKE and not was_woken:
            self._alarm.acquire()  # it rang while we awoke by ourselves
        self._sleep = _AWAKE

    def _wake(self) -> None:
        self._sleep = _AWAKE
        self._alarm.release()

    def _commit_some(self) -> None:
        batch = self._take()
        if not batch:
            return
        live = [write for write in batch if not _is_closed(write)] if were_closed else batch
        done = 0
        began = time.perf_counter()
        try:
            done = self._commit(live) if live else 0
            if done:
                spent = time.perf_counter() - began
                self.commit_seconds += 0.1 * (spent - self.commit_seconds)
                self.batches, self.writes = self.batches + 1, self.writes + done
                if self.on_commit is not None:
                    self.on_commit(spent)
        finally:
            # Also when this thread was interrupted: the batch holds writes of others.
            done_now = batch if done == len(batch) else self._hand_back(batch, live)
            self._settle(done_now)
            for listener in self.listeners:
                listener(done_now)

    def _hand_back(self, batch: list[Write], live: list[Write]) -> list[Write]:
        """Writes the engine did not take go back to the front of the queue; writes of closed attempts are refused in
        turn. Returns the finished writes of the batch."""
        if all(write.done for write in live):
            for write in batch:
                if not write.done:
                    self._refuse_closed(write)
        rest = [write for write in batch if not write.done]
        if rest:
            with self._mutex:
                self._queue.extendleft(reversed(rest))
            # A caller that waits for one of them rang before, while the queue was empty.
            self._ring()
        return [write for write in batch if write.done]

    def _take(self) -> list[Write]:
        with self._mutex:
            queue = self._queue
            if len(queue) <= MAX_BATCH_WRITES and sum(map(size_of, queue)) <= MAX_BATCH_BYTES:
                batch = list(queue)
                queue.clear()
            else:
                batch = self._take_first()
            if batch:
                self._in_hand = batch[-1]
            self._urgent = self._urgent and bool(queue)
        return batch

    def _take_first(self) -> list[Write]:
        """The writes of the next transaction; one that is too large for it is committed alone."""
        batch: list[Write] = []
        size, queue = 0, self._queue
        while queue and len(batch) < MAX_BATCH_WRITES and (not batch or size + queue[0].size <= MAX_BATCH_BYTES):
            write = queue.popleft()
            size += write.size
            batch.append(write)
        return batch

    def _refuse_closed(self, write: Write) -> bool:
        if write.fence is None or write.fence.closed is None:
            return False
        finish(write, None, write.fence.closed)
        return True

    def _commit(self, batch: list[Write]) -> int:
        """Commit a prefix of the batch; how many writes are done."""
        try:
            rows = self._try(batch)
        except StoreUnreachable as error:
            for write in batch:
                finish(write, None, error)
            return len(batch)
        except Exception as error:
            if len(batch) == 1:
                finish(batch[0], None, in_our_words(error))
            else:
                log.warning("a batch of %d writes failed (%s); trying them one by one", len(batch), error)
                self._one_by_one(batch)
            return len(batch)
        if all(rows):
            for write, row in zip(batch, rows, strict=False):
                write.row = row
                write.done = True
        else:
            for write, row in zip(batch, rows, strict=False):
                finish(write, row, None)
        return len(rows)

    def _one_by_one(self, batch: list[Write]) -> None:
        """The same writes in the same order, each in its own transaction, so that one cannot fail the others."""
        for write in batch:
            if not self._refuse_closed(write):
                self._commit([write])

    def _try(self, batch: Sequence[Write]) -> list[Row | None]:
        for again in itertools.count():
            try:
                if crash.armed:
                    crash.place("committer.before_commit")
                rows = self._engine.commit(batch)
                if crash.armed:
                    crash.place("committer.after_commit")
                return rows
            except Again as error:
                if again >= _AGAIN_LIMIT:
                    raise StoreUnavailable(
                        f"the database refused a batch {again} times: {error}",
                        kept="all that was acknowledged; nothing of this batch was written",
                        do="look for a session that holds locks on perdure's tables",
                    ) from error
                time.sleep(min(0.001 * 2**again, 0.2))
        raise AssertionError

    def _settle(self, done: list[Write]) -> None:
        """Wake all that wait for one of these."""
        with self._mutex:
            waiters = list(itertools.chain.from_iterable(map(waiters_of, done)))
            if self._in_hand is not None and self._in_hand.done:
                self._in_hand = None
        wake_all(waiters)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Commit nothing while the block lasts; writes are queued meanwhile."""
        with self._baton:
            yield

    # ── ending ──────────────────────────────────────────────────────────────────────────────────

    def close(self) -> None:
        """Commit what is queued and take no more."""
        if self._gone is StoreForked:
            return
        self.flush()
        with self._mutex:
            self._gone = StoreClosed
            if self._sleep:
                self._wake()
        if self._thread is not None and self._thread is not threading.current_thread():
            with suppress(RuntimeError):  # it is only about to begin, and will find nothing to do
                self._thread.join(timeout=10)
        leaving.alive.discard(self)

    def mark_forked(self) -> None:
        # The parent's thread does not exist here, and its locks may be held for ever. The parent commits its own queue.
        self._gone = StoreForked
        self._mutex, self._baton, self._alarm = threading.Lock(), threading.Lock(), _shut()
        self._sleep = _AWAKE
        self._queue, self._in_hand = deque(), None
        self._engine.mark_forked()


def _shut() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


def _is_closed(write: Write) -> bool:
    return write.fence is not None and write.fence.closed is not None
