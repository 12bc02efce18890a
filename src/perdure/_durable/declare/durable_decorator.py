"""`@durable`: declare a function whose task carries on after its process dies, and register it by its name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from perdure._durable.declare.functions import DurableFunction, SyncDurableFunction
from perdure._durable.declare.versions import remember
from perdure._durable.values import is_async

P = ParamSpec("P")
R = TypeVar("R")


class _Decorator(Protocol):
    """`@durable(…)`, for either kind of function."""

    @overload
    def __call__(self, function: Callable[P, Awaitable[R]], /) -> DurableFunction[P, R]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, function: Callable[P, R], /) -> SyncDurableFunction[P, R]: ...


@overload
def durable(function: Callable[P, Awaitable[R]], /) -> DurableFunction[P, R]: ...  # type: ignore[overload-overlap]
@overload
def durable(function: Callable[P, R], /) -> SyncDurableFunction[P, R]: ...
@overload
def durable(
    *, name: str = "", version: int = 1, upgrade: Callable[..., Any] | None = None, compensate: bool = False
) -> _Decorator: ...
def durable(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    version: int = 1,
    upgrade: Callable[..., Any] | None = None,
    compensate: bool = False,
) -> Any:
    """A function whose task carries on after its process dies: its recorded steps are never run again (see `step`
    for those of the last milliseconds).

    version, upgrade   a changed function is a new version; `upgrade(*old arguments)` gives the new arguments
                       of a task that an older one began, which then starts over (versions.py)
    compensate         what its effects did is undone, the newest first, when it fails
    """

    def decorate(function: Callable[..., Any]) -> DurableFunction[..., Any]:
        kind = DurableFunction if is_async(function) else SyncDurableFunction
        made: DurableFunction[..., Any] = kind(function, name, version, upgrade, compensate=compensate)
        made.is_named = bool(name)
        remember(made)
        return made

    return decorate if function is None else decorate(function)
