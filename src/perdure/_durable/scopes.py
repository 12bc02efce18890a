"""Which part of a durable function is running: its main line, a task it started, a step's body.

An asyncio task started inside a durable function is a scope of its own, named by its coroutine and by the
how-manieth of that name it is in the scope that started it. The name is given when the task is made, by
a task factory that wraps whatever factory the loop had. Inside a step's body nothing is numbered.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from functools import wraps
from types import FrameType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from perdure._durable.run import Run

P = ParamSpec("P")
R = TypeVar("R")


class Scope:
    """One line of execution inside a run; `is_body` for a step's or effect's own code."""

    __slots__ = ("_children", "is_body", "path", "run")

    def __init__(self, run: Run, path: str, *, is_body: bool = False) -> None:
        self.run, self.path, self.is_body = run, path, is_body
        self._children: dict[str, int] = {}

    def child(self, name: str) -> Scope:
        number = self._children[name] = self._children.get(name, 0) + 1
        return Scope(self.run, f"{self.path}/{name}#{number}")


current: ContextVar[Scope | None] = ContextVar("perdure_scope", default=None)


def bind(function: Callable[P, R]) -> Callable[P, R]:
    """The function with the present scope, for a thread or a callback that would not have it."""
    context = copy_context()

    @wraps(function)
    def bound(*args: P.args, **kwargs: P.kwargs) -> R:
        return context.copy().run(function, *args, **kwargs)

    return bound


# ── the task factory ─────────────────────────────────────────────────────────────────────────────


def install(loop: asyncio.AbstractEventLoop) -> None:
    """Have every task of this loop that is started inside a durable function be a scope."""
    before = loop.get_task_factory()
    if getattr(before, "is_perdures", False):
        return
    make: Callable[..., Any] = before or _plain_task

    def factory(loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, Any], **how: Any) -> Any:
        scope = current.get()
        if scope is None or scope.is_body:
            return make(loop, coro, **how)
        child = scope if _is_wait_fors_helper() else scope.child(_name_of(coro))
        context: Context = how.pop("context", None) or copy_context()
        context.run(current.set, child)
        # Counted before it is made: an eager task runs inside make().
        run = scope.run
        run.scope_began()
        task = make(loop, coro, context=context, **how)
        task.add_done_callback(run.scope_ended)
        return task

    factory.is_perdures = True  # type: ignore[attr-defined]
    loop.set_task_factory(factory)  # type: ignore[arg-type]


def _plain_task(loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, Any], **how: Any) -> asyncio.Task[Any]:
    return asyncio.Task(coro, loop=loop, **how)


def _name_of(coro: Any) -> str:
    return getattr(coro, "__qualname__", None) or type(coro).__qualname__


def _is_wait_fors_helper() -> bool:
    """Whether the task is the one that wait_for makes before Python 3.12; later ones make none."""
    if sys.version_info >= (3, 12):
        return False
    frame: FrameType | None = sys._getframe(2)
    for _ in range(4):
        if frame is not None and frame.f_code is asyncio.wait_for.__code__:
            return True
        frame = frame.f_back if frame is not None else None
    return False
