"""`@durable` and `@step`: plain Python functions whose finished calls are never run again."""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, ParamSpec, TypeVar, overload

from perdure._durable.retry import Retry, attempts_of
from perdure._durable.run import Paused, Run
from perdure._durable.scopes import Scope, current
from perdure._durable.values import Signature, decode_error, encode_error
from perdure._ground import codec
from perdure._model import Entry
from perdure._replay import Cut, Diverged, Recorded, digest
from perdure.errors import Conflict, InvalidInput, ReplayDiverged

P = ParamSpec("P")
R = TypeVar("R")


class Call:
    """A function whose calls are recorded: its name, its types, how it is identified."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str = "",
        identity: Callable[..., Any] | None = None,
        raises: Sequence[type[BaseException]] = (),
        retry: Retry | None = None,
        timeout: timedelta | None = None,
        flush: bool | None = None,
    ) -> None:
        self.function = function
        self.name = name or function.__qualname__.rpartition("<locals>.")[2]
        self.identity, self.raises, self.retry, self.timeout, self.flush = identity, raises, retry, timeout, flush
        self.signature = Signature(function)
        self.is_async = inspect.iscoroutinefunction(function)
        if "|" in self.name or "#" in self.name:
            raise InvalidInput(f"the name {self.name!r} has a | or #, which divide paths")

    def digest(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        if self.identity is not None:
            return digest((self.identity(*args, **kwargs),), {})
        try:
            return digest(args[1:] if self.signature.is_method else args, kwargs)
        except TypeError as problem:
            raise InvalidInput(
                f"{self.name} cannot be recorded: {problem}",
                do="pass data instead, or say by identity= which part of the arguments counts",
                kept="nothing ran",
            ) from None

    def read(self, entry: Entry) -> Any:
        """How a recorded call ended: its value, or its exception raised again."""
        if entry.error is not None:
            raise decode_error(entry.error, self.raises)
        assert entry.value is not None
        return codec.decode(entry.value, self.signature.returns)

    def end(self, value: Any, error: BaseException | None) -> tuple[bytes | None, bytes | None, Any]:
        """Value and error as bytes, and the value as the caller gets it."""
        if error is not None:
            return None, encode_error(error, self.raises), None
        data, copy = codec.round_trip(value, self.signature.returns)
        return data, None, copy


def poison(run: Run, error: ReplayDiverged) -> ReplayDiverged:
    """The attempt must not go on, whatever the code makes of the exception."""
    run.fence.close(error)
    return error


# ── steps ────────────────────────────────────────────────────────────────────────────────────────


@overload
def step(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def step(
    *,
    name: str = "",
    retry: Retry | None = None,
    timeout: timedelta | None = None,
    flush: bool | None = None,
    identity: Callable[..., Any] | None = None,
    raises: Sequence[type[BaseException]] = (),
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def step(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """A call whose result is kept. Cut off half-way it may be run again: it is for work that may be repeated.

    Without a task it just runs. `flush` says whether its result is waited for on its way to disk; by
    default only results of longer steps are.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        call = Call(function, **options)
        return _async_step(call) if call.is_async else _sync_step(call)

    return decorate if function is None else decorate(function)


def _async_step(call: Call) -> Callable[..., Any]:
    function, name = call.function, call.name

    @functools.wraps(function)
    async def stepped(*args: Any, **kwargs: Any) -> Any:
        scope = current.get()
        if scope is None or scope.is_body:
            return await function(*args, **kwargs)
        run = scope.run
        run.fence.check()
        asked = call.digest(args, kwargs)
        answer = run.cursor.ask(scope.path, name, asked)
        if type(answer) is Recorded:
            run.replayed += 1
            await run.hand_out(answer.position)
            return call.read(answer.entry)
        if isinstance(answer, Diverged):
            raise poison(run, run.diverged(answer))
        if type(answer) is Cut:
            return await never(run, answer.position)
        return await _run_step(call, run, answer.path, asked, args, kwargs)

    return stepped


async def never(run: Run, position: int) -> Any:
    """A call that was cut: wait for the code's own cancellation."""
    run.gate.passed(position)
    await run.loop.create_future()


