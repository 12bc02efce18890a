"""`carry_over`: end a line of the journal and begin the next one with new arguments. An upgrade does the same.

For functions that never end: their journal stays as short as one round. Units, signals and children stay.
"""

from __future__ import annotations

from typing import Any

from perdure._durable.attempt import Attempt, Paused, current
from perdure._durable.journal import read_entries
from perdure._durable.lifecycle.attach_check import compared
from perdure._durable.lifecycle.lines.task_fork import packed
from perdure._durable.models import carried, original_arguments
from perdure._ground.secrets import envelope
from perdure._store import CallRow
from perdure._tasks import Hold, Task, event_of, store_of
from perdure.errors import InvalidInput, LeaseLost, NoTask


async def carry_over(*args: Any, **kwargs: Any) -> None:
    """Begin again with these arguments, in the same task. Does not return.

    Raises:
        InvalidInput: other asyncio tasks of the function still run, and an effect of theirs would be interrupted.
        TypeError: the function does not take these arguments.
        NotStorable: one of them cannot be stored.
    """
    scope = current.get()
    if scope is None:
        raise NoTask("carry_over")
    if scope.is_body:
        raise InvalidInput("carry_over is called inside a step", do="call it in the durable function itself")
    attempt = scope.attempt
    attempt.check()
    if scope is not attempt.main or attempt.activity.has_tasks:
        raise InvalidInput(
            "carry_over is called while other asyncio tasks of the function still run",
            kept="the journal as it is; the task continues",
            do="await them first, and carry over in the function itself",
        )
    assert attempt.signature is not None
    # Here, so that an error in the arguments is raised in the user's code.
    attempt.carried = attempt.signature.encode_arguments(args, kwargs)
    attempt.unwinding.has_begun = True
    raise Paused


def is_carried(attempt: Attempt, error: BaseException) -> bool:
    """True if the attempt ended in order to begin the next line."""
    return attempt.carried is not None and isinstance(error, Paused) and attempt.fence.closed is None


async def next_line(attempt: Attempt, task: Task, hold: Hold, signature: Any, version: int) -> None:
    """Begin the new line. It is on disk when this returns.

    Raises:
        LeaseLost: another attempt has taken over.
    """
    assert attempt.carried is not None
    await attempt.flush()
    before = (await attempt.store.rows(CallRow, "get_call", uid=task.uid))[0].arguments
    before = envelope.unseal(before, kind="arguments", bound_to=task.uid, ring=attempt.store.ring)
    begun_with = original_arguments([entry for _, entry in attempt.entries]) or compared(signature, before)
    data = {"line": attempt.line + 1}
    await begin_line(
        task,
        hold,
        attempt.line,
        "carried over",
        data,
        version=version,
        arguments=attempt.carried,
        begun_with=begun_with,
    )


async def begin_line(
    task: Task,
    hold: Hold,
    line: int,
    event: str,
    data: dict[str, Any],
    *,
    version: int,
    arguments: bytes,
    begun_with: bytes,
) -> None:
    """End this line and begin the next one. It is on disk when this returns.

    The first entry of the new line holds what the line before cost, and the arguments the task was started with.

    Raises:
        LeaseLost: another attempt has taken over.
    """
    store = store_of(task)
    before = [entry for _, entry in await read_entries(store, task.uid, line)]
    params = {
        **event_of(task, event, data),
        "entries": packed(store, task.uid, [(0, carried(before, begun_with))]),
        "function_version": version,
        "arguments": envelope.seal(arguments, kind="arguments", bound_to=task.uid, ring=store.ring),
    }
    if await store.verb("begin_line", task.uid, params, key=task.id, fence=hold.fence) is None:
        lost = LeaseLost(task.id, f"another attempt has the lease; the task was not {event}")
        hold.fence.close(lost)
        raise lost
