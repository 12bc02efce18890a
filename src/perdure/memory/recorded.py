"""Record the calls that an agent makes on a layer: inside a durable function each is carried out once."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from perdure._durable import memory_call
from perdure.memory.layer import LayerContext

P = ParamSpec("P")
R = TypeVar("R")
L = TypeVar("L")


def recorded(
    as_type: Any = None,
) -> Callable[[Callable[Concatenate[L, P], Awaitable[R]]], Callable[Concatenate[L, P], Awaitable[R]]]:
    """Decorate a method of a layer so that its calls are recorded; `as_type` is the type of its result."""

    def decorate(method: Callable[Concatenate[L, P], Awaitable[R]]) -> Callable[Concatenate[L, P], Awaitable[R]]:
        @functools.wraps(method)
        async def called(self: L, /, *args: P.args, **kwargs: P.kwargs) -> R:
            name = f"memory.{self.id}.{method.__name__}"  # type: ignore[attr-defined]

            async def act() -> R:
                context: LayerContext | None = self._context  # type: ignore[attr-defined]
                if context is not None and context.begin is not None:
                    await context.begin()
                return await method(self, *args, **kwargs)

            return await memory_call(
                name,
                [[_plain(one) for one in args], {key: _plain(one) for key, one in kwargs.items()}],
                act,
                as_type,
            )

        return called

    return decorate


def _plain(value: Any) -> Any:
    """An argument in the form that is compared: a path becomes its text."""
    return str(value) if hasattr(value, "__fspath__") else value
