"""Threads that a durable function hands work to: their calls are recorded like the function's own calls.

Python gives a thread no context variables. A step in a pool would not know its task: it would run unrecorded, and run
again after a crash. So work that a durable function's own code gives to a `ThreadPoolExecutor` (`submit`, `map`,
`loop.run_in_executor`) is bound to a new scope. The scope is numbered when the work is given, so it does not matter
which thread is quicker. `asyncio.to_thread` carries the context itself. For a thread the code starts itself there is
`perdure.recorded.bind`; without it, a step or effect called there is refused.

A coroutine of a step or effect that was never awaited is noticed here too: Python says so when it is dropped.
"""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from functools import partial, wraps
from types import CodeType
from typing import TYPE_CHECKING, Any
from weakref import ref

from perdure._durable.attempt.scopes import bind, current
from perdure.errors import InvalidInput

if TYPE_CHECKING:
    from perdure._durable.attempt.attempt import Attempt

log = logging.getLogger("perdure.durable")
_MARK = "_perdure_run"  # on a thread: the attempt whose code started it
_calls: set[CodeType] = set()  # of the coroutines that steps and effects make
_is_installed = False


def install() -> None:
    """Have this process carry scopes into pools, and notice threads and coroutines that miss theirs."""
    global _is_installed
    if not _is_installed:
        _is_installed = True
        setattr(ThreadPoolExecutor, "submit", _submitting(ThreadPoolExecutor.submit))  # noqa: B010
        setattr(threading.Thread, "start", _starting(threading.Thread.start))  # noqa: B010
        setattr(warnings, _WARN, _noticing(getattr(warnings, _WARN)))


# ── pools ────────────────────────────────────────────────────────────────────────────────────────


def _submitting(submit: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(submit)
    def submitted(self: ThreadPoolExecutor, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        scope = current.get()
        if scope is None or scope.is_body or scope.attempt.is_over or _has_context(fn):
            return submit(self, fn, *args, **kwargs)
        return submit(self, _bound(fn), *args, **kwargs)

    return submitted


def _bound(function: Any) -> Callable[..., Any]:
    """The function with a scope of its own; one that the code has bound keeps the scope it has, the first time."""
    if getattr(function, "is_bound", False):
        if not getattr(function, "is_given", False):
            function.is_given = True
            return function  # type: ignore[no-any-return]
        function = function.__wrapped__
    return bind(function)


def _has_context(function: Any) -> bool:
    """True if the call already runs in a copied context, as with asyncio.to_thread, or is perdure's own."""
    if isinstance(function, partial):
        return isinstance(getattr(function.func, "__self__", None), Context) or _has_context(function.func)
    return str(getattr(function, "__module__", "")).startswith("perdure.")


# ── threads of one's own ─────────────────────────────────────────────────────────────────────────


def _starting(start: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
    @wraps(start)
    def started(self: threading.Thread) -> None:
        scope = current.get()
        target = getattr(self, "_target", None)
        module = str(getattr(target, "__module__", ""))
        if scope is not None and not scope.is_body and not module.startswith(("perdure.", "concurrent.", "asyncio")):
            setattr(self, _MARK, ref(scope.attempt))
        start(self)

    return started


def refuse_lost_thread(name: str) -> None:
    """A step or effect is called without a task: refuse it in a thread that a durable function has started.

    Raises:
        InvalidInput: it is such a thread.
    """
    mark = getattr(threading.current_thread(), _MARK, None)
    attempt: Attempt | None = None if mark is None else mark()
    if attempt is not None and not attempt.is_over:  # a library's thread can outlive the task and work for others
        raise InvalidInput(
            f"{name} is called in a thread that the durable function of task {attempt.task_id!r} has started",
            kept="it did not run",
            do="start the thread with perdure.recorded.bind(function), use asyncio.to_thread, or a ThreadPoolExecutor",
        )


def two_threads(name: str) -> InvalidInput:
    """Why a plain call is refused while another thread is at one in the same scope."""
    return InvalidInput(
        f"{name} is called by two threads in one scope, so the order of their calls could not be replayed",
        kept="it did not run",
        do="bind the function once for each thread: perdure.recorded.bind(function)",
    )


# ── coroutines that were never awaited ───────────────────────────────────────────────────────────

_WARN = "_warn_unawaited_coroutine"


def watch_coroutines_of(function: Callable[..., Any]) -> None:
    """Have coroutines that this function makes noticed when they are dropped without having run."""
    _calls.add(function.__code__)


def _noticing(warn: Callable[[Any], None]) -> Callable[[Any], None]:
    @wraps(warn)
    def noticed(coroutine: Any) -> None:
        scope = current.get()
        if scope is not None and not scope.is_body and getattr(coroutine, "cr_code", None) in _calls:
            name = coroutine.__name__
            log.error("%s was called and never awaited in task %s; it did not run", name, scope.attempt.task_id)
            if scope.attempt.seldom.not_awaited is None:
                scope.attempt.seldom.not_awaited = name
        warn(coroutine)

    return noticed


def error_of_not_awaited(attempt: Attempt) -> InvalidInput | None:
    """The error for a function that dropped a call without awaiting it. None if it awaited all of them."""
    name = attempt.not_awaited
    if name is None:
        return None
    return InvalidInput(
        f"{name} was called and never awaited",
        kept=f"what was recorded; {name} did not run",
        do=f"write `await {name}(…)`, and resume the task",
    )
