"""Which part of a durable function is running: its main line, a task it started, a step's body.

An asyncio task started inside a durable function is a scope of its own. Its name is that of its coroutine and its index
among the scopes of that name under the same parent. The name is given when the task is made, by a task factory that
wraps whatever factory the loop had. Inside a step's body nothing is numbered.

Two helpers of asyncio get special treatment. Before Python 3.12 `wait_for` makes a task, which shares its parent's
scope. `as_completed` makes its tasks in the order of a set of coroutines, which differs from process to process: there
the coroutine's arguments are part of a scope's name too, and scopes begin in the order of these names.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from functools import partial, wraps
from hashlib import blake2b
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from zlib import crc32

from msgspec import Struct

from perdure._replay import Track, digest

if TYPE_CHECKING:
    from perdure._durable.attempt.attempt import Attempt

P = ParamSpec("P")
R = TypeVar("R")


class Scope(Struct, eq=False):
    """One line of execution inside an attempt; `is_body` for a step's or effect's own code."""

    attempt: Attempt
    path: str
    is_body: bool = False
    task: asyncio.Task[Any] | None = None  # of a body: the scope that runs it
    batch: _Batch | None = None
    _children: dict[str, int] | None = None
    _alarms: dict[str, int] | None = None
    made_track: Track | None = None
    is_busy: bool = False  # a plain call is under way in it

    __repr__ = object.__repr__

    @property
    def track(self) -> Track:
        """Its part of the journal; most bodies make no call of ours, and never ask."""
        track = self.made_track
        if track is None:
            track = self.made_track = self.attempt.cursor.track(self.path)
        return track

    def child(self, name: str) -> Scope:
        children = self._children
        if children is None:
            children = self._children = {}
        number = children[name] = children.get(name, 0) + 1
        return Scope(self.attempt, f"{self.path}/{name}#{number}")

    def next_alarm(self, op: str) -> str:
        """The path of the next timer or thread that its code waits for."""
        alarms = self._alarms
        if alarms is None:
            alarms = self._alarms = {}
        number = alarms[op] = alarms.get(op, 0) + 1
        return f"{self.path}|~{op}#{number}"

    def whose(self) -> asyncio.Future[Any] | None:
        """The task whose end is the end of this scope; not a helper task, as `wait_for` makes it."""
        if self.is_body:
            return self.task or self.attempt.body
        tasks = (task for task, scope in self.attempt.activity.alive.values() if scope is self)
        return next(tasks, self.attempt.body)

    def numbers(self) -> tuple[dict[str, int], dict[str, int]]:
        """The number of calls and child scopes so far, by name."""
        return {**self.track.counts, **{f"~{op}": n for op, n in (self._alarms or {}).items()}}, dict(
            self._children or {}
        )

    def begin_at(self, calls: dict[str, int], scopes: dict[str, int]) -> None:
        """Go on numbering after so many."""
        self._alarms = {name[1:]: n for name, n in calls.items() if name.startswith("~")}
        self.track.begin_at({name: n for name, n in calls.items() if not name.startswith("~")})
        self._children = dict(scopes)


current: ContextVar[Scope | None] = ContextVar("perdure_scope", default=None)


def current_attempt() -> Attempt | None:
    """The attempt whose own code is running. None in a step's body and outside durable functions."""
    scope = current.get()
    return None if scope is None or scope.is_body else scope.attempt


def bind(function: Callable[P, R]) -> Callable[P, R]:
    """The function with a scope, for a thread or a callback that would not have it.

    Inside a durable function it is a scope of its own, numbered now: bind once for each thread, in an order
    that does not change.
    """
    scope, context = current.get(), copy_context()
    if scope is not None and not scope.is_body:
        context.run(current.set, scope.child(short_name(function)))

    @wraps(function)
    def bound(*args: P.args, **kwargs: P.kwargs) -> R:
        return context.copy().run(function, *args, **kwargs)

    bound.is_bound = True  # type: ignore[attr-defined]
    return bound


def short_name(named: Any) -> str:
    """The qualified name without the functions it was defined in."""
    name: str = getattr(named, "__qualname__", None) or _nameless(named)
    return name.rpartition("<locals>.")[2] if "<" in name else name


def whole_name(function: Any) -> str:
    """The qualified name, with the functions it was defined in: make_mailer.run is not make_billing.run."""
    name: str = getattr(function, "__qualname__", None) or _nameless(function)
    return name.replace("<locals>.", "")


def _nameless(named: Any) -> str:
    """A partial is known by its function, another object by its class."""
    while isinstance(named, partial):
        named = named.func
    found: str = getattr(named, "__qualname__", None) or type(named).__qualname__
    return found


# ── the task factory ─────────────────────────────────────────────────────────────────────────────


_make_task = asyncio.Task.__init__


class ScopeTask(asyncio.Task[Any]):
    """A task hashed by the path of its scope, so that sets of tasks have the same order in a replay.

    `done, pending = await asyncio.wait(…)` returns such sets, and code iterates over them.
    """

    __slots__ = ("_hash",)

    def __init__(
        self, coro: Coroutine[Any, Any, Any], path: str, loop: asyncio.AbstractEventLoop, context: Context, **how: Any
    ) -> None:
        hashed = crc32(path.encode())
        # asyncio puts every task of the process into one set, by the hash that it has now. There the tasks of a
        # thousand attempts, all of the same path, must not meet. (An eager one runs code before it is made.)
        self._hash = hashed if how.get("eager_start") else id(self) >> 4
        _make_task(self, coro, loop=loop, context=context, **how)
        self._hash = hashed

    def __hash__(self) -> int:
        return self._hash


