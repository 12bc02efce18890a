"""Check whether a call may attach to an existing task: it must be the same function with the same arguments.

A task that has carried over or was upgraded no longer has the arguments it was started with. A caller that starts it
again gives the original ones, so the line remembers them.
"""

from __future__ import annotations

from typing import Any

from perdure._durable.declare import DurableFunction, chosen_among, namesakes_of
from perdure._durable.journal import read_entries
from perdure._durable.models import original_arguments
from perdure._durable.values import Signature
from perdure._ground.secrets import envelope
from perdure._model import FINISHED
from perdure._store import CallRow, EventRow, Store, TaskRow
from perdure.errors import Conflict, PerdureError

# Instead of arguments: those of an older version, or arguments that cannot be compared.
ANY = b"*"


async def check_same(store: Store, row: TaskRow, function: DurableFunction[..., Any], arguments: bytes) -> None:
    """Return if the task belongs to this call.

    Raises:
        Conflict: it belongs to another function, or was started with other arguments.
    """
    rows = await store.rows(CallRow, "get_call", uid=row.uid)
    if not rows or rows[0].function != function.name:
        what = f"belongs to {rows[0].function!r}" if rows else "has no durable function"
        other = f"{row.id}/{function.name}"
        raise Conflict(
            f"task {row.id!r} {what} and cannot run {function.name!r} too",
            do=f"choose another id for one of them, such as {other!r}",
        )
    await _refuse_namesake(store, row, function)
    before = envelope.unseal(rows[0].arguments, kind="arguments", bound_to=row.uid, ring=store.ring)
    if function.chosen.singleton and row.status not in FINISHED:
        return
    if before == arguments or rows[0].version != function.version:
        return
    asked, begun = compared(function.signature, arguments), await _begun_with(store, row)
    if begun == ANY or (asked != ANY and asked in (begun, compared(function.signature, before))):
        return
    raise Conflict(
        f"task {row.id!r} was started with other arguments",
        do="choose another id for another call; the same id attaches to the same call",
    )


async def _refuse_namesake(store: Store, row: TaskRow, function: DurableFunction[..., Any]) -> None:
    namesakes = namesakes_of(function)
    if not namesakes:
        return
    module = await begun_in(store, row.uid)
    found = chosen_among(namesakes, module)
    if found is not None and found.module != function.module:
        raise Conflict(
            f"task {row.id!r} belongs to {function.name!r} of {found.module}, not to that of {function.module}",
            do="choose another id for one of them",
        )


async def begun_in(store: Store, uid: str) -> str:
    """The module of the function that began the task; empty if it is not recorded."""
    first = await store.row(EventRow, "read_events", uid=uid, after=0, limit=1)
    data = store.unseal(uid, "event", first.body) if first is not None else None
    return str(data.get("module") or "") if isinstance(data, dict) else ""


def compared(signature: Signature, arguments: bytes) -> bytes:
    """A form of these arguments that can be compared; ANY if there is none."""
    try:
        return signature.compared(arguments)
    except (TypeError, PerdureError):
        return ANY


async def _begun_with(store: Store, row: TaskRow) -> bytes:
    """The arguments the task was started with, if its line has others."""
    return original_arguments([entry for _, entry in await read_entries(store, row.uid, row.line)]) if row.line else b""
