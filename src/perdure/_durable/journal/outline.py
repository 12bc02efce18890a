"""A journal as columns, for a timeline: when each call began, how long it took, and how it ended. Pure.

Names, ops and scopes are tables, and the columns hold places in them. Of a journal with more calls than a timeline can
use, the outline has a count for each stretch of time, and columns only for the calls that are not simply done.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from msgspec import Struct

from perdure._durable.journal.journal_calls import LETTERS, EntriesOf, Gathering, Standing, depth_of
from perdure._ground.secrets.known_secrets import redact
from perdure._model import Entry, name_of
from perdure._store import AttemptRow

MOST_CALLS = 50_000
_BINS, _MOST_ODD, _MOST_MARKS = 1000, 5000, 1000
# Marks that say something about the whole task.
_TOLD = frozenset({"patched", "again", "lost", "compensate"})


class JournalLine(Struct, frozen=True, kw_only=True):
    """A line of a journal: a rollback and `carry_over` each begin a new one, and the old one stays."""

    line: int
    first: int  # positions
    last: int
    why: str  # begun, rollback, carry_over; "" if that cannot be read


class OutlineAttempt(Struct, frozen=True, kw_only=True):
    """One attempt, in milliseconds since the outline's beginning."""

    number: int
    epoch: int
    start: int
    end: int | None
    ended: str


class OutlineMark(Struct, frozen=True, kw_only=True):
    """Something that happened beside the calls; `at` in milliseconds since the outline's beginning."""

    at: int
    kind: str
    text: str


class Bins(Struct, frozen=True, kw_only=True):
    """The number of calls that began in each bin of `every` milliseconds."""

    every: int
    count: Sequence[int]


class Outline(Struct, frozen=True, kw_only=True):
    """One line of a journal as columns: the nth item of each column is about the nth call, in the order of positions.

    The last ones can have position 0: they wait for an answer and have no entry yet.
    """

    line: int
    lines: Sequence[JournalLine]
    begun: int  # milliseconds since 1970
    upto: int  # the last position that was read
    etag: str  # differs when anything of it does
    names: Sequence[str]
    ops: Sequence[str]
    scopes: Sequence[str]
    position: Sequence[int]
    start: Sequence[int]  # milliseconds after the start of the call before; the first, after `begun`
    took: Sequence[int]
    name: Sequence[int]
    op: Sequence[int]
    scope: Sequence[int]
    depth: Sequence[int]
    state: str  # d done, r raised, c cut, o open, u uncertain, p pausing, x damaged
    tries: Sequence[tuple[int, Sequence[int]]]  # index of a call, and when its further tries began, since `begun`
    attempts: Sequence[OutlineAttempt]
    marks: Sequence[OutlineMark]
    binned: Bins | None = None  # if there are more than 50,000 calls


