"""Play durable functions against a journal that is a list: cut it anywhere, and play them again.

`play` runs a function with the entries it is given and answers with how that ended and the journal after
it. Nothing is written anywhere, so a thousand crashes take a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from threading import Lock
from types import SimpleNamespace
from typing import Any

from perdure._durable.attempt.attempt import Attempt
from perdure._durable.attempt.driver import carry_out
from perdure._durable.declare.functions import DurableFunction
from perdure._ground.clock import from_environment
from perdure._ground.encoding import codec
from perdure._ground.secrets import envelope
from perdure._ground.secrets.crypto import KeyRing
from perdure._model import Entry, decode_entry
from perdure._replay import TIMERS, WAKING
from perdure._store import Fence, HolderRow, Write

Journal = list[tuple[int, Entry]]
UID = "uid-of-a-test"


class Paper:
    """A committer that has everything on disk at once, unless told to hold it back."""

    def __init__(self) -> None:
        self.commit_seconds = 0.001
        self.written: Journal = []
        self.holds_back = False
        self.held: list[Write] = []
        self.urgent: list[bool] = []
        self._mutex = Lock()

    def submit(self, write: Write, *, urgent: bool = True) -> Write:
        if write.fence is not None and write.fence.closed is not None:
            raise write.fence.closed
        write.queued = True
        self.urgent.append(urgent)
        self.held.append(write)
        if not self.holds_back:
            self.let_go()
        return write

    def submit_entry(self, write: Write, params: dict[str, Any], fence: Fence, urgent: bool) -> int:
        with self._mutex:
            params["position"] = fence.position + 1
            self.submit(write, urgent=urgent)
            fence.position += 1
            fence.unflushed.append(write)
            return fence.position

    def let_go(self, many: int | None = None) -> None:
        """Have the first of what is held back on disk."""
        done, self.held = self.held[:many], self.held[len(self.held[:many]) :]
        for write in done:
            params = write.params
            sealed = envelope.unseal(envelope.close(params["entry"], 0), kind="entry", bound_to=UID, ring=_RING)
            self.written.append((params["position"], decode_entry(sealed)))
            write.row, write.done = (params["position"],), True
            for waiting in write.waiters:
                waiting.loop.call_soon(waiting.wake)

    def submit_and_wake(self, write: Write, waiter: Any) -> bool:
        if not write.queued:
            self.submit(write)
        if not write.done:
            write.waiters += (waiter,)
        return not write.done

    def wait(self, write: Write, *, may_commit: bool = True) -> None:
        while not write.done:
            self.let_go(1)


_RING = KeyRing()


@dataclass
class Played:
    """How one attempt ended."""

    value: Any
    error: BaseException | None
    journal: Journal
    attempt: Attempt

    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value

    @property
    def paths(self) -> list[str]:
        """Of all calls; timers and threads that woke the code are left out."""
        return [entry.path for _, entry in self.journal if entry.op not in WAKING | {TIMERS}]


def new_attempt(
    journal: Sequence[tuple[int, Entry]] = (), *, paper: Paper | None = None, answers: dict[str, Any] | None = None
) -> Attempt:
    async def verb(name: str, uid: str, params: dict[str, Any], **_: Any) -> tuple[Any, ...]:
        return (params["path"],)

    async def row(kind: type[HolderRow], name: str, **_: Any) -> HolderRow:
        return HolderRow(1, "worker", *[None] * 8)

    store: Any = SimpleNamespace(
        clock=from_environment(),
        committer=paper or Paper(),
        ring=_RING,
        namespace="default",
        verb=verb,
        row=row,
        presence=SimpleNamespace(lease=timedelta(seconds=5)),
        seal=lambda uid, kind, value: codec.encode(value),
    )
    fence = Fence("the-task", UID, 1, "worker")
    return Attempt(store, fence, 1, list(journal), answers or {}, loop=asyncio.get_running_loop())


async def play(
    function: Callable[..., Any],
    *args: Any,
    journal: Sequence[tuple[int, Entry]] = (),
    paper: Paper | None = None,
    answers: dict[str, Any] | None = None,
) -> Played:
    """One attempt at a durable function that finds this journal, and these answers to its questions."""
    paper = paper or Paper()
    attempt = new_attempt(journal, paper=paper, answers=answers)
    body = function.function if isinstance(function, DurableFunction) else function
    is_async = function.is_async if isinstance(function, DurableFunction) else True
    value, error = None, None
    try:
        value = await carry_out(attempt, body, args, {}, is_async=is_async)
    except BaseException as raised:
        error = raised
    return Played(value, error, [*journal, *paper.written], attempt)


async def play_again(function: Callable[..., Any], *args: Any, journal: Journal) -> Played:
    """The same from a journal that is complete: nothing new may be recorded."""
    played = await play(function, *args, journal=journal)
    assert played.journal == journal, "a replay has recorded something"
    return played


async def until_rest(passes: int = 20) -> None:
    """Let everything run that can run without us."""
    for _ in range(passes):
        await asyncio.sleep(0)


an_hour = partial(asyncio.sleep, 3600)


def pass_an_hour() -> None:
    """Have everything happen now that the loop has put off for about an hour."""
    loop: Any = asyncio.get_running_loop()
    for timer in list(loop._scheduled):
        if not timer.cancelled() and timer.when() > loop.time() + 1000:
            timer._run()
            timer.cancel()
