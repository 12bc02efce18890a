"""Carry out many starts, claims, entries and ends by few statements.

One by one, each costs up to six statements, and with each the interpreter's lock goes to and fro. Here one statement
does all starts, one all claims, one all entries and one all ends. Each has its conditions inside, and is an error when
one of its rows would be refused: then nothing of it is in, and what is left is run one by one. Of claims some are
refused as a matter of course, where several workers look for tasks: they are looked up first, in the same transaction,
and those that will be refused are left out.

Writes of different tasks know nothing of each other, so all starts, then all claims, then all entries, then all ends is
an order as good as the one they were given in.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from operator import getitem, itemgetter
from pathlib import Path
from typing import Any

import apsw

from perdure._ground import crash_points as crash
from perdure._model import GENESIS, chain
from perdure._store.rows import Params, Row
from perdure._store.sql import Queries
from perdure._store.sqlite.bulk_insert import BulkStatement, Wide, for_each
from perdure._store.sqlite.verb_plan import plan_of
from perdure._store.write import Write, params_of, verb_of

START, CLAIM, APPEND, END = "start_function", "claim_free", "append_entry", "complete_function"
_ANSWERS = {START: "uid", CLAIM: "uid", APPEND: "position", END: "uid"}
# Never more at once, as the transaction's time is looked at in between.
_MOST = 1000
_MOST_HEADS = 10_000

_HERE = Path(__file__).parent
_STATEMENTS = Queries(_HERE / "statements")
_HEADS, _FREE_HEADS = _STATEMENTS["heads"][0], _STATEMENTS["free_heads"][0]
_uid_of, _id_of, _position_of = itemgetter("uid"), itemgetter("id"), itemgetter("position")
_seen_of = itemgetter("uid", "seen_epoch")

Head = tuple[int, bytes]  # how many events a task has, and the newest one's hash


def are_all(writes: Sequence[Write]) -> bool:
    """True if all writes are of these verbs."""
    return _ANSWERS.keys() >= set(map(verb_of, writes))


def are_few_entries(writes: Sequence[Write]) -> bool:
    return len(writes) <= 2 and set(map(verb_of, writes)) == {APPEND}


def have_claims(writes: Sequence[Write]) -> bool:
    """True if they have to be planned inside their transaction."""
    return CLAIM in map(verb_of, writes)


def stretch(writes: Sequence[Write], place: int) -> Sequence[Write]:
    """The writes of these verbs that follow one another from here."""
    found = writes[place : place + _MOST]
    if are_all(found):
        return found
    return found[: next(number for number, write in enumerate(found) if write.verb not in _ANSWERS)]


class Sets:
    """The state the writing connection keeps for it."""

    def __init__(self, connection: apsw.Connection) -> None:
        plan = plan_of(START, Queries(_HERE / "queries")[START])
        starts, ends = (("", plan.first), *plan.others), [("", one) for one in _STATEMENTS["complete_functions"]]
        claims = [("", one) for one in _STATEMENTS["claim_functions"]]
        own, chained = ("uid", "at", "digest"), ("number", "head", "before")
        self._starts = for_each(connection, "starting", starts, (*own, "id", "arguments"), ("head",))
        self._ends = for_each(connection, "ending", ends, (*own, "result"), chained)
        self._claims = for_each(connection, "claiming", claims, (*own, "seen_epoch"), chained)
        self._entries = Wide(_STATEMENTS["append_entries"][0], ("uid", "position", "entry"))
        # Of tasks begun here, as far as known: it is looked again when it is used.
        self._heads: dict[str, Head] = {}

    def forget(self, uid: str | None) -> None:
        """Something else is written for this task."""
        self._heads.pop(uid, None)  # type: ignore[arg-type]

    def append_few(self, cursor: apsw.Cursor, writes: Sequence[Write]) -> list[Row | None] | None:
        """What a chain of effects waits for, again and again: one or two entries, and nothing else. None, with nothing
        done, when one is refused."""
        if crash.armed:
            crash.place("sqlite.before_commit")
        entries = list(map(params_of, writes))
        try:
            cursor.execute(*self._entries.of_few(entries))
        except apsw.ConstraintError:
            return None
        return list(zip(map(_position_of, entries)))

    def statements(self, cursor: apsw.Cursor, writes: Sequence[Write]) -> list[BulkStatement] | None:
        """What carries them out, if they may go by verb: each start, claim and end is the last that is written for its
        task here, and no two begin under one id. Claims that no statement is for will be refused."""
        verbs, given = list(map(verb_of, writes)), list(map(params_of, writes))
        if verbs.count(APPEND) == len(verbs):
            return self._entries.statements(given)
        if len(self._heads) > _MOST_HEADS:
            self._heads.clear()
        last = dict(zip(map(_uid_of, given), verbs, strict=True))
        if len(last) - list(last.values()).count(APPEND) != len(verbs) - verbs.count(APPEND):
            return None
        by_verb: dict[str, list[Params]] = {START: [], CLAIM: [], APPEND: [], END: []}
        for verb, params in zip(verbs, given, strict=True):
            by_verb[verb].append(params)
        starts, claims, entries, ends = by_verb.values()
        if len(set(map(_id_of, starts))) < len(starts):
            return None
        found = self._starts.statements(starts, self._begin) if starts else []
        if claims and (free := self._free(cursor, claims)):
            found += self._claims.statements(free, self._go_on)
        if entries:
            found += self._entries.statements(entries)
        if ends:
            self._look(cursor, ends)
            found += self._ends.statements(ends, self._link)
        return found

    def carry_out(
        self, cursor: apsw.Cursor, writes: Sequence[Write], statements: Sequence[BulkStatement]
    ) -> tuple[list[Row | None], Sequence[int]]:
        """Run them. The answers; and which writes are left, as from the first statement that is refused on none is
        run."""
        done = 0
        for statement in statements:
            crash.place("sqlite.before_commit")
            try:
                cursor.execute(statement.text, statement.values)
            except apsw.ConstraintError:  # an id that is in use, a position that is taken, a lease that is lost
                break
            done += 1
        given = list(map(params_of, writes))
        answers: list[Row | None] = list(zip(map(getitem, given, map(_ANSWERS.__getitem__, map(verb_of, writes)))))
        if have_claims(writes):
            meant = {id(params) for statement in statements for params in statement.rows}
            answers = [row if id(params) in meant else None for row, params in zip(answers, given, strict=True)]
        if done == len(statements):
            return answers, []
        left = {id(params) for statement in statements[done:] for params in statement.rows}
        return answers, [number for number, params in enumerate(given) if id(params) in left]

    # ── the chains of events ────────────────────────────────────────────────────────────────────

    def _begin(self, start: Params) -> tuple[bytes]:
        """The hash of a task's first event."""
        head = chain(GENESIS, start["digest"])
        self._heads[start["uid"]] = 1, head
        return (head,)

    def _look(self, cursor: apsw.Cursor, ends: Sequence[Params]) -> None:
        """Know where the chains of these tasks stand. It comes as one row: for each row the interpreter's lock would
        go to and fro."""
        unknown = set(map(_uid_of, ends)) - self._heads.keys()
        if unknown:
            row: Any = cursor.execute(_HEADS, (json.dumps(list(unknown)),)).fetchall()[0]
            for uid, count, head in json.loads(row[0]):
                self._heads[uid] = count, bytes.fromhex(head)

    def _free(self, cursor: apsw.Cursor, claims: Sequence[Params]) -> list[Params]:
        """Those that will not be refused; the heads of their chains are known afterwards."""
        row: Any = cursor.execute(_FREE_HEADS, (json.dumps(list(map(_seen_of, claims))),)).fetchall()[0]
        heads = {uid: (count, bytes.fromhex(head)) for uid, count, head in json.loads(row[0])}
        self._heads.update(heads)
        return [claim for claim in claims if claim["uid"] in heads]

    def _go_on(self, claim: Params) -> tuple[int, bytes, bytes]:
        """The same of an event that is not the task's last: its end will follow."""
        number, head, before = self._link(claim)
        self._heads[claim["uid"]] = number, head
        return number, head, before

    def _link(self, end: Params) -> tuple[int, bytes, bytes]:
        """The number and the hash of a task's last event, and the hash before it."""
        count, before = self._heads.pop(end["uid"], (0, GENESIS))
        return count + 1, chain(before, end["digest"]), before