class _Table:
    """Texts, each once."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def place(self, text: str) -> int:
        found = self.places.get(text)
        if found is None:
            found = self.places[text] = len(self.places)
        return found

    def texts(self) -> list[str]:
        return [redact(text) for text in self.places]


class OutlineDraft:
    """An outline that is being filled, entry by entry."""

    def __init__(self) -> None:
        self._gathering = Gathering()
        self._ended: list[EntriesOf] = []
        self._marks: list[tuple[int, str, str]] = []
        self._upto = 0

    def add(self, entries: Iterable[tuple[int, Entry]]) -> None:
        add, keep = self._gathering.add, self._ended.append
        position = self._upto
        for position, entry in entries:
            ended = add(position, entry)
            if ended is not None:
                keep(ended)
            elif entry.op in _TOLD and len(self._marks) < _MOST_MARKS:
                self._marks.append((entry.at, entry.op, redact(name_of(entry.path) or entry.path.removeprefix("~"))))
        self._upto = position

    def finish(
        self,
        line: int,
        lines: Sequence[JournalLine],
        attempts: Sequence[AttemptRow],
        standing: Standing,
        damaged: Sequence[int],
    ) -> Outline:
        """The outline. `damaged` are positions that cannot be read."""
        unended = self._gathering.open
        calls = [*self._ended, *unended.values(), *(_unreadable(position) for position in damaged)]
        if unended or damaged:
            calls.sort(key=lambda call: call.position)
        calls += standing.waiting()
        states = "".join(["x" if call.last is _NOTHING else LETTERS[standing.state_of(call)] for call in calls])
        starts = _starts(calls, attempts)
        begun = min([*starts[:1], *(row.started_at for row in attempts[:1])], default=0)
        begun = min([begun, *starts]) if starts else begun
        upto = max([self._upto, *damaged], default=0)
        binned = None
        if len(calls) > MOST_CALLS:
            binned = _bins([start - begun for start in starts])
            odd = [at for at, state in enumerate(states) if state != "d"][-_MOST_ODD:]
            calls, starts = [calls[at] for at in odd], [starts[at] for at in odd]
            states = "".join(states[at] for at in odd)
        names, ops, scopes = _Table(), _Table(), _Table()
        columns: list[tuple[int, int, int, int]] = []
        for call in calls:
            path = call.path
            scope, _, rest = path.rpartition("|")
            columns.append(
                (
                    names.place(rest.rpartition("#")[0]),
                    ops.place(call.op),
                    scopes.place(scope),
                    depth_of(path) if scope else 0,
                )
            )
        deltas, before = [], begun
        for start in starts:
            deltas.append(start - before)
            before = start
        return Outline(
            line=line,
            lines=lines,
            begun=begun,
            upto=upto,
            etag=_etag(line, upto, states, attempts, damaged),
            names=names.texts(),
            ops=ops.texts(),
            scopes=scopes.texts(),
            position=[call.position for call in calls],
            start=deltas,
            took=[_took(call, start) for call, start in zip(calls, starts, strict=True)],
            name=[one[0] for one in columns],
            op=[one[1] for one in columns],
            scope=[one[2] for one in columns],
            depth=[one[3] for one in columns],
            state=states,
            tries=_tries(calls, begun),
            attempts=[_attempt(number, row, begun) for number, row in enumerate(attempts, 1)],
            marks=[OutlineMark(at=at - begun if at else 0, kind=kind, text=text) for at, kind, text in self._marks],
            binned=binned,
        )


_NOTHING = Entry("result", "", "", b"")


def _unreadable(position: int) -> EntriesOf:
    return EntriesOf("", position, _NOTHING)


def start_of(call: EntriesOf) -> int:
    """When the call began, in milliseconds since 1970; 0 if its entries do not say so."""
    if call.intent is not None and call.intent.at:
        return call.intent.at
    last = call.last
    if last.at:
        return last.at - last.took_ms
    return call.begun.at if call.begun is not None else 0


def _starts(calls: Sequence[EntriesOf], attempts: Sequence[AttemptRow]) -> list[int]:
    """The start of each call; without one of its own, that of the call before it."""
    found, before = [], attempts[0].started_at if attempts else 0
    for call in calls:
        before = start_of(call) or before
        found.append(before)
    if found and not found[0]:
        first = next(filter(None, found), 0)
        found = [start or first for start in found]
    return found


def _took(call: EntriesOf, start: int) -> int:
    if not call.has_ended or not call.last.at:
        return 0
    return max(call.last.at - start, 0) if call.intent is not None else call.last.took_ms


def _tries(calls: Sequence[EntriesOf], begun: int) -> list[tuple[int, list[int]]]:
    tried = ((at, call.tries()) for at, call in enumerate(calls) if call.intent is not None)
    return [(at, [max(moment - begun, 0) for moment in moments]) for at, moments in tried if moments]


def _attempt(number: int, row: AttemptRow, begun: int) -> OutlineAttempt:
    end = None if row.ended_at is None else row.ended_at - begun
    return OutlineAttempt(number=number, epoch=row.number, start=row.started_at - begun, end=end, ended=row.ended)


def _bins(starts: Sequence[int]) -> Bins:
    every = max(starts) // _BINS + 1
    count = [0] * (max(starts) // every + 1)
    for start in starts:
        count[start // every] += 1
    return Bins(every=every, count=count)


def _etag(line: int, upto: int, states: str, attempts: Sequence[AttemptRow], damaged: Sequence[int]) -> str:
    ended = [(row.number, row.ended_at) for row in attempts]
    said = f"{line} {upto} {ended} {list(damaged)} {states}"
    return hashlib.blake2b(said.encode(), digest_size=12).hexdigest()
