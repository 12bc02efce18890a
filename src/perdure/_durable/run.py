"""One attempt at a durable function: what it has recorded, and what it records now.

The walk of a step: functions.py asks `cursor`; a recorded result is decoded and handed out through the
gate; a fresh one is run, recorded by `record`, and handed out. When results may ride along and when
somebody has to wait for the disk is decided here, by the rules of the committer's barrier and pipeline.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from perdure._durable.gate import Gate
from perdure._durable.scopes import Scope
from perdure._ground import crash, envelope
from perdure._model import LEASE, Entry, encode_entry
from perdure._replay import Cursor, Diverged
from perdure._store import Fence, Store, Write
from perdure.errors import ReplayDiverged

log = logging.getLogger("perdure.durable")

# No body starts while its task has an unflushed entry older than this, or more than so many.
OLDEST_SECONDS = 0.02
MOST_UNFLUSHED = 256
# A result that took no longer than a commit gains nothing by waiting for one.
SHORTEST_WAIT = 0.001
SLOW_SECONDS = 0.1
LEASE_MS = int(LEASE.total_seconds() * 1000)
# Handed out at once, by a call that cannot wait: never in the gate's order.
INLINE = frozenset({"inline", "now", "random", "uuid4", "patched", "progress", "stream"})


class Paused(BaseException):
    """Unwinds an attempt whose task will be resumed later; no failure, so no Exception."""


class Run:
    """What the scopes of one attempt share."""

    def __init__(
        self,
        store: Store,
        fence: Fence,
        line: int,
        entries: Sequence[tuple[int, Entry]],
        answers: dict[str, Any],
        *,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.store, self.fence, self.line, self.loop = store, fence, line, loop
        self.task_id, self.uid, self.epoch = fence.task_id, fence.uid, fence.epoch
        self.cursor = Cursor(entries)
        self.answers = answers  # by path: how a pause of an earlier attempt was answered
        self.main = Scope(self, "")
        self.gate = Gate(loop, _gated(entries))
        self.scopes = 1
        self.bodies = 0
        self.pausing: dict[str, asyncio.Future[None]] = {}
        self.unwinding = False
        self.questions: dict[str, tuple[str, dict[str, Any], int | None]] = {}
        self.replayed = self.fresh = 0
        self.is_former_dead = True
        self._warned: set[str] = set()
        self._position = self.cursor.last
        self._unflushed: deque[tuple[float, Write]] = deque()
        self._key = f"{store.namespace}\0{fence.task_id}"

    # ── scopes ──────────────────────────────────────────────────────────────────────────────────

    def scope_began(self) -> None:
        self.scopes += 1

    def scope_ended(self, _task: asyncio.Task[Any]) -> None:
        self.scopes -= 1
        if self.pausing:
            self.look_for_unwinding()

    # ── recording ───────────────────────────────────────────────────────────────────────────────

    def record(self, entry: Entry, *, urgent: bool = False) -> tuple[int, Write]:
        """Give an entry its position and queue it; the position is the order in which results go out.

        Raises:
            PerdureError: an earlier write of this attempt failed; nothing more is written.
        """
        position = self._position + 1
        sealed = envelope.seal(encode_entry(entry), kind="entry", bound_to=self.uid, ring=self.store.ring)
        params = {
            "uid": self.uid,
            "line": self.line,
            "position": position,
            "entry": sealed,
            "epoch": self.epoch,
            "worker": self.fence.worker,
        }
        write = Write(
            self.store.committer,
            "append_entry",
            params,
            key=self._key,
            size=len(sealed) + 100,
            fence=self.fence,
            ordered=True,
        )
        self.store.committer.submit(write, urgent=urgent)
        self._position = position
        self._unflushed.append((time.monotonic(), write))
        crash.place("journal.recorded")
        return position, write

    async def flush(self) -> None:
        """Wait until everything recorded so far is on disk.

        Raises:
            LeaseLost: another attempt has taken over.
        """
        if self._unflushed:
            _, last = self._unflushed[-1]
            await last
            self._unflushed.clear()
        self.fence.check()

    async def may_start(self) -> None:
        """Before a body runs: the attempt is whole, and its entries are not far behind.

        Raises:
            Paused: the attempt is being unwound.
            PerdureError: the attempt was closed.
        """
        if self.unwinding:
            raise Paused
        self.fence.check()
        unflushed = self._unflushed
        while unflushed and unflushed[0][1].done:
            unflushed.popleft()
        if unflushed and (len(unflushed) > MOST_UNFLUSHED or time.monotonic() - unflushed[0][0] > OLDEST_SECONDS):
            await self.flush()

    def is_worth_waiting(self, took: float, flush: bool | None) -> bool:
        """Whether a result is waited for: a long step loses little by it, a short one much."""
        if flush is not None:
            return flush
        return took > max(self.store.committer.commit_seconds, SHORTEST_WAIT)

    def tries(self, path: str) -> tuple[int, int]:
        """How often a step was tried before, and when the next try is due."""
        intent = self.cursor.intent(path)
        note = (intent.note if intent else None) or {}
        return int(note.get("tries") or 0), int(note.get("until") or 0)

    def asked(self, path: str) -> bytes:
        intent = self.cursor.intent(path)
        return intent.digest if intent else b""

    async def may_settle(self, epoch: int, not_after: int) -> None:
        """Wait until the process that meant to do an effect can no longer be doing it."""
        if not self.is_former_dead and epoch != self.epoch:
            await self.until(not_after + LEASE_MS)

    async def until(self, due_ms: int) -> None:
        """Wait for a moment of the store's clock, which a test may move."""
        while (left := due_ms - self.store.clock.now_ms()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(min(left / 1000, 0.05))

    def warn_if_slow(self, name: str, took: float) -> None:
        if took > SLOW_SECONDS and name not in self._warned:
            self._warned.add(name)
            log.warning("the step %s held the event loop for %.0f ms; make it async", name, took * 1000)

    async def hand_out(self, position: int) -> None:
        """Return when it is this result's turn to reach the code."""
        if self.scopes > 1:
            await self.gate.turn(position)
        else:
            self.gate.passed(position)

    # ── pausing ─────────────────────────────────────────────────────────────────────────────────

    async def suspend(self, path: str) -> None:
        """Keep a scope until the attempt is unwound; always raises Paused."""
        future = self.pausing[path] = self.loop.create_future()
        self.look_for_unwinding()
        await future

    def look_for_unwinding(self) -> None:
        """Unwind as soon as nothing runs any more: steps and effects under way end and are recorded first."""
        self.loop.call_soon(self._unwind_if_still)

    def _unwind_if_still(self) -> None:
        if self.unwinding or not self.pausing or self.bodies or not self.gate.is_idle:
            return
        if self.gate.is_loop_busy():
            self.loop.call_soon(self._unwind_if_still)
            return
        self.unwinding = True
        for future in self.pausing.values():
            if not future.done():
                future.set_exception(Paused())

    # ── the end ─────────────────────────────────────────────────────────────────────────────────

    def diverged(self, found: Diverged) -> ReplayDiverged:
        return ReplayDiverged(self.task_id, found.position, found.recorded, found.asked)


def _gated(entries: Sequence[tuple[int, Entry]]) -> list[int]:
    """The positions that will come to the gate: results and not what a step recorded inside its body."""
    return [
        position
        for position, entry in entries
        if entry.kind == "result" and entry.op not in INLINE and "|" not in entry.path.rpartition("|")[0]
    ]
