"""Wait until tasks end that other processes carry on. All waits on one event loop share a single query."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Generator
from contextvars import Context
from typing import Any

from perdure._ground.bridge import Hop
from perdure._store import LEAST_GAP, Store
from perdure.errors import PerdureError


class TaskEnd(Hop[bool]):
    """Awaits the end of a task for at most `seconds`. Gives whether it has ended."""

    __slots__ = ("_seconds", "_store", "_uid")

    def __init__(self, store: Store, uid: str, seconds: float) -> None:
        self._store, self._uid, self._seconds = store, uid, seconds

    def block(self) -> bool:
        bell = self._store.bell
        with bell.listening():
            moves = bell.moves
            is_live = bool(self._store.engine.query("find_live", {"uids": json.dumps([self._uid])}))
            if is_live:
                bell.moved_since(moves, self._seconds).block()
        return not is_live

    def on_loop(self) -> Generator[Any, None, bool]:
        return (yield from self._wait().__await__())

    async def _wait(self) -> bool:
        loop = asyncio.get_running_loop()
        waits = _waits_of(self._store, loop)
        future = waits.add(self._uid)
        try:
            await asyncio.wait({future}, timeout=self._seconds)
            return future.done() and future.result()
        finally:
            waits.leave(self._uid, future)


_all: dict[tuple[int, int], _Waits] = {}


def _waits_of(store: Store, loop: asyncio.AbstractEventLoop) -> _Waits:
    key = (id(store.engine), id(loop))
    found = _all.get(key)
    if found is None or found.loop is not loop or found.store.engine is not store.engine:
        for old in [old for old, waits in _all.items() if waits.loop.is_closed()]:
            del _all[old]
        found = _all[key] = _Waits(store, loop)
    return found


class _Waits:
    """The tasks that are waited for on one loop, and the asyncio task that looks for all of them."""

    def __init__(self, store: Store, loop: asyncio.AbstractEventLoop) -> None:
        self.store, self.loop = store, loop
        self._futures: dict[str, set[asyncio.Future[bool]]] = {}
        self._looking: asyncio.Task[None] | None = None

    def add(self, uid: str) -> asyncio.Future[bool]:
        future: asyncio.Future[bool] = self.loop.create_future()
        self._futures.setdefault(uid, set()).add(future)
        if self._looking is None:
            # In an empty context: it must not belong to the durable function that happens to wait first.
            self._looking = Context().run(self.loop.create_task, self._look())
        return future

    def leave(self, uid: str, future: asyncio.Future[bool]) -> None:
        waiting = self._futures.get(uid)
        if waiting is not None:
            waiting.discard(future)
            if not waiting:
                del self._futures[uid]

    async def _look(self) -> None:
        bell = self.store.bell
        try:
            with bell.listening():
                while self._futures:
                    moves, began = bell.moves, time.monotonic()
                    await self._look_once()
                    if self._futures:
                        # Even when thousands of tasks are waited for, looking takes at most a fifth of the time.
                        await bell.moved_since(moves, gap=max(LEAST_GAP, 4 * (time.monotonic() - began)))
        finally:
            self._looking = None

    async def _look_once(self) -> None:
        asked = list(self._futures)
        try:
            rows = await self.store.query("find_live", uids=json.dumps(asked))
        except PerdureError as error:
            for future in [future for waiting in self._futures.values() for future in waiting if not future.done()]:
                future.set_exception(error)
            self._futures.clear()
            return
        for uid in set(asked) - {row[0] for row in rows}:
            for future in self._futures.pop(uid, ()):
                if not future.done():
                    future.set_result(True)