def install(loop: asyncio.AbstractEventLoop) -> None:
    """Have every task of this loop that is started inside a durable function be a scope."""
    before = loop.get_task_factory()
    if getattr(before, "is_perdures", False):
        return
    make = _maker(before)

    def factory(loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, Any], **how: Any) -> Any:
        scope = current.get()
        if scope is None or scope.is_body or scope.attempt.is_over:
            return _plainly(loop, coro, before, how)
        helper = _helper_above()
        if helper is WAIT_FOR:
            return _plainly(loop, coro, before, how)
        if helper is AS_COMPLETED:
            child = scope.child(f"{short_name(coro)}{_arguments(coro)}")
            coro = _in_turn(scope, child.path, coro)
        else:
            child = scope.child(short_name(coro))
        given: Context | None = how.pop("context", None)
        context = copy_context() if given is None else given.copy()
        context.run(current.set, child)
        # Counted before it is made: an eager task runs inside make().
        attempt = scope.attempt
        attempt.activity.ordered += 1
        try:
            task = make(coro, child.path, loop, context, **how)
        except BaseException:
            attempt.activity.ordered -= 1
            raise
        attempt.scope_is(task, child)
        return task

    factory.is_perdures = True  # type: ignore[attr-defined]
    loop.set_task_factory(factory)  # type: ignore[arg-type]


def _plainly(loop: Any, coro: Any, before: Callable[..., Any] | None, how: dict[str, Any]) -> Any:
    return asyncio.Task(coro, loop=loop, **how) if before is None else before(loop, coro, **how)


def _maker(before: Any) -> Callable[..., Any]:
    """Wrap the loop's own factory, so that it makes the task of a scope."""
    if before is None:
        return ScopeTask
    if before is getattr(asyncio, "eager_task_factory", None):
        return lambda coro, path, loop, context, **how: ScopeTask(
            coro, path, loop, context, **{"eager_start": True, **how}
        )
    kinds = {p.name: p.kind for p in inspect.signature(before).parameters.values()}
    if "context" in kinds or inspect.Parameter.VAR_KEYWORD in kinds.values():
        return lambda coro, path, loop, context, **how: before(loop, coro, context=context, **how)
    # A factory from before Python 3.11: a task that it makes takes over the context it is made in.
    return lambda coro, path, loop, context, **how: context.run(before, loop, coro)


# ── helpers of asyncio ───────────────────────────────────────────────────────────────────────────


WAIT_FOR, AS_COMPLETED, OTHER, OUTSIDE = "wait_for", "as_completed", "other", "outside"
_iterator = getattr(asyncio.tasks, "_AsCompletedIterator", None)  # from Python 3.13 on
_codes: dict[CodeType, str] = {
    asyncio.wait_for.__code__: WAIT_FOR,
    (asyncio.as_completed if _iterator is None else _iterator.__init__).__code__: AS_COMPLETED,
}


def _helper_above() -> str:
    """Which helper of asyncio makes the task, if one does."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        found = _codes.get(frame.f_code)
        if found is None:
            module = frame.f_globals.get("__name__", "")
            found = _codes[frame.f_code] = OTHER if module.startswith("asyncio.") else OUTSIDE
        if found is not OTHER:
            return found
        frame = frame.f_back
    return OUTSIDE


class _Batch:
    """Tasks that are made at once, and begin in the order of their paths."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._turns: dict[str, asyncio.Future[None]] = {}
        self.is_closed = False

    def add(self, path: str) -> asyncio.Future[None]:
        turn = self._turns[path] = self._loop.create_future()
        return turn

    def close_soon(self) -> None:
        """A task begins. An eager one does so while the others have yet to be made: they are by the next pass."""
        self._loop.call_soon(self._close)

    def _close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self._loop.call_soon(self._begin)

    def _begin(self) -> None:
        for path in sorted(self._turns):
            if not self._turns[path].done():
                self._turns[path].set_result(None)


def _in_turn(scope: Scope, path: str, coro: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Any]:
    batch = scope.batch
    if batch is None or batch.is_closed:
        batch = scope.batch = _Batch(scope.attempt.loop)
    turn = batch.add(path)

    async def begin() -> Any:
        batch.close_soon()
        try:
            await turn
        except BaseException:
            coro.close()
            raise
        return await coro

    return begin()


def _arguments(coro: Any) -> str:
    """The arguments of a coroutine that has not begun, as far as they can be read."""
    frame, code = getattr(coro, "cr_frame", None), getattr(coro, "cr_code", None)
    if frame is None or code is None:
        return ""
    varargs = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + varargs]
    try:
        told = {name: _told(frame.f_locals[name]) for name in names if name not in ("self", "cls")}
    except KeyError:
        return ""
    return f"({blake2b(digest((), told), digest_size=8).hexdigest()})"


def _told(value: Any) -> Any:
    if type(value) is tuple:
        return [_told(item) for item in value]
    try:
        return digest((value,), {})
    except TypeError:
        return type(value).__qualname__
