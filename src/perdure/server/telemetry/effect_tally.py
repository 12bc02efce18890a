"""Count the effects of durable functions, from the journals of tasks that changed.

An effect has no event of its own: its intent and its outcome are entries. The first look at a journal begins at its
first entry and counts what began after this server's first look. An effect that is still open is looked at again when
its task changes, so one whose process died is counted as uncertain, and once more when its outcome is known.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from perdure._app import Perdure
from perdure._model import TaskSummary
from perdure.errors import NotFound
from perdure.server.telemetry.figures import Figures

_MOST_KNOWN = 10_000  # journals whose place is remembered
_MOST_PAGES = 20  # of one journal in one look
_STATES = {"done": "done", "raised": "failed", "uncertain": "uncertain"}


class _Place(NamedTuple):
    line: int = 1
    upto: int = 0
    counted: frozenset[tuple[str, str]] = frozenset()  # path and state of effects behind the place


class EffectTally:
    """The counters of one server for one namespace."""

    def __init__(self, app: Perdure, figures: Figures) -> None:
        self._journal, self._figures = app.journal, figures
        self._places: OrderedDict[str, _Place] = OrderedDict()

    async def look(self, tasks: Sequence[TaskSummary], began: datetime) -> None:
        """Count what is new in the journals of these tasks, of effects that began after this moment."""
        for task in tasks:
            if task.function is not None:
                place = self._places.pop(task.uid, _Place())
                try:
                    self._places[task.uid] = await self._count(task.id, place, began)
                except NotFound:
                    continue  # it has been deleted meanwhile
        while len(self._places) > _MOST_KNOWN:
            self._places.popitem(last=False)

    async def _count(self, task: str, place: _Place, began: datetime) -> _Place:
        line, upto, stays = place.line, place.upto, None
        counted = set(place.counted)
        for _ in range(_MOST_PAGES):
            found = await self._journal.since(task, line, upto)
            for call in found.calls:
                if call.op != "effect" or call.at is None or call.at < began:
                    continue
                state = _STATES.get(call.state)
                if state in (None, "uncertain") and stays is None:
                    stays = _Place(line, max(0, call.position - 1))
                if state is not None and (call.path, state) not in counted:
                    counted.add((call.path, state))
                    self._figures.count("effects", state)
            line, upto = found.line, found.upto
            if not found.more:
                break
        return _Place(line, upto) if stays is None else stays._replace(counted=frozenset(counted))
