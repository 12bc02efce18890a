"""Append many journal entries by few statements.

One by one, each entry costs a statement that looks its lease up again. Inside a transaction nobody can change a
lease, so it is looked up once for each task, and the rows go in by sixty-four.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import apsw

from perdure._store.contract import Row
from perdure._store.sql import Queries
from perdure._store.write import Write

APPEND = "append_entry"
# From this many on it is worth it.
FEW = 4
_AT_ONCE = (64, 16, FEW)
_MOST = 256

_STATEMENTS = Queries(Path(__file__).parent / "statements")


@cache
def _insert(many: int) -> str:
    head, _, row = _STATEMENTS["append_entries"][0].rpartition("\n")
    return "\n".join((head, ",".join([row] * many)))


def run_of(writes: Sequence[Write], place: int) -> Sequence[Write]:
    """The entries that follow one another from here."""
    end, limit = place, min(len(writes), place + _MOST)
    while end < limit and writes[end].verb == APPEND:
        end += 1
    return writes[place:end]


def append(cursor: apsw.Cursor, run: Sequence[Write]) -> list[Row]:
    """Write the first entries, up to one that may be refused or one too few to be worth it; their answers."""
    fenced = _fenced(cursor, run)
    done = 0
    for many in _AT_ONCE:
        while done + many <= len(fenced):
            values: list[Any] = []
            for given in fenced[done : done + many]:
                values += (given["uid"], given["line"], given["position"], given["entry"])
            try:
                cursor.execute(_insert(many), values)
            except apsw.ConstraintError:
                return [(given["position"],) for given in fenced[:done]]
            done += many
    return [(given["position"],) for given in fenced[:done]]


def _fenced(cursor: apsw.Cursor, run: Sequence[Write]) -> list[Any]:
    """The parameters of the first entries whose attempts have their leases."""
    leases: dict[str, Any] = {}
    read_lease = _STATEMENTS["read_lease"][0]
    found = []
    for write in run:
        given = write.params
        uid = given["uid"]
        if uid not in leases:
            leases[uid] = cursor.execute(read_lease, (uid,)).fetchone()
        if leases[uid] != (given["epoch"], given["worker"]):
            break
        found.append(given)
    return found
