"""Await it on an event loop, or do it right here: one way of writing for both faces of perdure.

The code of `app.tasks` is written once, as coroutines that await nothing but hops. On an event loop another thread runs
a hop and the loop continues. Under `drive` there is no loop: the calling thread runs each hop, so a coroutine runs from
start to end without suspending. That is how `perdure.sync` calls the same code, also in a notebook whose loop is
already running.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, Generic, Protocol, TypeVar

from perdure._ground.signal_handlers import Deferred, was_raised_by_a_handler
from perdure.errors import InvalidInput

T = TypeVar("T")


class _Mode(threading.local):
    blocking = False


mode = _Mode()


def without_asyncio() -> InvalidInput:
    """The error for a caller without a running asyncio loop: under trio, or where a coroutine is driven by hand."""
    return InvalidInput(
        "a coroutine of perdure runs without an event loop of asyncio",
        kept="all that was acknowledged; this call changed nothing",
        do="use asyncio.run(…); under trio call perdure.sync in a thread: trio.to_thread.run_sync(…)",
    )


class _Mailbox:
    """Answers on their way to one event loop; however many there are, it is woken once."""

    __slots__ = ("_answers", "_loop", "_rung")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._answers: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._rung = False

    def put(self, future: asyncio.Future[Any], value: object, error: BaseException | None) -> None:
        self._answers.append((future, value, error))
        if not self._rung:
            self._rung = True
            with suppress(RuntimeError):  # the loop was closed meanwhile, so there is nothing to wake
                self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._rung = False  # first: what is put from now on rings again
        while self._answers:
            future, value, error = self._answers.popleft()
            if future.done():
                continue  # it was cancelled
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(value)


class _Readers:
    """A few threads that read. Writes have a thread of their own, the committer's.

    An executor would do the same, at five times the price of a short read.
    """

    _MOST = 4

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any], _Mailbox] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._of_thread = threading.local()

    def have_done(self, act: Callable[[], T]) -> asyncio.Future[T]:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError as error:
            raise without_asyncio() from error
        future: asyncio.Future[T] = loop.create_future()
        known = self._of_thread.__dict__
        if known.get("loop") is not loop:
            known["loop"], known["mailbox"] = loop, _Mailbox(loop)
        self._calls.put((act, future, known["mailbox"]))
        if len(self._threads) < self._MOST and not self._calls.empty():
            self._add_thread()
        return future

    def _add_thread(self) -> None:
        name = f"perdure-read-{len(self._threads)}"
        thread = threading.Thread(target=self._read, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _read(self) -> None:
        while (call := self._calls.get()) is not None:
            act, future, mailbox = call
            try:
                if not future.cancelled():
                    mailbox.put(future, act(), None)
            except BaseException as error:
                mailbox.put(future, None, error)
            del call, act, future, mailbox  # while it waits, it must not keep the caller's objects alive

    def end(self) -> None:
        """Finish the work under way before the interpreter shuts down."""
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            thread.join()


def _new_readers() -> None:
    global _readers
    _readers = _Readers()


def _end_readers() -> None:
    _readers.end()


_readers: _Readers
_new_readers()
# The parent's threads do not exist in the child, so queued work would never run.
os.register_at_fork(after_in_child=_new_readers)
atexit.register(_end_readers)


class Hop(Generic[T]):
    """Something for a thread to do or to wait for."""

    __slots__ = ()

    def block(self) -> T:
        """Do it in this thread."""
        raise NotImplementedError

    def on_loop(self) -> Generator[Any, None, T]:
        """Have it done without holding up the running loop."""
        raise NotImplementedError

    def __await__(self) -> Generator[Any, None, T]:
        if mode.blocking:
            return self.block()
        return (yield from self.on_loop())


class Call(Hop[T]):
    """A blocking read, done by a reader thread when there is a loop to keep free."""

    __slots__ = ("_act",)

    def __init__(self, act: Callable[[], T]) -> None:
        self._act = act

    def block(self) -> T:
        return self._act()

    def on_loop(self) -> Generator[Any, None, T]:
        return (yield from _readers.have_done(self._act))


class Nap(Hop[None]):
    """A little real time, between two looks at something another process will change."""

    __slots__ = ("_seconds",)

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def block(self) -> None:
        time.sleep(self._seconds)

    def on_loop(self) -> Generator[Any, None, None]:
        return (yield from asyncio.sleep(self._seconds).__await__())


def drive(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine of hops to its end in this thread, without an event loop."""
    before, mode.blocking = mode.blocking, True
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        mode.blocking = before
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


