"""Call a layer's hook so that neither its exception nor its hanging reaches the turn.

A blocking hook runs in a thread of its own, so that one that hangs holds up neither the loop nor the end
of the process. After a time-out the thread keeps running; its result is ignored.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

from perdure._durable import is_on_record
from perdure.errors import LeaseLost, PerdureError

T = TypeVar("T")


class Outcome(NamedTuple):
    """The result of a hook, or why there is none."""

    value: Any = None
    trouble: str = ""


async def call(layer: Any, name: str, *args: Any, timeout: timedelta) -> Outcome:
    """Call the hook if the layer has it; wait no longer than `timeout`.

    Raises:
        LeaseLost: another attempt has taken over; this one must stop, so it is not kept quiet.
    """
    hook = getattr(layer, name, None)
    if hook is None:
        return Outcome()
    if is_on_record():  # a hook that has nothing to wait for ends here
        try:
            value = hook(*args)
            return Outcome(await value if inspect.isawaitable(value) else value)
        except Exception as error:
            return Outcome(trouble=f"{type(error).__name__}: {error}")
    try:
        async with asyncio.timeout(timeout.total_seconds()):
            return Outcome(await _either_way(hook, args))
    except LeaseLost:
        raise
    except TimeoutError as late:
        own = str(late)  # the hook raised its own time-out, which has a message; ours has none
        return Outcome(trouble=own or f"took longer than {timeout.total_seconds():g} s")
    except PerdureError as error:
        return Outcome(trouble=error.what)
    except Exception as error:
        return Outcome(trouble=f"{type(error).__name__}: {error}")


async def _either_way(hook: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    if inspect.iscoroutinefunction(hook):
        return await hook(*args)
    value = await in_thread(lambda: hook(*args))
    return await value if inspect.isawaitable(value) else value


async def in_thread(act: Callable[[], T]) -> T:
    """Run it in a thread that the exiting process does not wait for."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)

    def run() -> None:
        value: Any = None
        error: BaseException | None = None
        try:
            value = context.run(act)
        except StopIteration as stop:  # cannot be put into a future
            error = RuntimeError(f"raised {stop!r}")
        except BaseException as caught:
            error = caught
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=run, name="perdure-memory", daemon=True).start()
    return await future
