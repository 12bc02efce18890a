"""`carry_over`: end a line of the journal and begin the next one with new arguments.

For functions without an end: the journal stays as long as one round. Units, signals and children stay.
"""

from __future__ import annotations

from typing import Any

from perdure._durable.attempt import Paused, Run, current
from perdure._durable.lifecycle.attach_check import compared
from perdure._durable.lifecycle.task_fork import first_entry
from perdure._durable.models import was_begun_with
from perdure._ground import envelope
from perdure._tasks import Hold, Task
from perdure.errors import InvalidInput, LeaseLost, NoTask


async def carry_over(*args: Any, **kwargs: Any) -> None:
    """Begin anew with these arguments, in the same task; does not return.

    Raises:
        InvalidInput: other tasks of the function are under way, and an effect of theirs would be cut off.
        TypeError: the function does not take them.
        NotStorable: one of them cannot be kept.
    """
    scope = current.get()
    if scope is None:
        raise NoTask("carry_over")
    if scope.is_body:
        raise InvalidInput("carry_over is called inside a step", do="call it in the durable function itself")
    run = scope.run
    run.check()
    if scope is not run.main or run.scopes > 1:
        raise InvalidInput(
            "carry_over is called while other tasks of the function are under way",
            kept="the journal as it is; it goes on",
            do="await them first, and carry over in the function itself",
        )
    assert run.signature is not None
    run.carried = run.signature.encode_arguments(args, kwargs)  # here, where the code can see what is wrong with them
    run.unwinding = True
    raise Paused


def is_carried(run: Run, error: BaseException) -> bool:
    """Whether the attempt has ended to go on on the next line."""
    return run.carried is not None and isinstance(error, Paused) and run.fence.closed is None


async def next_line(run: Run, task: Task, hold: Hold, signature: Any, version: int) -> None:
    """The new line, durable when this returns.

    Raises:
        LeaseLost: another attempt has taken over.
    """
    assert run.carried is not None
    await run.flush()
    before = (await run.store.query("get_call", uid=task.uid))[0][2]
    before = envelope.unseal(before, kind="arguments", bound_to=task.uid, ring=run.store.ring)
    begun_with = was_begun_with([entry for _, entry in run.entries]) or compared(signature, before)
    params = {
        **task._event("carried over", {"line": run.line + 1}),
        "entries": await first_entry(run.store, task.uid, run.line, begun_with),
        "function_version": version,
        "arguments": envelope.seal(run.carried, kind="arguments", bound_to=task.uid, ring=run.store.ring),
    }
    if await run.store.verb("begin_line", task.uid, params, key=task.id, fence=hold.fence) is None:
        lost = LeaseLost(task.id, "another attempt has the lease, so nothing was carried over")
        hold.fence.close(lost)
        raise lost
