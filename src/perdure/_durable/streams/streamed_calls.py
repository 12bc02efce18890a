"""Text that arrives in pieces and is stored as it arrives. After a crash only the rest is requested.

    async for piece in stream("answer", lambda prefix: client.stream(messages, prefix)):
        print(piece, end="")

Pieces are written to the journal in batches: at once when the last batch is 50 ms old, otherwise within that time or
after 8 kB. A piece reaches the code when it is in the journal's queue, before anything the code does with it. So the
code sees the same pieces in replay, split at the same places. After a crash it gets the stored pieces, and
`produce(prefix)` is asked for what follows. The prefix is a str that also says why it is incomplete (`prefix.marker`),
and in words for a model: `prefix.for_model()`.

A stream ends when `produce` ends, and counts as finished only then. The pieces of one stream keep their order; streams
that run side by side have no order among each other.

Owns what the code sees. stream_writer.py takes pieces from the source, stream_reader.py reads from other processes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

from perdure._durable.attempt import Attempt, Paused, Policy, RecordedCall, Retry, Scope, ask, current, walk
from perdure._durable.streams.stream_writer import Marker, Prefix, Produce, Pump, StoredPieces
from perdure._durable.values import decode_error, encode_error
from perdure._ground.durations import Duration, require_timedelta
from perdure._model import Entry, name_of
from perdure._replay import Answer, Cut, Diverged, Fresh, Recorded, digest
from perdure.errors import InvalidInput


def stream(name: str, produce: Produce, *, silence: Duration | None = None, retry: Retry | None = None) -> Stream:
    """The pieces of `produce`, each stored as it arrives and given once.

    `silence`: a source that gives nothing for this long has failed, with TimeoutError. `retry`: after a failure,
    `produce` is asked again for what follows the stored pieces; without it the failure is raised.
    """
    if "|" in name or "#" in name or not name:
        raise InvalidInput(f"a stream cannot be called {name!r}", do="use a name without | and #")
    return Stream(name, produce, silence, retry)


class _Streams:
    """The streams of one attempt, by path."""

    def __init__(self, attempt: Attempt) -> None:
        self._found: dict[str, StoredPieces] = {}
        for _, entry in attempt.entries:
            if entry.op == "stream" and entry.path.endswith("|pieces"):
                self.at(entry.path.removesuffix("|pieces")).learn(entry)

    def at(self, path: str) -> StoredPieces:
        return self._found.setdefault(path, StoredPieces())


class Stream(AsyncIterator[str]):
    """A stream that the code reads."""

    is_complete: bool

    def __init__(self, name: str, produce: Produce, silence: Duration | None, retry: Retry | None) -> None:
        self.name = name
        self._walk: _Walk | None = None
        self._produce, self._retry = produce, retry
        self._silence = require_timedelta("silence", silence, is_positive=True)
        self._bare: AsyncIterator[str] | None = None
        self._given: list[str] = []
        self.is_complete = False

    @property
    def text(self) -> str:
        """All pieces given so far, joined."""
        return "".join(self._given)

    @property
    def marker(self) -> Marker | None:
        """Why the stream is incomplete; None when it is complete, or when nothing has gone wrong so far."""
        return None if self.is_complete or self._walk is None else self._walk.kept.marker

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> str:
        scope = current.get()
        try:
            if scope is None:
                self._bare = self._bare or aiter(self._produce(Prefix()))
                piece = await anext(self._bare)
            else:
                self._walk = self._walk or _Walk(scope, self.name, self._produce, self._silence, self._retry)
                piece = await self._walk.next(len(self._given))
        except StopAsyncIteration:
            self.is_complete = True
            raise
        self._given.append(piece)
        return piece

    async def aclose(self) -> None:
        """Stop producing; everything stored stays."""
        if self._walk is not None:
            self._walk.stop()

    def __del__(self) -> None:
        # `break` leaves the loop without calling aclose().
        if self._walk is not None:
            self._walk.stop()


class _Walk:
    """One stream inside a task: its stored pieces, the pump that adds to them, and its end."""

    def __init__(
        self, scope: Scope, name: str, produce: Produce, silence: timedelta | None, retry: Retry | None
    ) -> None:
        self._attempt, self._scope = scope.attempt, scope
        self._end = end = _StreamEnd(scope, name)
        end.known = ask(end)
        self.kept = scope.attempt.part(_Streams).at(end.path)
        self._pump = end.pump = Pump(scope.attempt, end.path, self.kept, produce, silence, retry)
        self._is_over = False

    async def next(self, number: int) -> str:
        if number >= len(self.kept.pieces) and type(self._end.known) not in (Recorded, Cut) and not self._is_over:
            await self._more(number)
        if number < len(self.kept.pieces):
            self._pump.given = number + 1
            self._pump.made_room.set()
            return self.kept.pieces[number]
        if not self._is_over:
            self._is_over = type(self._end.known) is not Cut
            await walk(self._end)
        raise StopAsyncIteration

    async def _more(self, number: int) -> None:
        """Wait until there is another piece, or the end."""
        attempt, pump = self._attempt, self._pump
        if attempt.unwinding.stopping and not pump.is_started:
            attempt.check()
            raise Paused  # no model is called any more
        pump.start(self._scope)
        try:
            with attempt.unwinding.held_off():
                while number >= len(self.kept.pieces) and not pump.is_over:
                    pump.news.clear()
                    await pump.news.wait()
        except asyncio.CancelledError:
            self.stop()
            if not self._scope.is_body:
                await self._end.cut_off()
            raise
        attempt.fence.check()
        if pump.was_stopped and number >= len(self.kept.pieces):
            raise InvalidInput(
                f"the stream {name_of(self._end.path)!r} was closed and cannot be read further",
                kept=f"its {len(self.kept.pieces)} pieces so far",
                do="read it in the task that began it, or begin it again",
            )

    def stop(self) -> None:
        self._pump.stop()


class _StreamEnd(RecordedCall):
    """The end of a stream: it is recorded when the code has got every piece."""

    op = "streamed"
    as_type = int  # characters
    policy = Policy(flush=None, waits_to_start=False, is_timed=True)
    pump: Pump

    def __init__(self, scope: Scope, name: str) -> None:
        super().__init__(scope, f"stream:{name}", digest((name,), {}))
        self.is_in_step = scope.is_body
        self._began = time.perf_counter()

    def ask(self) -> Answer:
        attempt, scope = self.attempt, self.scope
        if scope.is_body:
            return attempt.cursor.ask(scope.path, self.name, self.asked, in_body=True)
        track = attempt.cursor.track(scope.path)
        path, found = track.look(self.name, self.asked)
        if found is not None:
            return found
        # A stream that was left by `break` has pieces and no end: its pieces prove that it was here before.
        missed = track.first_unasked()
        if missed is not None and not attempt.part(_Streams).at(path).begun:
            return Diverged(missed.position, name_of(missed.path), self.name)
        return Fresh(path)

    async def make(self) -> int:
        if self.pump.error is not None:
            raise self.pump.error
        return self.pump.kept.length

    def fail(self, raised: BaseException) -> None:
        if self.is_in_step or not isinstance(raised, Exception):
            raise raised  # not recorded: the step's next try continues after the stored pieces
        self.error, self.trouble = raised, encode_error(raised, ())

    def entry(self) -> Entry:
        self.took = time.perf_counter() - self._began
        return super().entry()

    def give(self) -> Any:
        if self.trouble is not None:
            raise decode_error(self.trouble, ()) from self.error
        return self.copy
