"""Count what happened to the tasks of a namespace, from their events.

The first look only notes the moment. Each later look reads the events of the tasks that changed since the look before,
each event once. A change can become visible a little after its moment, so looks overlap by ten seconds and drop what
they have counted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from perdure._app import Perdure
from perdure._ground.clock import moment, to_ms
from perdure._model import EVENT_NAMES, TaskSummary, event_name
from perdure._store import RecentEvent
from perdure._tasks import store_of
from perdure.errors import KeyMissing, RecordDamaged
from perdure.server.telemetry.effect_tally import EffectTally
from perdure.server.telemetry.figures import Figures

_OVERLAP = timedelta(seconds=10)
_PAGE, _MOST_TASKS, _TOGETHER = 1000, 100_000, 200
_FEW, _MANY = 64, 100_000  # events of one task that are read
_KINDS = json.dumps(list(EVENT_NAMES))
_STATUS_AFTER = {
    "created": "pending",
    "ready": "pending",
    "attempt started": "running",
    "attempt taken over": "running",
    "resumed": "running",
    "paused": "paused",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}
_ENDS_WAIT = ("answered", "approved", "rejected", "resumed")
_PERSON = ("human_approval", "human_input")


class EventTally:
    """The counters of one server for one namespace."""

    def __init__(self, app: Perdure, figures: Figures) -> None:
        self._tasks, self._store, self._figures = app.tasks, store_of(app.tasks), figures
        self._effects = EffectTally(app, figures)
        self._began: datetime | None = None
        self._since: datetime | None = None
        self._counted: dict[tuple[str, int], int] = {}  # events of the overlap: by task and number, their moment

    async def look(self) -> None:
        """Count what is new."""
        now = moment(self._store.clock.now_ms())
        if self._since is None or self._began is None:
            self._since = self._began = now
            return
        begin = to_ms(self._since)
        tasks = await self._changed(self._since)
        for some in _in_groups(list(tasks), _TOGETHER):
            for uid, rows in groupby(await self._events(some, begin), key=lambda event: event.task_uid):
                self._count(uid, list(rows), begin)
        await self._effects.look(list(tasks.values()), self._began)
        self._since = max(self._since, now - _OVERLAP)
        edge = to_ms(self._since)
        self._counted = {place: at for place, at in self._counted.items() if at >= edge}

    async def _changed(self, since: datetime) -> dict[str, TaskSummary]:
        after: str | datetime = since
        found: dict[str, TaskSummary] = {}
        while len(found) < _MOST_TASKS:
            page = await self._tasks.changes(after, limit=_PAGE)
            found.update({item.uid: item for item in page.items})
            if not page.more:
                break
            after = page.watermark
        return found

    async def _events(self, uids: Sequence[str], begin: int) -> Sequence[RecentEvent]:
        """The newest events of each task, at least as far back as the beginning of this look."""
        look = _FEW
        while True:
            asked = {"uids": json.dumps(uids), "kinds": _KINDS, "look": look}
            rows = await self._store.rows(RecentEvent, "recent_events_of", **asked)
            firsts = {event.task_uid: event for event in reversed(rows)}
            if look >= _MANY or not any(event.number > 1 and event.at >= begin for event in firsts.values()):
                return rows
            look *= 8

    def _count(self, uid: str, rows: Sequence[RecentEvent], begin: int) -> None:
        status, paused_at, resumed_at = "", None, None
        for _, number, at, kind, _, body in rows:
            is_new = at >= begin and (uid, number) not in self._counted
            after = _STATUS_AFTER.get(kind, status)
            if is_new:
                self._counted[uid, number] = at
                self._figures.count("events", event_name(kind))
                if after != status:
                    self._figures.count("transitions", status or "none", after)
                self._detail(uid, kind, body, at, paused_at, resumed_at)
            if kind == "paused":
                paused_at = at if self._is_for_person(uid, body) else None
            elif kind in _ENDS_WAIT:
                paused_at, resumed_at = None, at
            elif "attempt" in kind:
                resumed_at = None
            status = after

    def _detail(self, uid: str, kind: str, body: bytes, at: int, paused_at: int | None, resumed_at: int | None) -> None:
        if kind == "attempt ended":
            data = self._data(uid, body)
            self._figures.count("attempts", str(data.get("ended", "")) or "released")
            if data.get("error") == "RestoreFailed":
                self._figures.count("restore_failures")
        elif kind == "restored" and isinstance(levels := self._data(uid, body).get("levels"), dict):
            for level, number in levels.items():
                self._figures.count("restore_units", str(level), by=int(number))
        elif kind == "checkpoint" and isinstance(size := self._data(uid, body).get("size"), int):
            self._figures.observe("checkpoint_bytes", size)
        elif kind in _ENDS_WAIT and paused_at is not None:
            self._figures.observe("inbox_wait_seconds", max(0, at - paused_at) / 1000)
        elif kind == "attempt started" and resumed_at is not None:
            self._figures.observe("resume_seconds", max(0, at - resumed_at) / 1000)

    def _is_for_person(self, uid: str, body: bytes) -> bool:
        return self._data(uid, body).get("reason") in _PERSON

    def _data(self, uid: str, body: bytes) -> Mapping[str, Any]:
        try:
            data = self._store.unseal(uid, "event", body)
        except (KeyMissing, RecordDamaged):
            return {}
        return data if isinstance(data, dict) else {}


def _in_groups(items: Sequence[str], size: int) -> list[Sequence[str]]:
    return [items[first : first + size] for first in range(0, len(items), size)]
