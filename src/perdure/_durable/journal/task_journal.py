"""`app.journal`: look at what a durable function has done, without its code.

An outline has every call of a line, as columns. A page has some calls, each on one line. `entry` has one call whole.
Each reads and decodes only what was requested: a page does not read the line before it, and a large value is decoded
only where it is shown. An entry that cannot be read is a call whose state is `damaged`; the rest is shown as it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Collection, Sequence
from operator import attrgetter
from shlex import quote
from typing import Any, NamedTuple, get_args

from msgspec import DecodeError, Struct

from perdure._durable.journal.call_view import Damage, JournalCall, shown_as, shown_whole, unreadable
from perdure._durable.journal.journal_calls import MARKS, CallState, EntriesOf, Standing, calls_in
from perdure._durable.journal.journal_reader import least_length, read_readable, readable_of
from perdure._durable.journal.outline import JournalLine, Outline, OutlineDraft
from perdure._ground.bridge import Nap
from perdure._ground.ids import check_id, is_proven_dead
from perdure._ground.secrets import envelope
from perdure._model import CARRIED, FINISHED, Entry, Page, decode_entry, open_entry, scope_of
from perdure._replay import arguments_in
from perdure._store import AttemptRow, JournalRow, LineRow, PauseRow, Store, TaskRow
from perdure._tasks import Task, Tasks, current_row, find_row, read_holder, store_of
from perdure.errors import InvalidInput, NotFound, RecordDamaged

_ROWS = 2000  # read at a time
_MOST_LOOKED = 20_000  # entries that one page of a filtered journal looks at
_LOOK_SECONDS = 0.05
_MOST_SOUGHT = 20  # calls; of more, every entry is decoded
_EFFECT = "~effect"  # the topic of questions whether an effect happened


class _Place(NamedTuple):
    row: TaskRow
    line: int

    @property
    def is_current(self) -> bool:
        return self.line == self.row.line


class JournalNews(Struct, frozen=True, kw_only=True):
    """Calls that were recorded after a place in a journal, and the place after them."""

    calls: Sequence[JournalCall]
    line: int
    upto: int  # position
    more: bool  # there may be more


class Journal:
    """The calls of durable functions. A task is given by its id."""

    def __init__(self, tasks: Tasks) -> None:
        self._store = store_of(tasks)

    async def outline(self, task: str | Task, line: int | None = None) -> Outline:
        """Every call of one line as columns, for a timeline; without `line`, of the task's present one.

        Raises:
            NotFound: there is no such task, or no such line.
        """
        place = await self._place(task, line)
        store, uid = self._store, place.row.uid
        draft, is_damaged, is_whole, after = OutlineDraft(), False, True, 0
        least = await self._least(place)
        while rows := await self._rows(place, after, _ROWS):
            is_whole = is_whole and rows[0].position == after + 1 and rows[-1].position == after + len(rows)
            entries, damage = _opened(store, uid, rows)
            draft.add(entries)
            is_damaged = is_damaged or bool(damage)
            after = rows[-1].position
            if len(rows) < _ROWS:
                break
        damaged: list[int] = []
        if is_damaged or not is_whole or after < least:
            damaged = [position for position, _ in (await read_readable(store, uid, place.line)).damaged]
        lines = await self._lines(place.row, after)
        attempts = await store.rows(AttemptRow, "read_attempts", uid=uid)
        return draft.finish(place.line, lines, attempts, await self._standing(place), damaged)

    async def page(
        self,
        task: str | Task,
        line: int | None = None,
        *,
        after: int = 0,
        limit: int = 200,
        kind: str | None = None,
        state: CallState | None = None,
        text: str | None = None,
    ) -> Page[JournalCall]:
        """Calls in the order of their positions, each on one line. The page's cursor is the `after` of the next one.

        `kind` is a sort of call (step, effect, …), `state` selects calls by state, and `text` must be part of their
        line. With one of these a page can be short and still have a cursor: it looks at 20,000 entries at most.

        Raises:
            NotFound: the task or the line does not exist.
            InvalidInput: the limit or another argument is not valid.
        """
        _check_page(after, limit, state)
        place = await self._place(task, line)
        standing, reading = await self._standing(place), _Reading(self._store, place, await self._least(place))
        wanted = _Filter(kind, state, text.casefold() if text else None)
        size = _ROWS if wanted.is_narrow else max(min(2 * limit, _ROWS), 50)
        found: list[JournalCall] = []
        looked = 0
        while looked < _MOST_LOOKED:
            rows = await self._rows(place, after, size)
            is_last = len(rows) < size
            calls = await reading.calls(rows, after, is_last=is_last)
            for call in [*calls, *(standing.waiting() if is_last else ())]:
                shown = shown_as(call, standing)
                if wanted.takes(shown):
                    found.append(shown)
            if len(found) > limit or (len(found) == limit and not is_last):
                return _cut(found, limit)
            if is_last:
                return Page(found, None)
            after, looked = rows[-1].position, looked + len(rows)
        return Page(found, str(after))

    async def entry(self, task: str | Task, line: int | None, position: int) -> JournalCall:
        """The call that has an entry at this position, whole: arguments, value, error, tries, key and marks.

        Raises:
            NotFound: there is no such task, line or entry.
        """
        place = await self._place(task, line)
        store, uid = self._store, place.row.uid
        found = await store.query("read_entry", uid=uid, line=place.line, position=_whole("position", position))
        if not found:
            listed = f"`perdure journal {quote(place.row.id)}` lists the calls"
            raise NotFound("entry", str(position), store.place, do=listed)
        try:
            asked = open_entry(found[0][0], uid, position, store.ring)
        except RecordDamaged as error:
            return unreadable(position, error.problem)
        path = asked.path if asked.op not in MARKS or asked.op == "try" else scope_of(asked.path)
        entries = await _Reading(store, place, 0).entries_of(path)
        calls = calls_in(one for one in entries if one[1].path in (path, f"{path}|begun"))
        call = next((call for call in calls if call.position >= position), None)
        if call is None:  # a mark without a call
            call = EntriesOf(path or asked.path, position, asked)
        return shown_whole(call, await self._standing(place), entries)

    async def lines(self, task: str | Task, *, limit: int = 1000) -> Sequence[JournalLine]:
        """The newest lines of a task's journal, the oldest of them first; empty for a task of no durable function.

        Raises:
            NotFound: there is no such task.
        """
        if not 1 <= limit <= 10_000:
            raise InvalidInput(f"limit is {limit}; it lies between 1 and 10,000")
        row = (await self._place(task, None)).row
        found = await self._store.query("read_lines", uid=row.uid, limit=limit)
        return [_line(self._store, row.uid, *one) for one in reversed(found)]

    async def tail(self, task: str | Task, line: int | None = None, after: int = 0) -> AsyncIterator[JournalCall]:
        """Each call when its entries are committed, by whichever process, until the task ends or begins a new line.

        A call with several entries is yielded several times, in its state at that moment. To continue after an
        interruption, pass the last position.

        Raises:
            NotFound: there is no such task, or no such line.
        """
        place = await self._place(task, line)
        after = _whole("after", after)
        while True:
            row = await current_row(self._store, place.row.id, place.row.uid)
            news = await self._news(_Place(row, place.line), after, _ROWS)
            for call in news.calls:
                yield call
            after = news.upto
            if news.more:
                continue
            if row.status in FINISHED or row.line != place.line:
                return
            await Nap(_LOOK_SECONDS)

    async def since(self, task: str | Task, line: int, after: int, *, limit: int = 500) -> JournalNews:
        """The calls whose entries follow a position of a line. A caller that passes the `line` and `upto` of each
        answer to the next call gets every entry once, also across rollbacks: after the last entry of a line that has
        ended, the next line follows.

        Raises:
            NotFound: there is no such task, or no such line.
        """
        place = await self._place(task, line)
        found = await self._news(place, _whole("after", after), max(1, min(limit, _ROWS)))
        if not found.more and found.upto == after and line < place.row.line:
            return JournalNews(calls=(), line=line + 1, upto=0, more=True)
        return found

    async def end_of(self, task: str | Task) -> tuple[int, int]:
        """The present line of a task's journal, and the last position in it.

        Raises:
            NotFound: there is no such task.
        """
        row = (await self._place(task, None)).row
        newest = await self._store.row(LineRow, "read_lines", uid=row.uid, limit=1)
        return (row.line, newest.last if newest is not None and newest.line == row.line else 0)

    async def _news(self, place: _Place, after: int, limit: int) -> JournalNews:
        rows = await self._rows(place, after, limit)
        if not rows:
            return JournalNews(calls=(), line=place.line, upto=after, more=False)
        standing = await self._standing(place)
        entries, damaged = _opened(self._store, place.row.uid, rows)
        calls = [shown_as(call, standing) for call in calls_in(entries)]
        calls += [unreadable(position, why) for position, why in damaged]
        calls.sort(key=attrgetter("position"))
        return JournalNews(calls=calls, line=place.line, upto=rows[-1].position, more=len(rows) == limit)

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    async def _place(self, task: str | Task, line: int | None) -> _Place:
        store = self._store
        if isinstance(task, Task):
            row: TaskRow | None = await current_row(store, task.id, task.uid)
        else:
            row = await find_row(store, check_id(task))
        if row is None:
            raise NotFound("task", str(task), store.place)
        if line is None:
            return _Place(row, row.line)
        if not 1 <= _whole("line", line) <= row.line:
            raise NotFound("line", str(line), store.place, do=f"the journal of {row.id!r} has {row.line:,}")
        return _Place(row, line)

    def _rows(self, place: _Place, after: int, limit: int) -> Awaitable[list[JournalRow]]:
        asked = {"uid": place.row.uid, "line": place.line, "after": after, "limit": limit}
        return self._store.rows(JournalRow, "read_journal_page", **asked)

    async def _least(self, place: _Place) -> int:
        """A lower bound of the line's number of entries. Ask before reading its entries.

        Raises:
            RecordDamaged: the journal ends on another line than the task's row says.
        """
        return await least_length(self._store, place.row.uid, place.line) if place.is_current else 0

    async def _lines(self, row: TaskRow, last: int) -> list[JournalLine]:
        """The lines for an outline. Most tasks have one, and need not be asked for it."""
        if row.line == 1:
            return [JournalLine(line=1, first=min(last, 1), last=last, why="begun")]
        found = await self._store.query("read_lines", uid=row.uid, limit=1000)
        return [_line(self._store, row.uid, *one) for one in reversed(found)]

    async def _standing(self, place: _Place) -> Standing:
        store, row = self._store, place.row
        found = Standing()
        if place.is_current and row.status not in FINISHED:
            holder = await read_holder(store, row.uid)
            is_dead = holder.process is None or is_proven_dead(holder.process, same_machine=store.engine.is_local)
            found.at_work = -1 if holder.is_free or is_dead else holder.epoch
        left = f"~{place.line}~"
        for one in await store.rows(PauseRow, "read_pauses", uid=row.uid):
            is_of_line = not one.path.startswith("~") if place.is_current else one.path.startswith(left)
            if not is_of_line:
                continue
            path = one.path.removeprefix(left)
            if one.topic == _EFFECT and one.answer is None:
                found.doubt(path)
            elif one.topic == _EFFECT:
                found.tell(path, _answer(store, row.uid, one.answer))
            elif one.answer is None and row.status not in FINISHED:
                found.ask(path, one.asked_at)
        return found


class _Reading:
    """One line of a journal while it is read for calls."""

    def __init__(self, store: Store, place: _Place, least: int) -> None:
        self._store, self._uid, self._line, self._least = store, place.row.uid, place.line, least
        self._damaged: list[tuple[int, str]] | None = None

    async def calls(self, rows: Sequence[JournalRow], after: int, *, is_last: bool) -> list[EntriesOf | Damage]:
        """The calls of these rows, which follow `after`."""
        entries, damage = _opened(self._store, self._uid, rows)
        found: list[EntriesOf | Damage] = []
        calls = calls_in(entries)
        unended = {call.path for call in calls if not call.has_ended}
        if unended and not is_last:
            unended -= await self._end_later(unended, rows[-1].position)
        await self._look_back([call for call in calls if call.is_effect and call.intent is None], after)
        found += [call for call in calls if call.has_ended or call.path in unended]
        last = rows[-1].position if rows else after
        is_whole = [position for position, _ in rows] == list(range(after + 1, after + 1 + len(rows)))
        if damage or not is_whole or (is_last and last < self._least):
            found += [
                one for one in await self._all_damage() if after < one.position and (is_last or one.position <= last)
            ]
        return sorted(found, key=attrgetter("position"))

    async def _all_damage(self) -> list[Damage]:
        if self._damaged is None:
            self._damaged = (await read_readable(self._store, self._uid, self._line)).damaged
        return [Damage(position, why) for position, why in self._damaged]

    async def _end_later(self, paths: set[str], after: int) -> set[str]:
        """The calls among these whose end is further on in the line."""
        found: set[str] = set()
        async for _, entry in self._with(paths, after):
            if entry.kind != "intent" and entry.op not in MARKS and entry.path in paths:
                found.add(entry.path)
                if len(found) == len(paths):
                    break
        return found

    async def _look_back(self, calls: Sequence[EntriesOf], after: int) -> None:
        """Give effects their intents, which say how they were called and are mostly close before them."""
        missing = {call.path: call for call in calls if arguments_in(call.last.digest) is None}
        if not missing or after <= 0:
            return
        async for _, entry in self._with(missing.keys(), max(after - _ROWS, 0), after):
            if entry.kind == "intent" and entry.path in missing and missing[entry.path].intent is None:
                missing[entry.path].intent = entry

    async def entries_of(self, path: str) -> list[tuple[int, Entry]]:
        """The entries of one call, and of what was noted and made inside it."""
        inside = f"{path}|"
        return [one async for one in self._with({path}, 0) if one[1].path == path or one[1].path.startswith(inside)]

    async def _with(
        self, paths: Collection[str], after: int, upto: int | None = None
    ) -> AsyncIterator[tuple[int, Entry]]:
        """The entries that may contain one of these paths. Most others are excluded without decoding."""
        texts = [path.encode() for path in paths] if len(paths) <= _MOST_SOUGHT else [b""]
        may_hold = envelope.may_hold
        while True:
            asked = {"uid": self._uid, "line": self._line, "after": after, "limit": _ROWS}
            rows = await self._store.rows(JournalRow, "read_journal_page", **asked)
            likely = [row for row in rows if any(may_hold(row.entry, text) for text in texts)]
            for position, entry in _opened(self._store, self._uid, likely)[0]:
                if upto is not None and position > upto:
                    return
                yield position, entry
            if len(rows) < _ROWS:
                return
            after = rows[-1].position


class _Filter(NamedTuple):
    kind: str | None
    state: str | None
    text: str | None

    @property
    def is_narrow(self) -> bool:
        return any(one is not None for one in self)

    def takes(self, call: JournalCall) -> bool:
        if self.kind is not None and call.op.partition(".")[0] != self.kind:
            return False
        if self.state is not None and call.state != self.state:
            return False
        if self.text is None:
            return True
        error = f"{call.error.type}: {call.error.message}" if call.error is not None else ""
        return any(self.text in part.casefold() for part in (call.path, call.call, call.returned, error))


def _opened(
    store: Store, uid: str, rows: Sequence[JournalRow]
) -> tuple[list[tuple[int, Entry]], list[tuple[int, str]]]:
    """The entries in these rows, and the positions of those that cannot be read."""
    ring = store.ring
    try:
        return [  # open_entry, without a call for each
            (position, decode_entry(envelope.unseal(sealed, kind="entry", bound_to=uid, ring=ring, place=position)))
            for position, sealed in rows
        ], []
    except (RecordDamaged, DecodeError):
        found = readable_of(store, uid, rows)
        there = {position for position, _ in rows}
        return found.entries, [one for one in found.damaged if one[0] in there]


def _answer(store: Store, uid: str, sealed: bytes | None) -> Any:
    try:
        return None if sealed is None else store.unseal(uid, "answer", sealed)
    except RecordDamaged:
        return None


def _line(store: Store, uid: str, line: int, first: int, last: int, sealed: bytes) -> JournalLine:
    why = "begun" if line == 1 else ""
    if line > 1:
        try:
            entry = open_entry(sealed, uid, first, store.ring)
            # `carry_over` begins a line with the cost of earlier ones; a rollback copies entries, and names their
            # lines.
            why = "carry_over" if entry.path == CARRIED and "lines" not in (entry.note or {}) else "rollback"
        except RecordDamaged:
            pass
    return JournalLine(line=line, first=first, last=last, why=why)


def _cut(found: list[JournalCall], limit: int) -> Page[JournalCall]:
    """The first of these, in whole positions: pauses have none, and are on the last page together."""
    items = found[:limit]
    if not items[-1].position:
        return Page(found, None)
    return Page(items, str(items[-1].position))


def _check_page(after: int, limit: int, state: str | None) -> None:
    _whole("after", after)
    if not 1 <= _whole("limit", limit) <= 1000:
        raise InvalidInput(f"limit is {limit}; it lies between 1 and 1000")
    if state is not None and state not in get_args(CallState):
        raise InvalidInput(f"{state!r} is not a state of a call", do=f"choose from {', '.join(get_args(CallState))}")


def _whole(name: str, number: object) -> int:
    if type(number) is not int or not 0 <= number < 1 << 63:
        raise InvalidInput(f"{name} is {number!r}; it is a whole number, 0 or more")
    return number
