"""An engine that a test can look into, hold back and make fail: around another one, in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from perdure._store import Committer, Engine, Fence, Row, Write
from perdure._store.memory import MemoryEngine
from tests.store.kit import UIDS, Hand

UID = UIDS[0]
# Longer than anything here takes; a test that would hang fails instead.
FOREVER = 120


class Watched:
    """Counts commits and the threads they come from; `close_gate` holds the next one back."""

    kind, place, is_local = "memory", "watched", True

    def __init__(self, inner: Engine | None = None) -> None:
        self.inner = inner or MemoryEngine("")
        self.batches: list[list[Write]] = []
        self.threads: list[threading.Thread] = []
        self.before: Callable[[Sequence[Write]], None] = lambda writes: None
        self.most = 1_000_000  # how many writes of a batch it takes
        self.arrived = threading.Semaphore(0)
        self._gate = threading.Event()
        self._gate.set()

    def close_gate(self) -> None:
        self._gate.clear()

    def open_gate(self) -> None:
        self._gate.set()

    def commit(self, writes: Sequence[Write]) -> list[Row | None]:
        self.batches.append(list(writes))
        self.threads.append(threading.current_thread())
        self.arrived.release()
        assert self._gate.wait(FOREVER)
        self.before(writes)
        return self.inner.commit(writes[: self.most])

    def query(self, name: str, params: Any) -> list[Row]:
        return self.inner.query(name, params)

    def beat(self, worker: str) -> bool:
        return self.inner.beat(worker)

    def line(self) -> None:
        """Nobody else has it."""

    def close(self) -> None:
        self.inner.close()

    def mark_forked(self) -> None:
        self.inner.mark_forked()

    def wait_for_commit(self) -> None:
        """Until a commit has come as far as the gate."""
        assert self.arrived.acquire(timeout=FOREVER)

    def sizes(self) -> list[int]:
        return [len(batch) for batch in self.batches]


class Attempt:
    """A running task, and the entries its attempt writes through a committer."""

    def __init__(self, committer: Committer, engine: Engine, uid: str = UID, id: str = "alpha") -> None:
        self.committer, self.uid, self.key = committer, uid, f"main\0{id}"
        self.hand = Hand(engine)
        self.epoch = self.hand.running(uid, id)
        self.fence = Fence(id, uid, self.epoch, "w1")

    def entry(self, position: int, *, size: int = 200, ordered: bool = True, **over: Any) -> Write:
        params = self.hand.entry(self.uid, self.epoch, position, **over)
        return Write(self.committer, "append_entry", params, key=self.key, size=size, fence=self.fence, ordered=ordered)

    def positions(self) -> list[int]:
        """Which entries are in the store."""
        return [position for position, _ in self.hand.journal(self.uid)]


def until(is_so: Callable[[], object]) -> None:
    """Look until it is so; what never comes fails the test instead of holding it up for ever."""
    end = time.monotonic() + FOREVER
    while not is_so():
        assert time.monotonic() < end, "it never came"


def in_thread(act: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    return thread


def joined(thread: threading.Thread) -> bool:
    """True if the thread came to its end."""
    thread.join(FOREVER)
    return not thread.is_alive()


async def durable(write: Write) -> Any:
    """The write's answer, awaited: a coroutine, for what takes no other awaitable."""
    return await write
