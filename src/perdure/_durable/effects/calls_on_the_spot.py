"""`call` and `current`, for adapters: record a call without a decorator, and ask where the running code is.

An adapter gets its functions at run time, so it cannot decorate them where they are written. The walk is that of
`@step` and `@effect`; this module records nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeVar

from perdure._durable.attempt import inside
from perdure._durable.declare import step
from perdure._durable.effects.declaration import EffectCall, remember
from perdure._durable.effects.effect_decorator import Effect
from perdure.errors import InvalidInput

R = TypeVar("R")


class Current(NamedTuple):
    """A durable function that is running here."""

    task_id: str
    is_body: bool  # inside the body of one of its steps or effects, where only effects are recorded


def current() -> Current | None:
    """The durable function whose code is running, and whether that code is in a step's or effect's body. None outside.

    Raises:
        Paused: its attempt is ending, because the task is paused.
        PerdureError: its attempt has lost the task.
    """
    found = inside()
    return None if found is None else Current(found.task_id, found.is_body)


def call(
    function: Callable[..., R],
    /,
    *args: Any,
    name: str = "",
    kind: Literal["step", "effect"] = "step",
    kwargs: Mapping[str, Any] | None = None,
    **options: Any,
) -> R:
    """Call a function as a step or an effect, without a decorator: the same record, and the same promises.

        answer = await perdure.call(client.post, url, name="search", retry=Retry(3))
        receipt = await perdure.call(pay, order, 500, kind="effect", keyed=True)

    `options` are those of `@step` or `@effect`; `kwargs` are the function's own arguments by name. Returns what the
    function returns, so the call of an async function is awaited. Without a task a step just runs, and an effect raises
    NoTask. Give a `name` that stays the same from one attempt to the next.
    """
    if kind == "step":
        stepped: Callable[..., R] = step(name=name, **options)(function)
        return stepped(*args, **(kwargs or {}))
    if kind != "effect":
        raise InvalidInput(f"kind is {kind!r}", do='choose "step" or "effect"')
    made = EffectCall(function, name=name, **options)
    if made.found_by:  # another process may have to find it by name, or undo it
        remember(made)
    effected: Effect[..., R] = Effect(made)
    return effected(*args, **(kwargs or {}))
