"""Take the pieces of a stream from its source, write them to the journal, and hand them to the code.

Pieces are written in batches, never twice. A piece that the code gets is already in the journal's queue. The source is
at most one batch ahead of the disk, and AHEAD pieces ahead of the code.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import timedelta
from enum import StrEnum
from typing import Any

from perdure._durable.attempt import Attempt, Retry, Scope, current, wait_until
from perdure._ground import crash_points as crash
from perdure._ground.encoding import codec
from perdure._model import Entry
from perdure._store import Write
from perdure.errors import InvalidInput, PerdureError

WRITTEN_EVERY = 0.05
LARGEST_BATCH = 8 * 1024
AHEAD = 1024
_LONE = re.compile("[\ud800-\udfff]")
_END: Any = object()  # not None: a source may give None, as model clients do for a piece without text


class Marker(StrEnum):
    """Why a stream is incomplete."""

    RECOVERED_FROM_PARTIAL = "RECOVERED_FROM_PARTIAL"  # its process died, or its source failed
    TIMEOUT_PARTIAL = "TIMEOUT_PARTIAL"  # its source was silent for too long


class Prefix(str):
    """The stored text of a stream. `marker` says why it is incomplete; None for a stream that begins."""

    marker: Marker | None

    def __new__(cls, text: str = "", marker: Marker | None = None) -> Prefix:
        made = super().__new__(cls, text)
        made.marker = marker
        return made

    def for_model(self) -> str:
        """What to tell the model besides the text itself; empty at the beginning of a stream."""
        if self.marker is None:
            return ""
        why = "fell silent" if self.marker is Marker.TIMEOUT_PARTIAL else "was cut off"
        return (
            f"[{self.marker}] Your answer {why} after {len(self)} characters, which are kept. "
            "Go on exactly where it ends; repeat nothing."
        )


Produce = Callable[[Prefix], AsyncIterator[str]]


class StoredPieces:
    """The pieces of one stream that the journal holds."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.length = 0
        self.marker: Marker | None = None
        self.begun = False

    def learn(self, entry: Entry) -> None:
        found = codec.decode(entry.value) if entry.value is not None else []
        self.begun = True
        self.pieces.extend(found)
        self.length += sum(map(len, found))
        if entry.note and "marker" in entry.note:
            marker = entry.note["marker"]
            self.marker = Marker(str(marker)) if marker else None


class Pump:
    """Takes pieces from the source, writes them to the journal, and hands them to the code."""

    def __init__(
        self,
        attempt: Attempt,
        path: str,
        kept: StoredPieces,
        produce: Produce,
        silence: timedelta | None,
        retry: Retry | None,
    ) -> None:
        self._attempt, self._path, self.kept = attempt, path, kept
        self._produce, self._silence, self._retry = produce, silence, retry
        self.news, self.made_room = asyncio.Event(), asyncio.Event()
        self.given = 0
        self.is_over = self.was_stopped = False
        self.error: BaseException | None = None
        self._task: asyncio.Task[None] | None = None
        self._held: list[str] = []
        self._held_size = 0
        self._last = float("-inf")
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_started(self) -> bool:
        return self._task is not None

    def start(self, scope: Scope) -> None:
        if self._task is not None:
            return
        attempt = self._attempt
        # As in a step's body: tasks and calls that the source starts are not numbered.
        token = current.set(scope if scope.is_body else Scope(attempt, self._path, is_body=True))
        try:
            self._task = attempt.loop.create_task(self._work())
        finally:
            current.reset(token)
        user = scope.whose()
        if user is not None:
            user.add_done_callback(lambda _: self.stop())

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None and not self._attempt.loop.is_closed():
            self._task.cancel()

    async def _work(self) -> None:
        try:
            await self._produce_all()
        except Exception as error:
            self.error = error
        except asyncio.CancelledError:
            self.was_stopped = True  # not an end of the stream
            raise
        finally:
            self.is_over = True
            self.news.set()

    async def _produce_all(self) -> None:
        attempt, kept, tries = self._attempt, self.kept, 0
        marker = kept.marker or Marker.RECOVERED_FROM_PARTIAL if kept.length else None
        while True:
            try:
                await self._produce_once(marker)
                return
            except Exception as error:
                if isinstance(error, PerdureError) and attempt.fence.closed is not None:
                    raise
                self._write()
                marker = Marker.TIMEOUT_PARTIAL if isinstance(error, TimeoutError) else Marker.RECOVERED_FROM_PARTIAL
                kept.marker = marker
                tries += 1
                # A source that gives something other than text would only be paid for again.
                if isinstance(error, InvalidInput) or self._retry is None or not self._retry.wants_more(tries, error):
                    raise
                delay = self._retry.delay(tries)
                clock = attempt.store.clock
                await wait_until(clock, clock.now_ms() + delay // timedelta(milliseconds=1), delay)

    async def _produce_once(self, marker: Marker | None) -> None:
        kept = self.kept
        kept.marker, kept.begun = marker, True
        self._record([], marker)
        source = aiter(self._produce(Prefix("".join(kept.pieces), marker)))
        try:
            while True:
                async with asyncio.timeout(self._silence.total_seconds() if self._silence else None):
                    piece = await anext(source, _END)
                if piece is _END:
                    break
                await self._take(piece)
            await self._flush()
        finally:
            close = getattr(source, "aclose", None)
            if close is not None:
                with suppress(Exception):
                    await close()

    async def _take(self, piece: str) -> None:
        if not isinstance(piece, str):
            raise InvalidInput(
                f"a stream gave {type(piece).__name__}, not str",
                kept="the pieces before it",
                do="yield text alone: `if piece: yield piece`",
            )
        if not piece:
            return
        if not piece.isascii() and _LONE.search(piece):
            raise InvalidInput(
                "a stream gave half of a surrogate pair, which is not text",
                kept="the pieces before it",
                do="let the source hold it back until the other half has come, and join the two",
            )
        self._held.append(piece)
        self._held_size += len(piece)
        left = self._last + WRITTEN_EVERY - time.monotonic()
        if left <= 0 or self._held_size >= LARGEST_BATCH:
            await self._flush()
        elif self._timer is None:
            self._timer = self._attempt.loop.call_later(left, self._when_due)
        while len(self.kept.pieces) - self.given > AHEAD:
            self.made_room.clear()
            await self.made_room.wait()

    async def _flush(self) -> None:
        """Write the held pieces and wait for the disk: so the source is at most one batch ahead of it."""
        write = self._write()
        if write is not None:
            await write
            self._attempt.fence.check()
            crash.place("stream.flushed")

    def _when_due(self) -> None:
        self._timer = None
        with suppress(PerdureError):  # the attempt is closed; its next call raises
            self._write()

    def _write(self) -> Write | None:
        if not self._held or self._attempt.unwinding.has_begun:
            return None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        pieces, self._held, self._held_size = self._held, [], 0
        self._last = time.monotonic()
        write = self._record(pieces, None)
        self.kept.pieces.extend(pieces)
        self.kept.length += sum(map(len, pieces))
        self.news.set()
        return write

    def _record(self, pieces: list[str], marker: Marker | None) -> Write:
        attempt = self._attempt
        note: dict[str, str | int | float | None] | None = None
        if not pieces:
            note = {"marker": str(marker) if marker else None}
        data = codec.encode(pieces) if pieces else None
        now = attempt.store.clock.now_ms()
        entry = Entry("result", "stream", f"{self._path}|pieces", b"", data, at=now, epoch=attempt.epoch, note=note)
        return attempt.record(entry)[1]
