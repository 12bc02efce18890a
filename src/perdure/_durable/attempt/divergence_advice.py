"""Advice for a function that asks for another call than its journal holds.

The same two calls mean different mistakes. Other arguments under the same name mostly come from a clock or from chance,
which a replay meets anew. Another name with the same arguments is mostly a function that was renamed. In a fork, a call
that was copied and is made with other arguments now was copied too much. The advice names the likely one first.
"""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote
from typing import TYPE_CHECKING

from perdure._durable.journal import Journal
from perdure._model import Entry, name_of
from perdure._replay import Diverged
from perdure._tasks import tasks_of
from perdure.errors import ReplayDiverged

if TYPE_CHECKING:
    from perdure._tasks import Task

_ELSE = "else put the calls back in order, keep both ways with patched(), or publish @durable(version=2)"


def advice(found: Diverged, entries: Iterable[tuple[int, Entry]]) -> str:
    """What to do about the divergence, the likely cause first. Empty if there is no hint."""
    entry = next((entry for position, entry in entries if position == found.position), None)
    if entry is None:
        return ""
    if found.cause == "arguments":
        return (
            "does the argument come from random or time? use recorded.random(), recorded.now() or recorded.uuid4(), "
            f"which a replay repeats; {_ELSE}"
        )
    if found.cause == "name":
        kind = "effect" if entry.op.startswith("effect") else "step"
        return f'was it renamed? keep its old name: @{kind}(name="{name_of(entry.path)}"); {_ELSE}'
    return ""


async def advise_on_fork(task: Task, error: ReplayDiverged) -> None:
    """In a fork, a call that it has copied diverges because too much was copied: have the error say so."""
    created = next(iter(await tasks_of(task).events(task, limit=1)), None)
    origin = created.data if created is not None and isinstance(created.data, dict) else {}
    source, upto = origin.get("forked_from"), origin.get("position")
    if not isinstance(source, str) or not isinstance(upto, int) or not 0 < error.position <= upto:
        return
    found = await Journal(tasks_of(task)).outline(task)
    at = max((position for position in found.position if position < error.position), default=0)
    error.do = (
        f"this call was copied from {source!r}: fork earlier, `perdure fork {quote(source)} NEW --at {at}`, "
        "so that it is made anew"
    )
