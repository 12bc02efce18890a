"""Await it on an event loop, or do it right here: one way of writing for both faces of perdure.

The code of `app.tasks` is written once, as coroutines that await nothing but hops. On an event loop
a hop is done by another thread and the loop goes on. Under `drive` there is no loop: each hop is
done by the calling thread, so a coroutine runs from start to end without ever suspending. That is
how `perdure.sync` calls the same code, also in a notebook whose loop is already running.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class _Mode(threading.local):
    blocking = False


_mode = _Mode()


def _new_readers() -> None:
    # Reads only: writes have a thread of their own, the committer's.
    global _readers
    _readers = ThreadPoolExecutor(max_workers=4, thread_name_prefix="perdure-read")


_readers: ThreadPoolExecutor
_new_readers()
# The parent's threads do not exist in the child; an executor that counts on them would wait for ever.
os.register_at_fork(after_in_child=_new_readers)


class Hop(Generic[T]):
    """Something for a thread to do or to wait for."""

    __slots__ = ()

    def block(self) -> T:
        """Do it in this thread."""
        raise NotImplementedError

    async def on_loop(self) -> T:
        """Have it done without holding up the running loop."""
        raise NotImplementedError

    def __await__(self) -> Generator[Any, None, T]:
        if _mode.blocking:
            return self.block()
        return (yield from self.on_loop().__await__())


class Call(Hop[T]):
    """A blocking read, done by a reader thread when there is a loop to keep free."""

    __slots__ = ("_act",)

    def __init__(self, act: Callable[[], T]) -> None:
        self._act = act

    def block(self) -> T:
        return self._act()

    async def on_loop(self) -> T:
        return await asyncio.get_running_loop().run_in_executor(_readers, self._act)


class Nap(Hop[None]):
    """A little real time, between two looks at something another process will change."""

    __slots__ = ("_seconds",)

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def block(self) -> None:
        time.sleep(self._seconds)

    async def on_loop(self) -> None:
        await asyncio.sleep(self._seconds)


def drive(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine of hops to its end in this thread, without an event loop."""
    before, _mode.blocking = _mode.blocking, True
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        _mode.blocking = before
        work.close()
    raise RuntimeError(f"{work!r} waited for something other than a hop; it needs an event loop")


def iterate(items: AsyncIterator[T]) -> Iterator[T]:
    """The items, each driven to in this thread."""

    async def following() -> tuple[T, ...]:
        try:
            return (await anext(items),)
        except StopAsyncIteration:
            return ()

    while found := drive(following()):
        yield found[0]


@contextmanager
def entered(context: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """The same block for blocking code."""
    value = drive(_enter(context))
    try:
        yield value
    except BaseException as error:
        if not drive(_leave(context, error)):
            raise
    else:
        drive(_leave(context, None))


async def _enter(context: AbstractAsyncContextManager[T]) -> T:
    return await context.__aenter__()


async def _leave(context: AbstractAsyncContextManager[T], error: BaseException | None) -> bool:
    return bool(await context.__aexit__(type(error) if error else None, error, error.__traceback__ if error else None))
