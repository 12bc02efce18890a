"""Many rows by one statement.

Each statement is run while the interpreter's lock is free, and has to wait for it afterwards: so the fewer there are,
the more of SQLite's work is done beside that of the event loop. What takes several statements for each row is made a
trigger, which runs them inside the one that gives it the rows. And what rows have in common is given once: binding a
value is dearer than copying it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import chain
from operator import add, itemgetter
from typing import Any, NamedTuple

import apsw

from perdure._store.rows import Params

# Each width is prepared once, and kept: but apsw keeps nothing whose text is longer than 16,384 bytes.
_WIDTHS = [2**n for n in range(10)]
_LONGEST = 16_000
# Rows that have this many sets of values in common are given set by set; of more, all together and each in full.
_FEW_SETS = 4
_VALUES = re.compile(r"(.*)\bVALUES\s*\((.*)\)\s*(?:ON CONFLICT DO NOTHING\s*)?", re.DOTALL)
_NAME = re.compile(r":(\w+)")


Last = Callable[[Params], tuple[Any, ...]]


class BulkStatement(NamedTuple):
    text: str
    values: list[Any]
    rows: Sequence[Params]  # whose it is


class Wide:
    """An `INSERT … SELECT` of one row of parameters, for many rows. The first one of a row's `own` is never NULL; those
    of `last` are its own too, and are not among the parameters of a write. A conflict is an error."""

    def __init__(self, statement: str, own: Sequence[str], last: Sequence[str] = ()) -> None:
        shared = [name for name in dict.fromkeys(_NAME.findall(statement)) if name not in (*own, *last)]
        self._shared_of = itemgetter(*shared)
        self._alike = _Form(statement, shared, own, last)
        self._each = _Form(statement, (), (*own, *shared), last)

    def of_few(self, rows: Sequence[Params]) -> tuple[str, list[Any]]:
        """The statement for one or two rows, without looking at what they have in common; and its values."""
        return self._each.text(len(rows)), [*chain.from_iterable(map(self._each.own_of, rows))]

    def statements(self, rows: Sequence[Params], last: Last | None = None) -> list[BulkStatement]:
        """What carries it out for all of these; `last` tells a row's last values."""
        sets = dict.fromkeys(map(self._shared_of, rows))
        if len(sets) > _FEW_SETS:
            return self._each.statements((), rows, last)
        if len(sets) > 1:
            found: list[BulkStatement] = []
            for shared in sets:
                found += self._alike.statements(shared, [row for row in rows if self._shared_of(row) == shared], last)
            return found
        return self._alike.statements(next(iter(sets)), rows, last)


class _Form:
    """The statement, for each width, with some values given once and the others for each row."""

    def __init__(self, statement: str, shared: Sequence[str], own: Sequence[str], last: Sequence[str]) -> None:
        names = [*own, *last]
        stand_in = {name: f"?{n}" for n, name in enumerate(shared, 1)}
        stand_in |= {name: f"column{n}" for n, name in enumerate(names, 1)}
        self._head = _NAME.sub(lambda found: stand_in[found[1]], re.sub(r"\s+", " ", statement))
        self._row = f"({','.join('?' * len(names))})"
        self.own_of = itemgetter(*own)
        self._nulls = (None,) * len(names)
        room = (_LONGEST - len(self._head)) // (len(self._row) + 1)
        self._widest = max(width for width in _WIDTHS if width <= room)
        self._texts: dict[int, str] = {}

    def statements(self, shared: Sequence[Any], rows: Sequence[Params], last: Last | None) -> list[BulkStatement]:
        if len(rows) > self._widest:
            pieces = [rows[start : start + self._widest] for start in range(0, len(rows), self._widest)]
            return [self.statements(shared, piece, last)[0] for piece in pieces]
        values = map(self.own_of, rows)
        if last is not None:
            values = map(add, values, map(last, rows))
        width = 1 << (len(rows) - 1).bit_length()  # the next power of two
        missing = self._nulls * (width - len(rows))
        return [BulkStatement(self.text(width), [*shared, *chain.from_iterable(values), *missing], rows)]

    def text(self, width: int) -> str:
        """For so many rows, or fewer: those that are missing are given as NULLs, and left out."""
        text = self._texts.get(width)
        if text is None:
            rows = ",".join([self._row] * width)
            text = self._texts[width] = f"{self._head} FROM (VALUES {rows}) WHERE column1 NOTNULL"
        return text


def for_each(
    connection: apsw.Connection,
    name: str,
    statements: Sequence[tuple[str, str]],
    own: Sequence[str],
    last: Sequence[str],
) -> Wide:
    """Several statements to be run for each of many rows, as one: have the connection know them, by a view for nobody
    else and a trigger on it. Of each pair the first is the parameter without which the statement is left out, or ''."""
    names = list(dict.fromkeys(asked for _, statement in statements for asked in _NAME.findall(statement)))
    nulls = ", ".join(f"NULL AS {one}" for one in names)
    body = "".join(_NAME.sub(r"NEW.\1", _only_with(*one)) + ";\n" for one in statements)
    connection.execute(f"CREATE TEMP VIEW {name} AS SELECT {nulls}")
    connection.execute(f"CREATE TEMP TRIGGER {name}_each INSTEAD OF INSERT ON {name} BEGIN\n{body}END")
    values = ", ".join(f":{one}" for one in names)
    return Wide(f"INSERT INTO {name} SELECT {values}", own, last)


def _only_with(needed: str, statement: str) -> str:
    if not needed:
        return statement.replace("ON CONFLICT DO NOTHING", "")
    found = _VALUES.fullmatch(statement)
    assert found is not None, statement
    head, row = found.groups()
    return f"{head}SELECT {row} WHERE :{needed} NOTNULL"
