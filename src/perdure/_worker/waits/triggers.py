"""Act on events, and turn changed or dropped files into events.

An event is marked done only after its task exists, so a worker that dies before leaves the event to the next one. The
id of the task (or the mark of the signal) is derived from the event, so that acting on it again changes nothing.
"""

from __future__ import annotations

import asyncio
import fnmatch
import hashlib
import os
from datetime import timedelta

from msgspec.structs import replace

from perdure._durable import triggers as triggering
from perdure._ground import crash_points as crash
from perdure._model import REMEMBERED_MS, Incoming, Trigger, incoming_key
from perdure._tasks import Kept, Tasks, store_of
from perdure._worker.duty import Rest
from perdure.errors import PerdureError, StoreUnavailable

LOOK = timedelta(seconds=0.2)
# How often to look again while the trigger of an event is paused, or only other workers know its function.
_LATER_MS = 5_000
_PAGE = 1000
# Endings that programs give to files they are still writing.
_UNFINISHED = (".part", ".tmp", ".swp", ".crdownload")


class Triggers:
    name = "triggers"

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._store = store_of(tasks)
        self._triggers, self._events = triggering.triggers_of(self._store), triggering.events_of(self._store)
        self._host = self._store.presence.process.host
        self._before: dict[tuple[str, str], str] = {}  # the shape of each file in the last round, by trigger and path
        self._known: set[tuple[str, str]] = set()  # events that are already in the store, by trigger and id

    async def round(self) -> timedelta | Rest | None:
        watches = False
        for id, kept in (await self._all()).items():
            if kept.value.host == self._host and not kept.value.is_paused:
                watches = True
                await self._watch(id, kept)
        now = await self._store.wall_ms()
        events = await self._events.due(now, limit=_PAGE)
        # Read after the events, so that every trigger that existed when one of them came is included. An event that
        # no trigger wants is done.
        triggers = await self._all() if events else {}
        for event in events:
            await self._serve(event, triggers, now)
        # No bell tells of a changed file.
        return LOOK if events or watches else Rest(LOOK, await self._events.until_next(now))

    async def _all(self) -> dict[str, Kept[Trigger]]:
        return {kept.key: kept for kept in await self._triggers.all()}

    # ── events ──────────────────────────────────────────────────────────────────────────────────

    async def _serve(self, kept: Kept[Incoming], triggers: dict[str, Kept[Trigger]], now: int) -> None:
        event = kept.value
        if event.is_over:
            await self._forget(kept, now)
            return
        done, later = dict(event.done), now + REMEMBERED_MS
        wanted = {id: one for id, one in triggers.items() if one.value.event == event.name and id not in done}
        for id, one in wanted.items():
            said, when = await self._act(id, one, kept, now)
            if one.value.most:
                triggers[id] = await self._triggers.get(id) or one  # with this event in its count
            if said is not None:
                done[id] = said
            later = min(later, when)
        is_over = all(id in done for id in wanted)
        after = replace(event, done=done, is_over=is_over)
        if after != event or later != kept.due_at:
            await self._events.change(kept, after, due_at=now + REMEMBERED_MS if is_over else later)

    async def _act(self, id: str, one: Kept[Trigger], kept: Kept[Incoming], now: int) -> tuple[str | None, int]:
        """Returns the text to note for this trigger (None when the event is not done yet), and the time of the next
        look."""
        trigger = one.value
        if trigger.is_paused or not triggering.can_act(trigger):
            return None, now + _LATER_MS
        may_at, noted = trigger.slot(kept.key, now)
        if may_at > now:
            return None, may_at
        if noted is not trigger and not await self._triggers.change(one, noted):
            return None, now  # another worker changed the trigger first; check its limit again
        try:
            said = await triggering.act(self._tasks, id, trigger, kept.value)
        except StoreUnavailable:
            raise
        except (PerdureError, TypeError, ValueError) as wrong:
            # An event that causes an error must not block the others: it is marked done, with the error.
            said = f"!{wrong.what if isinstance(wrong, PerdureError) else wrong}"
        crash.place("triggers.acted")
        return said, now + REMEMBERED_MS

    async def _forget(self, kept: Kept[Incoming], now: int) -> None:
        """Delete an event, but not while the file it is about still exists."""
        event = kept.value
        is_elsewhere = event.path != "" and event.host != self._host
        if event.path and (is_elsewhere or await asyncio.to_thread(triggering.file_shape, event.path) is not None):
            await self._events.change(kept, event, due_at=now + REMEMBERED_MS)
        else:
            await self._events.drop(kept)

    # ── files ───────────────────────────────────────────────────────────────────────────────────

    async def _watch(self, id: str, kept: Kept[Trigger]) -> None:
        trigger = kept.value
        found = await asyncio.to_thread(_look, trigger)
        steady = {path: shape for path, shape in found.items() if self._before.get((id, path)) == shape}
        self._before = {key: shape for key, shape in self._before.items() if key[0] != id}
        self._before |= {(id, path): shape for path, shape in found.items()}
        if trigger.source == "directory":
            for path, shape in steady.items():
                await self._intake(id, trigger, path, shape)
            return
        now_seen = steady.get(trigger.path) if found else "-"
        if now_seen is not None and now_seen != trigger.seen:
            if now_seen != "-":
                await self._intake(id, trigger, trigger.path, now_seen)
            await self._triggers.change(kept, replace(trigger, seen=now_seen))

    async def _intake(self, id: str, trigger: Trigger, path: str, shape: str) -> None:
        # The same file with the same content is the same event, whichever worker sees it.
        event = hashlib.sha256(f"{path}\0{shape}".encode("utf-8", "surrogateescape")).hexdigest()[:24]
        if (id, event) in self._known:
            return
        now = await self._store.wall_ms()
        incoming = Incoming(name=trigger.event, id=event, data=path, received_at=now, done={})
        if trigger.source == "directory":
            incoming = replace(incoming, path=path, host=self._host)
        await self._events.add(incoming_key(trigger.event, event), incoming, due_at=now)
        self._known.add((id, event))


def _look(trigger: Trigger) -> dict[str, str]:
    """The shape of each file that the trigger watches. Symbolic links are skipped: they may lead anywhere."""
    if trigger.source == "file":
        shape = triggering.file_shape(trigger.path)
        return {} if shape is None else {trigger.path: shape}
    try:
        names = sorted(os.listdir(trigger.path))
    except OSError:
        return {}
    wanted = [name for name in names if fnmatch.fnmatch(name, trigger.pattern) and not _is_unfinished(name)]
    shapes = {path: triggering.file_shape(path) for path in (os.path.join(trigger.path, name) for name in wanted)}
    return {path: shape for path, shape in shapes.items() if shape is not None}


def _is_unfinished(name: str) -> bool:
    return name.startswith(".") or name.endswith(_UNFINISHED)
