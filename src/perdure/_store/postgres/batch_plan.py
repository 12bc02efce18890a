"""The statements of this engine by name; which of them a batch is sent as, and what their answers mean. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import msgspec
import psycopg

from perdure._store.postgres import arrays, batch
from perdure._store.postgres.wire import Asked, Statement
from perdure._store.rows import Params, Row
from perdure._store.sql import Queries
from perdure._store.write import Write, params_of

_HERE = Path(__file__).parent
_QUERIES, _STATEMENTS = Queries(_HERE / "queries"), Queries(_HERE / "statements")

# A client that vanished in the middle of a transaction is ended by the server after `idle`; others wait
# for its rows longer than that, so that they outlast it. One that stands still in the middle of sending a batch is not
# idle for the server, which waits for the rest and counts no other time: `transaction` is for that, where it is known
# (from PostgreSQL 17 on), and longer than any batch takes.
SETTINGS = {"idle_ms": "5000", "lock_ms": "10000", "statement_ms": "60000", "transaction_ms": "30000"}
_BEGIN = Statement("BEGIN", "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
BEGIN_LOOK: Asked = Statement("BEGIN_LOOK", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"), {}
# By name: a test, or an administrator, can see it go by.
COMMIT: Asked = Statement("COMMIT", "COMMIT"), {}
# The last line of most verbs.
_ANSWER = re.compile(r"SELECT ([a-z_, ]+) FROM ([a-z_]+)")

REFUSALS = (psycopg.errors.DivisionByZero, psycopg.errors.NotNullViolation, psycopg.errors.UniqueViolation)

_uid_of, _position_of = itemgetter("uid"), itemgetter("position")
# The values in which two tasks that begin with one call of a function differ.
_OWN = "uid", "id", "at", "digest", "arguments"
_own_of = itemgetter(*_OWN)
_row_of = itemgetter("uid", "line", "position", "entry", "epoch", "worker")

Answers = list[Row | None]
Rows = list[Row]


class Part(NamedTuple):
    """Neighbours of one verb: the statements for them, and how to read their answers."""

    asked: list[Asked]
    read: Callable[[Sequence[Rows]], Answers]


@cache
def statement(name: str) -> Statement:
    return Statement(f"perdure_{name}", _STATEMENTS[name][0])


@cache
def query(name: str) -> Statement:
    """A verb, or what reads."""
    return Statement(name, _QUERIES[name][0])


@cache
def _noting_verb(name: str) -> Statement | None:
    """The verb, with its answer noted in the row that has the batch's number; None for one of another form."""
    head, _, last = _QUERIES[name][0].rpartition("\n")
    form = _ANSWER.fullmatch(last)
    if form is None or not head.startswith("WITH "):
        return None
    # Of our own files' text alone.
    noted = f"""{head},
noted AS (
  UPDATE perdure.committers SET answer = (SELECT json_build_array({form[1]})::text FROM {form[2]})
  WHERE id = %(committer)s::text
)
{last}"""  # noqa: S608
    return Statement(f"{name}_noted", noted)


def opening(which: Params, locks: batch.Locks) -> list[Asked]:
    """Begin the transaction, say which batch it is, and lock its rows."""
    asked: list[Asked] = [(_BEGIN, {}), (statement("begin_batch"), {**which, **SETTINGS})]
    if locks.is_one_task:
        name = "lock_one" if locks.changes_leases else "share_one"
        asked.append((statement(name), {"id": locks.tasks[0]}))
    elif locks.are_needed:
        lock_leases = "lock_leases" if locks.changes_leases else "share_leases"
        lock_workers = "lock_workers" if locks.changes_workers else "share_workers"
        for name, ids in (("lock_tasks", locks.tasks), (lock_leases, locks.leases), (lock_workers, locks.workers)):
            if ids:
                asked.append((statement(name), {"ids": arrays.texts(ids)}))
    return asked


def parts(writes: Sequence[Write]) -> list[Part]:
    return [_part(run) for run in batch.runs(writes)]


def _part(run: Sequence[Write]) -> Part:
    if batch.is_appended_at_once(run):
        return Part([(statement("append_entries"), _columns(run))], lambda rows: _which_are_in(run, rows[0]))
    if batch.is_done_at_once(run):
        given = list(map(params_of, run))
        document = {"groups": _json(_groups(given))} if run[0].verb == "start_function" else {"rows": _json(given)}
        asked = (statement(batch.SETS[run[0].verb]), document)
        return Part([asked], lambda rows: _which_are_done(run, rows[0]))
    verb = query(run[0].verb)
    return Part([(verb, write.params) for write in run], lambda rows: [answer_in(found) for found in rows])


def _json(document: object) -> str:
    return msgspec.json.encode(document).decode()


def _groups(starts: Sequence[Params]) -> list[dict[str, object]]:
    """Neighbours with their common values, as start_functions takes them; their order stays."""
    common = [name for name in starts[0] if name not in _OWN]
    return [
        {**dict(zip(common, shared, strict=True)), "rows": [dict(zip(_OWN, _own_of(row), strict=True)) for row in rows]}
        for shared, rows in groupby(starts, itemgetter(*common))
    ]


def is_noted(write: Write) -> bool:
    """True if it can be sent together with its COMMIT, as the only write of a batch."""
    return _noting_verb(write.verb) is not None


def alone(write: Write, committer: str) -> Asked:
    """The only write of a batch, as it is sent together with its COMMIT."""
    verb = _noting_verb(write.verb)
    assert verb is not None
    return verb, {**write.params, "committer": committer}


def answer_in(rows: Rows) -> Row | None:
    return rows[0] if rows else None


def noted_answer(text: str | None) -> Row | None:
    """The noted answer of a write."""
    return tuple(msgspec.json.decode(text)) if text is not None else None


def all_entries(writes: Sequence[Write]) -> list[Asked]:
    """All of them, or one of `REFUSALS`."""
    if batch.are_few(writes):
        return [(statement("append_surely"), write.params) for write in writes]
    return [(statement("append_all"), _columns(writes))]


def _columns(run: Sequence[Write]) -> Params:
    """Entries as append_entries takes them: column by column."""
    uids, lines, places, entries, epochs, workers = zip(*map(_row_of, map(params_of, run)), strict=True)
    return {
        "uid": arrays.texts(uids),
        "line": arrays.wholes(lines),
        "position": arrays.wholes(places),
        "entry": arrays.payloads(entries),
        "epoch": arrays.wholes(epochs),
        "worker": arrays.texts(workers),
    }


def positions(entries: Sequence[Write]) -> Answers:
    """Their answers if all of them were committed."""
    return list(zip(map(_position_of, map(params_of, entries))))


def _which_are_in(run: Sequence[Write], rows: Rows) -> Answers:
    if len(rows) == len(run):
        return positions(run)
    done = set(rows)
    places = map(batch.place_of_entry, map(params_of, run))
    return [(place[2],) if place in done else None for place in places]


def _which_are_done(run: Sequence[Write], rows: Rows) -> Answers:
    done = set(rows)
    uids = zip(map(_uid_of, map(params_of, run)))
    return list(uids) if len(rows) == len(run) else [uid if uid in done else None for uid in uids]
