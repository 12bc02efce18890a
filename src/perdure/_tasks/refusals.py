"""Explain why a verb was refused: read the task's present state and turn it into an error.

A verb whose condition was false wrote nothing and returned None. The reason is looked up afterwards. If nothing is in
the way any more, the caller tries the verb again.
"""

from __future__ import annotations

from perdure._model import FINISHED, MAY_WRITE, MOVES, refuse_move
from perdure._store import Fence, Store, TaskRow
from perdure._tasks import leases
from perdure.errors import Conflict, LeaseLost, PerdureError, StaleVersion


async def why(
    store: Store, row: TaskRow, verb: str, *, fence: Fence | None = None, version: int | None = None
) -> PerdureError | None:
    """Why `verb` cannot be done on the task now; None if it can."""
    if not row.is_current:
        return Conflict(
            f"this task {row.id!r} is history: another one has taken its id", do="open the id to get the new one"
        )
    lawful = MOVES[verb].before if verb in MOVES else MAY_WRITE
    if row.status not in lawful:
        return refuse_move(row.id, row.status, verb)
    if fence is not None:
        holder = await leases.read_holder(store, row.uid)
        if (holder.epoch, holder.worker) != (fence.epoch, fence.worker):
            return LeaseLost(row.id, _who(holder.epoch, fence.epoch))
    if version is not None and version != row.version:
        return StaleVersion(row.id, version, row.version)
    return None


def _who(now: int, ours: int) -> str:
    if now == ours:
        return "it was ended from outside"
    return f"its epoch was {ours}, and the task is at epoch {now}"


def is_finished(row: TaskRow) -> bool:
    return row.status in FINISHED
