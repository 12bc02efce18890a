"""The kill switch: stop one task, or all of them, from outside, whatever their code does.

A switch is a row in the store. A process that works on tasks reads it every 0.25 s (control_watch.py). From then on no
step, effect or model call of a stopped task begins, even if its code catches every exception. An effect under way ends
and is recorded. The attempt gives its lease back, and no process claims the task until the switch is off. The task's
status does not change.

Until the next read, for up to 0.25 s, a call can still begin.
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
from perdure._store import Store, SwitchRow
from perdure._tasks import Tasks, store_of
from perdure.errors import KillSwitchOn


class Switch(Struct, frozen=True, kw_only=True):
    """A kill switch that is on."""

    id: str | None  # the task; None: all tasks of the namespace
    why: str
    since: datetime
    by: dict[str, Any]


class KillSwitch:
    """The kill switches of one namespace."""

    def __init__(self, tasks: Tasks) -> None:
        self._store: Store = store_of(tasks)

    async def on(self, id: str | None = None, *, why: str = "") -> None:
        """Stop one task, or all of them. The task need not exist yet."""
        await self._set(id, is_on=True, why=why)
        halt_here(self._store, id)

    async def off(self, id: str | None = None) -> None:
        """Let workers claim the task again. The switch for all tasks and the switch of one task are independent."""
        await self._set(id, is_on=False, why="")

    async def list(self) -> Sequence[Switch]:
        """The switches that are on."""
        rows = await self._store.rows(SwitchRow, "read_switches", namespace=self._store.namespace)
        return [Switch(id=one.id or None, why=one.why, since=moment(one.at), by=json.loads(one.author)) for one in rows]

    async def check(self, id: str) -> None:
        """For loops outside durable functions: call it before each model or tool call.

        Raises:
            KillSwitchOn: the task, or every task, is stopped.
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
    """Why the kill switch stops a task, in words for a person; empty if no switch is on for it."""
    for switch in await store.rows(SwitchRow, "read_switches", namespace=store.namespace):
        if switch.id in ("", id):
            who, off = json.loads(switch.author).get("user", "?"), f"perdure kill-switch off {switch.id}".strip()
            why = f": {switch.why}" if switch.why else ""
            return f"{who} has stopped it by the kill switch{why}; {off} lets it continue"
    return ""