async def _run_step(
    call: Call, run: Run, path: str, asked: bytes, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    await run.may_start()
    run.fresh += 1
    began = time.perf_counter()
    value: Any = None
    error: Exception | None = None
    try:
        value = await in_body(run, path, call, args, kwargs)
    except asyncio.CancelledError:
        cut(run, "step", path, asked)
        raise
    except Exception as raised:
        run.fence.check()  # ours to raise again, not the step's to record
        error = raised
    took = time.perf_counter() - began
    data, trouble, copy = call.end(value, error)
    entry = Entry("result", "step", path, asked, data, trouble, run.store.clock.now_ms(), int(took * 1000), run.epoch)
    wait = run.is_worth_waiting(took, call.flush)
    position, write = run.record(entry, urgent=wait)
    if run.scopes > 1:
        run.gate.expect(position)
    try:
        if wait:
            await write
            run.fence.check()
        await run.hand_out(position)
    except asyncio.CancelledError:
        cut(run, "step", path, asked)
        run.gate.passed(position)
        raise
    if trouble is not None:
        raise decode_error(trouble, call.raises) from error
    return copy


def cut(run: Run, op: str, path: str, asked: bytes) -> None:
    if run.fence.closed is None and not run.unwinding:
        run.record(Entry("cut", op, path, asked, at=run.store.clock.now_ms(), epoch=run.epoch))


async def in_body(run: Run, path: str, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the function's own code, with its retries and its time-out; nothing inside it is numbered."""
    token = current.set(Scope(run, path, is_body=True))
    run.bodies += 1
    try:
        if call.retry is None and call.timeout is None:
            return await _invoke(call, args, kwargs)
        return await attempts_of(run, path, call, lambda: _invoke(call, args, kwargs))
    finally:
        run.bodies -= 1
        current.reset(token)
        if run.pausing:
            run.look_for_unwinding()


async def _invoke(call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if call.is_async:
        return await call.function(*args, **kwargs)
    return await asyncio.to_thread(call.function, *args, **kwargs)


def _sync_step(call: Call) -> Callable[..., Any]:
    function, name = call.function, call.name

    @functools.wraps(function)
    def stepped(*args: Any, **kwargs: Any) -> Any:
        scope = current.get()
        if scope is None or scope.is_body:
            return function(*args, **kwargs)
        run = scope.run
        run.fence.check()
        if run.unwinding:
            raise Paused
        asked = call.digest(args, kwargs)
        answer = run.cursor.ask(scope.path, name, asked)
        if type(answer) is Recorded:
            run.replayed += 1
            return call.read(answer.entry)
        if isinstance(answer, Diverged):
            raise poison(run, run.diverged(answer))
        path = answer.path
        token = current.set(Scope(run, path, is_body=True))
        began = time.perf_counter()
        value: Any = None
        error: Exception | None = None
        try:
            value = function(*args, **kwargs)
        except Exception as raised:
            error = raised
        finally:
            current.reset(token)
        took = time.perf_counter() - began
        data, trouble, copy = call.end(value, error)
        now = run.store.clock.now_ms()
        run.record(Entry("result", "inline", path, asked, data, trouble, now, int(took * 1000), run.epoch))
        run.warn_if_slow(name, took)
        if trouble is not None:
            raise decode_error(trouble, call.raises) from error
        return copy

    return stepped


# ── durable functions ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Options:
    queue: str = "default"
    priority: int = 0
    key: str = ""
    timeout: timedelta | None = None
    budget: Any = None


class DurableFunction(Generic[P, R]):
    """A function whose task carries on after its process dies."""

    def __init__(
        self,
        function: Callable[P, Awaitable[R]],
        name: str = "",
        version: int = 1,
        upgrade: Callable[..., Any] | None = None,
        options: Options | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.name = name or function.__qualname__.rpartition("<locals>.")[2]
        self.version, self.upgrade = version, upgrade
        self.signature = Signature(function)
        self.is_async = inspect.iscoroutinefunction(function)
        self.chosen = options or Options()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        """Call it as a part of the durable function that is running; without one it just runs."""
        return self.function(*args, **kwargs)

    def options(self, **chosen: Any) -> DurableFunction[P, R]:
        """The same function, started with these options."""
        return DurableFunction(self.function, self.name, self.version, self.upgrade, Options(**chosen))

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self.__call__, instance)  # type: ignore[arg-type]


_known: dict[str, DurableFunction[..., Any]] = {}


@overload
def durable(function: Callable[P, Awaitable[R]], /) -> DurableFunction[P, R]: ...
@overload
def durable(
    *, name: str = "", version: int = 1, upgrade: Callable[..., Any] | None = None
) -> Callable[[Callable[P, Awaitable[R]]], DurableFunction[P, R]]: ...
def durable(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """A function whose task carries on after its process dies: its finished steps are never run again."""

    def decorate(function: Callable[..., Any]) -> DurableFunction[..., Any]:
        made: DurableFunction[..., Any] = DurableFunction(function, **options)
        _remember(made)
        return made

    return decorate if function is None else decorate(function)


def _remember(made: DurableFunction[..., Any]) -> None:
    """Known by name, never by module: `__main__` and `my.module` are one."""
    before = _known.get(made.name)
    if before is not None and _is_another(before.function, made.function):
        raise Conflict(
            f"two durable functions are called {made.name!r}: in {_place(before.function)} and {_place(made.function)}",
            do="give one of them another name: @durable(name=…)",
        )
    _known[made.name] = made


def _is_another(a: Callable[..., Any], b: Callable[..., Any]) -> bool:
    # The same file loaded again, a notebook's cell run again, a test's local function: all are the same one.
    return "<locals>" not in b.__qualname__ and a.__code__.co_filename != b.__code__.co_filename


def _place(function: Callable[..., Any]) -> str:
    return f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"


def known_functions() -> dict[str, DurableFunction[..., Any]]:
    return dict(_known)
