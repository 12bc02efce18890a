"""The kill switch: stop one task, or all, from outside, whatever their code does.

A switch is a row of the store. A process that works on tasks looks at it every quarter of a second (control_watch.py);
from then on no step, effect or model call of a stopped task begins, also for code that catches whatever it is
told. An effect under way ends and is recorded. The attempt gives its lease back, and nobody takes the task again
until the switch is off. Its status stays what it was.

Between the flip and the next look, up to that quarter of a second, a call may still begin.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from perdure._durable.control.control_watch import halt_here
from perdure._ground.clock import moment
from perdure._ground.ids import check_id
from perdure._store import Store
from perdure._tasks import Tasks, store_of
from perdure.errors import KillSwitchOn


class Switch(Struct, frozen=True, kw_only=True):
    """A kill switch that is on."""

    id: str | None  # of the task; None: all tasks of the namespace
    why: str
    since: datetime
    by: dict[str, Any]


class KillSwitch:
    """The kill switches of one namespace."""

    def __init__(self, tasks: Tasks) -> None:
        self._store: Store = store_of(tasks)

    async def on(self, id: str | None = None, *, why: str = "") -> None:
        """Stop a task, or all of them; one that does not exist yet may be stopped too."""
        await self._set(id, is_on=True, why=why)
        halt_here(self._store, id)

    async def off(self, id: str | None = None) -> None:
        """Let it go on: workers take it again. A switch for all and one for a task are two."""
        await self._set(id, is_on=False, why="")

    async def list(self) -> Sequence[Switch]:
        """The switches that are on."""
        rows = await self._store.query("read_switches", namespace=self._store.namespace)
        return [Switch(id=id or None, why=why, since=moment(at), by=json.loads(author)) for id, why, at, author in rows]

    async def check(self, id: str) -> None:
        """For loops that are no durable functions: call it before each model or tool call.

        Raises:
            KillSwitchOn: the task, or all tasks, are stopped.
        """
        for switch in await self.list():
            if switch.id in (None, id):
                raise KillSwitchOn(id, switch.why, str(switch.by.get("user", "?")))

    async def _set(self, id: str | None, *, is_on: bool, why: str) -> None:
        store = self._store
        params = {
            "namespace": store.namespace,
            "id": "" if id is None else check_id(id),
            "is_on": int(is_on),
            "why": why.replace("\0", " "),
            "at": store.clock.now_ms(),
            "author": store.presence.author(),
        }
        await store.verb("set_switch", "", params, key=str(params["id"]))


async def why_stopped(store: Store, id: str) -> str:
    """What to tell a person who wonders why a task does not go on; empty if no switch is on for it."""
    for switch_id, why, _, author in await store.query("read_switches", namespace=store.namespace):
        if switch_id in ("", id):
            who, off = json.loads(author).get("user", "?"), f"perdure kill-switch off {switch_id}".strip()
            return f"{who} has stopped it by the kill switch{': ' if why else ''}{why}; {off} lets it go on"
    return ""
