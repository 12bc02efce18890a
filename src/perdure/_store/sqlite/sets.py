"""Carry out many starts, entries and ends by few statements.

One by one, each costs up to six statements, most of them for looking the same things up again, and with each the
interpreter's lock goes to and fro. Inside a transaction nobody else changes anything: so it is looked once whether
all attempts have their leases, and the rows of many tasks go in together. When one of the writes would be refused,
nothing is done here, and they are run one by one.

Writes of different tasks know nothing of each other, so all starts, then all entries, then all ends is an order as
good as the one they were given in.

What has to be asked of each write is asked by `map`, without a line of Python for each: the fewer there are, the less
an event loop is held up by its own writes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from operator import attrgetter, getitem, itemgetter
from pathlib import Path
from typing import Any

import apsw

from perdure._model import GENESIS, chain
from perdure._store.contract import Params, Row
from perdure._store.sql import Queries
from perdure._store.sqlite import wide
from perdure._store.sqlite.plan import Plan
from perdure._store.write import Write

START, APPEND, END = "start_function", "append_entry", "complete_function"
_ANSWERS = {START: "uid", APPEND: "position", END: "uid"}
# From this many on it is worth it; and never more at once, as the transaction's time is looked at in between.
FEW, _MOST = 4, 512

_STATEMENTS = Queries(Path(__file__).parent / "statements")
_verb_of, _params_of = attrgetter("verb"), attrgetter("params")
_uid_of, _fence_of = itemgetter("uid"), itemgetter("uid", "epoch", "worker")


def stretch(writes: Sequence[Write], place: int) -> Sequence[Write]:
    """The writes of these verbs that follow one another from here."""
    found = writes[place : place + _MOST]
    verbs = list(map(_verb_of, found))
    if _ANSWERS.keys() >= set(verbs):
        return found
    return found[: next(number for number, verb in enumerate(verbs) if verb not in _ANSWERS)]


def are_few_entries(writes: Sequence[Write]) -> bool:
    """Whether they are what a chain of effects waits for, again and again."""
    return len(writes) < FEW and all(write.verb == APPEND for write in writes)


def append_few(cursor: apsw.Cursor, writes: Sequence[Write]) -> list[Row | None] | None:
    """Append them by one statement that is its own transaction; None, with nothing done, when one may be refused."""
    text, values_of = wide.widened(_STATEMENTS["append_surely"][0], len(writes))
    values: list[object] = []
    for write in writes:
        values += values_of(write.params)
    try:
        cursor.execute(text, values)
    except apsw.ConstraintError:
        return None
    return [(write.params["position"],) for write in writes]


def carry_out(cursor: apsw.Cursor, writes: Sequence[Write], starting: Plan) -> list[Row] | None:
    """Do them all, and give their answers; None, with nothing done, when one of them may be refused.

    Of nothing but entries, which go in as they were given, the first may be done and the others not.
    """
    verbs, given = list(map(_verb_of, writes)), list(map(_params_of, writes))
    if verbs.count(APPEND) == len(verbs):
        return _append(cursor, given)
    if not _may_go_by_verb(verbs, given):
        return None
    by_verb: dict[str, list[Params]] = {START: [], APPEND: [], END: []}
    for verb, params in zip(verbs, given, strict=True):
        by_verb[verb].append(params)
    entries, ends = by_verb[APPEND], by_verb[END]
    if not _are_held(cursor, [*entries, *ends]) or (links := _links(cursor, ends)) is None:
        return None
    cursor.execute("SAVEPOINT together")
    try:
        _start(cursor, by_verb[START], starting)
        wide.run(cursor, _STATEMENTS["append_entries"][0], entries)
        _end(cursor, ends, links)
    except apsw.ConstraintError:  # an id that is in use, a position that is taken
        cursor.execute("ROLLBACK TO together")
        return None
    finally:
        cursor.execute("RELEASE together")
    return list(zip(map(getitem, given, map(_ANSWERS.__getitem__, verbs))))


def _append(cursor: apsw.Cursor, entries: Sequence[Params]) -> list[Row] | None:
    if not _are_held(cursor, entries):
        return None
    done = 0
    for width in wide.widths(len(entries)):
        try:
            wide.run(cursor, _STATEMENTS["append_entries"][0], entries[done : done + width])
        except apsw.ConstraintError:  # a position that is taken; of these rows nothing is in
            break
        done += width
    return [(params["position"],) for params in entries[:done]]


# ── looking ──────────────────────────────────────────────────────────────────────────────────────


def _may_go_by_verb(verbs: Sequence[str], given: Sequence[Params]) -> bool:
    """Whether each start and each end is the last that is written for its task here: nothing may follow it."""
    last = dict(zip(map(_uid_of, given), verbs, strict=True))
    return len(last) - list(last.values()).count(APPEND) == len(verbs) - verbs.count(APPEND)


def _are_held(cursor: apsw.Cursor, written: Sequence[Params]) -> bool:
    """Whether each task is written for by one attempt, the one that has its lease."""
    fences = set(map(_fence_of, written))
    if not fences:
        return True
    return bool(_one(cursor, "count_held", list(fences)) == len(fences))


def _links(cursor: apsw.Cursor, ends: Sequence[Params]) -> list[tuple[int, bytes]] | None:
    """The number and the hash of each task's last event; None when one of the tasks is not at work."""
    if not ends:
        return []
    heads = json.loads(_one(cursor, "read_heads", list(map(_uid_of, ends))))
    if len(heads) < len(ends):
        return None
    return [
        (count + 1, chain(bytes.fromhex(head), params["digest"]))
        for params, (count, head) in zip(ends, heads, strict=True)
    ]


def _one(cursor: apsw.Cursor, name: str, given: Sequence[object]) -> Any:
    """What a statement says of all of these, in one value: each row it gave would need the interpreter's lock."""
    value: Any = cursor.execute(_STATEMENTS[name][0], (json.dumps(given),)).fetchall()[0][0]
    return value


# ── writing ──────────────────────────────────────────────────────────────────────────────────────


def _start(cursor: apsw.Cursor, starts: Sequence[Params], plan: Plan) -> None:
    links = [(chain(GENESIS, params["digest"]),) for params in starts]
    for needed, statement in (("", plan.first), *plan.others) if starts else ():
        rows = [params for params in starts if params[needed] is not None] if needed else starts
        wide.run(cursor, statement, rows, links if ":head" in statement else ())


def _end(cursor: apsw.Cursor, ends: Sequence[Params], links: Sequence[tuple[int, bytes]]) -> None:
    if not ends:
        return
    tasks, leases, attempts, events = _STATEMENTS["complete_functions"]
    uids = (json.dumps(list(map(_uid_of, ends))),)
    wide.run(cursor, tasks, ends, links)
    cursor.execute(leases, uids)
    cursor.execute(attempts, uids)
    wide.run(cursor, events, ends, links)
