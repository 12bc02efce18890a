"""The one checker: what must hold after any storm, whoever was killed when.

every acknowledged write is there          no recorded result has changed
each effect was done once                  one writer per lease
every task has ended, or says why not      rows, files and hash chains hold
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from perdure import Perdure
from perdure._ground.bridge import drive
from perdure._ground.secrets import envelope
from perdure._model import FINISHED, decode_entry
from perdure._store import AttemptRow, TaskRow
from perdure._tasks import verify
from tests.torture.checks import check_rows

Place = tuple[str, int, int]


@dataclass
class Story:
    """What was seen and acknowledged while it happened."""

    started: dict[str, Any] = field(default_factory=dict)  # by task id: the result it has to have
    sent: set[str] = field(default_factory=set)  # what effects have to have done
    acknowledged: dict[str, int] = field(default_factory=dict)  # by task id: the highest number
    entries: dict[Place, bytes] = field(default_factory=dict)  # by uid, line and position: as it was seen once

    def look(self, app: Perdure) -> None:
        """Remember every result that is on record now; none may be another one later."""
        for row in _tasks(app):
            for position, entry in drive(_read(app, "read_journal", uid=row.uid, line=row.line)):
                place = (row.uid, row.line, position)
                before = self.entries.setdefault(place, bytes(entry))
                assert before == bytes(entry), f"{row.id}: entry {position} has changed"


def check(app: Perdure, story: Story, recorded: list[str]) -> None:
    """Everything that must hold; the message says what does not."""
    story.look(app)
    _check_writes(app, story)
    _check_effects(story, recorded)
    _check_ends(app, story)
    for row in _tasks(app):
        _check_writers(app, row)
    check_rows(app)
    audit = drive(verify(app._store))
    assert audit.is_whole, audit.broken
    damage = getattr(app._store.engine, "damage", list)()
    assert not damage, damage


def _check_writes(app: Perdure, story: Story) -> None:
    for id, number in story.acknowledged.items():
        record = drive(app.tasks.get(id))
        assert record is not None, f"{id} was acknowledged, and is gone"
        assert record.state["n"] >= number, f"{id}: {number} was acknowledged, {record.state['n']} is there"
    lines = {(uid, line) for uid, line, _ in story.entries}  # a task that was rolled back has several
    present = {(*line, position) for line in lines for position, _ in _entries(app, *line)}
    lost = story.entries.keys() - present
    assert not lost, f"entries that were there are gone: {sorted(lost)[:5]}"


def _check_effects(story: Story, recorded: list[str]) -> None:
    twice = {what: times for what, times in Counter(recorded).items() if times > 1}
    assert not twice, f"done more than once: {twice}"
    missing = story.sent - set(recorded)
    assert not missing, f"never done: {sorted(missing)}"
    assert not set(recorded) - story.sent, f"nobody asked for {sorted(set(recorded) - story.sent)}"


def _check_ends(app: Perdure, story: Story) -> None:
    for id, result in story.started.items():
        record = drive(app.tasks.get(id))
        assert record is not None, f"{id} was started, and is gone"
        if record.status == "completed":
            assert record.result == result, f"{id} ended with {record.result}"
        else:
            why = record.error or (record.pause and record.pause.message)
            assert record.status in (*FINISHED, "paused") and why, f"{id} is {record.status}, and nobody knows why"


def _check_writers(app: Perdure, row: TaskRow) -> None:
    """Attempts follow each other, and what they wrote follows their epochs."""
    attempts = [AttemptRow(*found) for found in drive(_read(app, "read_attempts", uid=row.uid))]
    assert len({attempt.number for attempt in attempts}) == len(attempts)
    for before, after in pairwise(attempts):
        assert before.ended_at is not None, f"{row.id}: attempts {before.number} and {after.number} at once"
    found = [decode_entry(_open(app, row, position, entry)).epoch for position, entry in _journal(app, row)]
    epochs = [epoch for epoch in found if epoch > 0]  # a fork's copies are its source's
    assert epochs == sorted(epochs), f"{row.id}: a former attempt wrote after its successor: {epochs}"
    assert set(epochs) <= {attempt.number for attempt in attempts}, f"{row.id}: entries of nobody's attempt"


def _open(app: Perdure, row: TaskRow, position: int, entry: bytes) -> bytes:
    return envelope.unseal(entry, kind="entry", bound_to=row.uid, ring=app._store.ring, place=position)


def _journal(app: Perdure, row: TaskRow) -> list[Any]:
    return _entries(app, row.uid, row.line)


def _entries(app: Perdure, uid: str, line: int) -> list[Any]:
    found: list[Any] = drive(_read(app, "read_journal", uid=uid, line=line))
    return found


def _tasks(app: Perdure) -> list[TaskRow]:
    store = app._store
    return [
        TaskRow(*row) for row in drive(_read(app, "list_all", namespace=store.namespace, after="", limit=1_000_000))
    ]


async def _read(app: Perdure, name: str, **params: Any) -> Any:
    return await app._store.query(name, **params)
