"""Why nobody works on a task: who among the live workers could, and what keeps them from it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from perdure._ground.clock import moment
from perdure._ground.ids import Process, is_proven_dead
from perdure._model import Pause
from perdure._store import Row, Store, TaskRow


class Knower(NamedTuple):
    """What a live worker has said that it can carry on."""

    queues: Sequence[str]
    functions: Sequence[Sequence[Any]]  # name, version, whether older versions are brought to it
    commands: bool = True  # whether it runs commands of stored pauses; an older one does not say

    def knows(self, name: str, version: int) -> bool:
        return any(
            known == name and (of == version or (upgrades and of > version)) for known, of, upgrades in self.functions
        )


async def why_nobody(store: Store, call: Row) -> str:
    """What a task of this call, that nobody holds, is waiting for."""
    name, version, queue, not_before = call[0], call[1], call[3], call[8]
    if not_before is not None and not_before > await store.wall_ms():
        return f"it waits until {moment(not_before).isoformat(timespec='seconds')} before its next attempt"
    live = [_knower(row) for row in await store.query("read_workers") if _is_live(store, row)]
    if not live:
        return "no worker is running: `perdure worker module:app` starts one, or run the program again that started it"
    knowing = [knower for knower in live if knower.knows(name, version)]
    if not knowing:
        versions = sorted({of for knower in live for known, of, _ in knower.functions if known == name})
        others = f"; they know {', '.join(f'version {of}' for of in versions)}" if versions else ""
        what = f"{name} version {version}" if version > 1 or versions else str(name)
        return f"no live worker knows {what}{others}: start one that has its code"
    if not any(queue in knower.queues for knower in knowing):
        return f"no live worker takes tasks of queue {queue!r}"
    return "a worker takes it when it is its turn"


async def why_not_checked(store: Store, pause: Pause) -> str:
    """What keeps workers from the check that a plain pause waits for, when all of them are."""
    if "command" not in pause.payload:
        return ""
    live = [_knower(row) for row in await store.query("read_workers") if _is_live(store, row)]
    if any(knower.commands for knower in live):
        return ""
    nobody = "no live worker may run its command" if live else "no worker is running that may run its command"
    return f"{nobody}: start one with PERDURE_POLL_COMMANDS=1, or perdure resume"


async def why_not_at_work(store: Store, uid: str) -> str:
    """Why nobody works on a task that could be worked on; nothing when somebody does, or it waits for something."""
    holder, call = await store.query("read_holder", uid=uid), await store.query("get_call", uid=uid)
    row = TaskRow(*(await store.query("get_task_by_uid", uid=uid))[0])
    if row.status != "running" or not call or (holder and holder[0][1]):
        return ""
    return await why_nobody(store, call[0])


def _is_live(store: Store, row: Row) -> bool:
    """Here to work, and not known to be dead; of one elsewhere only its silence could tell, and that takes time."""
    knows, wish = row[11], row[12]
    if not knows or wish:
        return False
    return not is_proven_dead(Process(*row[2:7]), same_machine=store.engine.is_local)


def _knower(row: Row) -> Knower:
    said = json.loads(row[11])
    return Knower(said["queues"], said["functions"], said.get("commands", True))
