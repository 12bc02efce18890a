"""Carry out many starts, entries and ends by few statements.

One by one, each costs up to six statements, most of them for looking the same things up again, and with each the
interpreter's lock goes to and fro. Inside a transaction nobody else changes anything: so it is looked once whether
all attempts have their leases, and the rows of many tasks go in together. When one of the writes would be refused,
nothing is done here, and they are run one by one.

Writes of different tasks know nothing of each other, so all starts, then all entries, then all ends is an order as
good as the one they were given in.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from operator import getitem, itemgetter
from pathlib import Path
from typing import Any

import apsw

from perdure._model import GENESIS, chain
from perdure._store.contract import Params, Row
from perdure._store.sql import Queries
from perdure._store.sqlite.plan import plan_of
from perdure._store.sqlite.wide import ForEach, Wide
from perdure._store.write import Write, params_of, verb_of

START, APPEND, END = "start_function", "append_entry", "complete_function"
_ANSWERS = {START: "uid", APPEND: "position", END: "uid"}
# From this many on it is worth it; and never more at once, as the transaction's time is looked at in between.
FEW, _MOST = 4, 1000
# A savepoint is dear: of each page it keeps what was there before.
_ANEW, _BACK = ("ROLLBACK", "BEGIN IMMEDIATE"), ("ROLLBACK TO together", "RELEASE together")

_HERE = Path(__file__).parent
_STATEMENTS = Queries(_HERE / "statements")
_LOOK = _STATEMENTS["look"][0]
_ENTRIES, _SURELY = Wide(_STATEMENTS["append_entries"][0]), Wide(_STATEMENTS["append_surely"][0])
_START_PLAN = plan_of(START, Queries(_HERE / "queries")[START])
_STARTS = ForEach("starting", (("", _START_PLAN.first), *_START_PLAN.others), ("head",))
_ENDS = ForEach("ending", [("", one) for one in _STATEMENTS["complete_functions"]], ("number", "head"))
_uid_of, _position_of, _holder_of = itemgetter("uid"), itemgetter("position"), itemgetter("epoch", "worker")

Head = tuple[int, str]


def stretch(writes: Sequence[Write], place: int) -> Sequence[Write]:
    """The writes of these verbs that follow one another from here."""
    found = writes[place : place + _MOST]
    verbs = list(map(verb_of, found))
    if _ANSWERS.keys() >= set(verbs):
        return found
    return found[: next(number for number, verb in enumerate(verbs) if verb not in _ANSWERS)]


def are_few_entries(writes: Sequence[Write]) -> bool:
    """Whether they are what a chain of effects waits for, again and again."""
    return len(writes) < FEW and set(map(verb_of, writes)) == {APPEND}


def append_few(cursor: apsw.Cursor, writes: Sequence[Write]) -> list[Row | None] | None:
    """Append them by one statement that is its own transaction; None, with nothing done, when one may be refused."""
    entries = list(map(params_of, writes))
    try:
        _SURELY.run(cursor, entries)
    except apsw.ConstraintError:
        return None
    return list(zip(map(_position_of, entries)))


def prepare(connection: apsw.Connection) -> None:
    """Have a connection that writes know what many starts and many ends are."""
    _STARTS.prepare(connection)
    _ENDS.prepare(connection)


def carry_out(cursor: apsw.Cursor, writes: Sequence[Write], *, are_first: bool) -> list[Row] | None:
    """Do them all, and give their answers; None, with nothing done, when one of them may be refused.

    Of nothing but entries, which go in as they were given, the first may be done and the others not. Without anything
    before them in their transaction, it is the transaction that is begun anew when they cannot stay.
    """
    verbs, given = list(map(verb_of, writes)), list(map(params_of, writes))
    if verbs.count(APPEND) == len(verbs):
        return _append(cursor, given)
    if not _may_go_by_verb(verbs, given):
        return None
    by_verb: dict[str, list[Params]] = {START: [], APPEND: [], END: []}
    for verb, params in zip(verbs, given, strict=True):
        by_verb[verb].append(params)
    starts, entries, ends = by_verb[START], by_verb[APPEND], by_verb[END]
    heads = _look(cursor, [*entries, *ends], ends)
    if heads is None:
        return None
    if not are_first:
        cursor.execute("SAVEPOINT together")
    try:
        _STARTS.rows.run(cursor, starts, [(chain(GENESIS, params["digest"]),) for params in starts])
        _ENTRIES.run(cursor, entries)
        _ENDS.rows.run(cursor, ends, list(map(_link, ends, heads)))
    except apsw.ConstraintError:  # an id that is in use, a position that is taken
        for undo in _ANEW if are_first else _BACK:
            cursor.execute(undo)
        return None
    if not are_first:
        cursor.execute("RELEASE together")
    return list(zip(map(getitem, given, map(_ANSWERS.__getitem__, verbs))))


def _append(cursor: apsw.Cursor, entries: Sequence[Params]) -> list[Row] | None:
    if _look(cursor, entries, ()) is None:
        return None
    done = 0
    for piece in _ENTRIES.pieces(len(entries)):
        try:
            _ENTRIES.run(cursor, entries[piece])
        except apsw.ConstraintError:  # a position that is taken; of these rows nothing is in
            break
        done = piece.stop
    return list(zip(map(_position_of, entries[:done])))


# ── looking ──────────────────────────────────────────────────────────────────────────────────────


def _may_go_by_verb(verbs: Sequence[str], given: Sequence[Params]) -> bool:
    """Whether each start and each end is the last that is written for its task here: nothing may follow it."""
    last = dict(zip(map(_uid_of, given), verbs, strict=True))
    return len(last) - list(last.values()).count(APPEND) == len(verbs) - verbs.count(APPEND)


def _look(cursor: apsw.Cursor, written: Sequence[Params], ends: Sequence[Params]) -> list[Head] | None:
    """Of each task that is to end, how many events it has and the newest one's hash; None when one of them is not
    at work, or when what is written for a task is not all by the attempt that has its lease.

    It comes as one row: for each row the interpreter's lock would go to and fro."""
    heads: list[Head] = []
    holders = set(map(_holder_of, written))  # mostly one: the epoch is 1, the worker this process
    for number, holder in enumerate(holders):
        theirs = written if len(holders) == 1 else [params for params in written if _holder_of(params) == holder]
        uids = set(map(_uid_of, theirs))
        ended = [] if number else list(map(_uid_of, ends))
        row: Any = cursor.execute(_LOOK, (json.dumps(list(uids)), *holder, json.dumps(ended))).fetchall()[0]
        held, found = row[0], json.loads(row[1])
        if held < len(uids) or len(found) < len(ended):
            return None
        heads += found
    return heads


def _link(end: Params, head: Head) -> tuple[int, bytes]:
    """The number and the hash of a task's last event."""
    count, before = head
    return count + 1, chain(bytes.fromhex(before), end["digest"])
