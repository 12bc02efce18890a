"""Wait for a coroutine from plain code: what `perdure.sync` gives for use inside durable functions.

A plain durable function runs in its own thread, and the event loop of its task stays free: coroutines it needs run
there, as part of the function. Plain code outside a task runs them on one loop that all such calls share.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from contextvars import copy_context
from typing import Any, ParamSpec, TypeVar, overload

from perdure._durable.attempt.attempt import Attempt
from perdure._durable.attempt.scopes import current
from perdure._ground.bridge import LoopThread, drive
from perdure._tasks import checks
from perdure.errors import InvalidInput

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
_END: Any = object()  # not None: a source can yield None, and gets it back


def waited(work: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result; the calling thread waits for it.

    Raises:
        InvalidInput: it is called on the event loop of an async durable function, which would wait for itself.
    """
    scope = current.get()
    if scope is None or not scope.attempt.is_elsewhere():
        if scope is not None and not scope.is_body:
            work.close()
            raise InvalidInput(
                "a name of perdure.sync is called inside an async durable function",
                kept="nothing ran",
                do="import the same name from perdure, and await it",
            )
        return _loop_for_all().run(work)
    return _on_the_loop_of(scope.attempt, work)


def _on_the_loop_of(attempt: Attempt, work: Coroutine[Any, Any, T]) -> T:
    """In the thread of a plain durable function: have it done on the function's loop, in this scope."""
    context, ended = copy_context(), threading.Event()
    tasks: list[asyncio.Task[T]] = []

    def begin() -> None:
        tasks.append(asyncio.Task(work, loop=attempt.loop, context=context))
        tasks[0].add_done_callback(lambda _: ended.set())

    attempt.loop.call_soon_threadsafe(begin)
    ended.wait()
    return tasks[0].result()


def here(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine of hops and return its result, in this thread if possible: a database connection often belongs to
    its thread. On an event loop, which must not commit, the coroutine is awaited like any other."""
    scope = current.get()
    return drive(work) if scope is None or scope.attempt.is_elsewhere() else waited(work)


class Waits:
    """A loop to wait on, wherever the call is made from."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return waited(work)


def each_of(given: AsyncIterator[T]) -> Iterator[T]:
    """The items, each waited for."""

    async def following() -> tuple[T, ...]:
        try:
            return (await anext(given),)
        except StopAsyncIteration:
            return ()

    while found := waited(following()):
        yield found[0]


@contextmanager
def inside_of(block: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """The same block for plain code."""

    async def enter() -> T:
        return await block.__aenter__()

    async def leave(error: BaseException | None) -> bool:
        trace = error.__traceback__ if error is not None else None
        return bool(await block.__aexit__(type(error) if error is not None else None, error, trace))

    value = waited(enter())
    try:
        yield value
    except BaseException as error:
        if not waited(leave(error)):
            raise
    else:
        waited(leave(None))


@overload
def as_async(function: None) -> None: ...
@overload
def as_async(function: Callable[P, R]) -> Callable[P, Awaitable[R]]: ...
def as_async(function: Any) -> Any:
    """A plain function as an async one, which is carried out in a thread of its own; an async one as it is."""
    if function is None or isinstance(function, checks.Described) or inspect.iscoroutinefunction(function):
        return function

    @functools.wraps(function)
    async def called(*args: Any, **kwargs: Any) -> Any:
        return await asyncio.to_thread(function, *args, **kwargs)

    return called


def as_async_pieces(produce: Callable[[Any], Iterator[str]]) -> Callable[[Any], AsyncIterator[str]]:
    """A plain generator function as an async one, each piece made in a thread of its own."""

    async def pieces(prefix: Any) -> AsyncIterator[str]:
        made = iter(produce(prefix))
        while (piece := await asyncio.to_thread(next, made, _END)) is not _END:
            yield piece

    return pieces


# ── a loop for all ───────────────────────────────────────────────────────────────────────────────

_shared: LoopThread | None = None
_making = threading.Lock()


def _loop_for_all() -> LoopThread:
    global _shared
    with _making:
        if _shared is None:
            _shared = LoopThread()
        return _shared


def _forget_the_loop() -> None:
    global _shared, _making
    _shared, _making = None, threading.Lock()  # the parent's thread does not exist in the child


os.register_at_fork(after_in_child=_forget_the_loop)