class LoopThread:
    """An event loop in a thread of its own, for blocking code that comes back to it again and again."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="perdure-loop", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end there, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    @contextmanager
    def entered(self, context: AbstractAsyncContextManager[T]) -> Iterator[T]:
        """The same block, entered and left there."""
        value = self.run(_enter(context))
        try:
            yield value
        except BaseException as error:
            if not self.run(_leave(context, error)):
                raise
        else:
            self.run(_leave(context, None))

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Waiter(Protocol):
    """Runs a coroutine to its end while the caller waits."""

    def run(self, work: Coroutine[Any, Any, T]) -> T: ...


class Blocking:
    """An object of the async face for blocking code: what it would await, it waits for; `with` and `for` for `async`.

    Results of the types in `also`, and those that are context managers or iterators, are wrapped in the same way.
    """

    def __init__(self, inner: object, loop: Waiter, also: tuple[type, ...] = ()) -> None:
        for name, value in (("_inner", inner), ("_loop", loop), ("_also", also)):
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not callable(value):
            return value

        def call(*args: object, **kwargs: object) -> Any:
            done = value(*args, **kwargs)
            return self._face(self._loop.run(done) if asyncio.iscoroutine(done) else done)

        return call

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._inner, name, value)

    def __getitem__(self, name: object) -> Any:
        return self._face(self._inner[name])

    def __enter__(self) -> Any:
        entered = self._loop.run(self._inner.__aenter__())
        return self if entered is self._inner else self._face(entered)

    def __exit__(self, *error: object) -> Any:
        return self._loop.run(self._inner.__aexit__(*error))

    def __iter__(self) -> Iterator[Any]:
        going = aiter(self._inner)
        nothing = object()
        while (value := self._loop.run(_next(going, nothing))) is not nothing:
            yield self._face(value)

    def _face(self, value: object) -> Any:
        if isinstance(value, list):
            return [self._face(one) for one in value]
        is_like_it = isinstance(value, self._also) or hasattr(value, "__aenter__") or hasattr(value, "__aiter__")
        return Blocking(value, self._loop, self._also) if is_like_it else value


async def _next(going: AsyncIterator[Any], nothing: object) -> Any:
    return await anext(going, nothing)


async def _interruptible(work: Coroutine[Any, Any, T], deferred: Deferred) -> T:
    """The same on this loop. An exception raised by a signal handler cancels the work, and is raised when that has
    ended."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    raised: list[BaseException] = []

    def tell(loop: asyncio.AbstractEventLoop, about: dict[str, Any]) -> None:
        """A handler has raised in a foreign callback. asyncio only reports it."""
        error = about.get("exception")
        if error is None or not was_raised_by_a_handler(error):
            loop.default_exception_handler(about)
            return
        raised.append(error)
        task.cancel()

    def cancel() -> None:
        with suppress(RuntimeError):  # the loop is closed: it has just ended
            loop.call_soon_threadsafe(task.cancel)

    loop.set_exception_handler(tell)
    deferred.tell(cancel)
    try:
        found = await work
    except asyncio.CancelledError:
        if raised:
            raise raised[0] from None
        raise
    if raised:
        raise raised[0]
    return found


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def on_a_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that needs an event loop, for blocking code: on a new one, in this thread if it is free.

    Ctrl-C cancels it, and waits for its end; the second one does not wait.
    """
    if not _has_loop():  # not inside an except block: what the work raises would name its RuntimeError as a context
        try:
            with Deferred() as deferred:
                return asyncio.run(_interruptible(work, deferred))
        except Exception as error:
            from perdure._ground.folded_traceback import fold  # imported late: only a failure needs it

            fold(error)
            raise
    from concurrent.futures import Future, ThreadPoolExecutor

    begun: Future[Callable[[], object]] = Future()

    async def there() -> T:
        task = asyncio.current_task()
        assert task is not None
        begun.set_result(partial(asyncio.get_running_loop().call_soon_threadsafe, task.cancel))
        return await work

    def cancel(begun: Future[Callable[[], object]]) -> None:
        with suppress(RuntimeError):  # its loop is closed: it has just ended
            begun.result()()

    with ThreadPoolExecutor(1, thread_name_prefix="perdure-loop") as thread:
        done = thread.submit(asyncio.run, there())
        try:
            return done.result()
        except BaseException:
            if not done.done():  # it was the waiting that was interrupted
                begun.add_done_callback(cancel)
            raise


def inner_of(object: object) -> Any:
    """The async object inside a blocking one; any other object as it is."""
    return getattr(object, "_inner", object)
