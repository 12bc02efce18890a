"""Many rows by one statement.

Each statement is run while the interpreter's lock is free, and has to wait for it afterwards: so the fewer there are,
the more of SQLite's work is done beside that of the event loop. A table takes many rows of VALUES at once. What takes
several statements for each row is made a trigger, which runs them inside the one that gives it the rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from operator import add, itemgetter
from typing import Any

import apsw

from perdure._store.contract import Params

# Each width is prepared once, and kept: but apsw keeps nothing whose text is longer than 16,384 bytes.
_WIDTHS = [2**n for n in range(10)]
_LONGEST = 16_000
_VALUES = re.compile(r"(.*)\bVALUES\s*\((.*)\)\s*(?:ON CONFLICT DO NOTHING\s*)?", re.DOTALL)
_NAME = re.compile(r":(\w+)")


class Wide:
    """An INSERT of one row of VALUES, for many. Its first value is never NULL, and a conflict is an error. Parameters
    in `last` stand last in the row, and are not among those of a write."""

    def __init__(self, statement: str, last: Sequence[str] = ()) -> None:
        found = _VALUES.fullmatch(statement)
        assert found is not None, statement
        head, row = found.groups()
        names = _NAME.findall(row)
        assert names[len(names) - len(last) :] == list(last), statement
        row = re.sub(r"\s+", " ", _NAME.sub("?", row)).replace(", ", ",")
        self._values_of = itemgetter(*names[: len(names) - len(last)])
        self._texts = {width: head + _rows(row, width) for width in _WIDTHS if width * (len(row) + 3) < _LONGEST}
        self._widest = max(self._texts)
        self._columns = len(names)

    def run(self, cursor: apsw.Cursor, rows: Sequence[Params], more: Sequence[tuple[Any, ...]] = ()) -> None:
        """Run it for all of these; `more` has, for each, the values of `last`."""
        many = len(rows)
        if many > self._widest:
            for piece in self.pieces(many):
                self.run(cursor, rows[piece], more[piece])
        elif many:
            values = map(self._values_of, rows)
            if more:
                values = map(add, values, more)
            width = 1 << (many - 1).bit_length()  # the next power of two
            missing = (None,) * ((width - many) * self._columns)
            cursor.execute(self._texts[width], [*chain.from_iterable(values), *missing])

    def pieces(self, many: int) -> Iterator[slice]:
        """What goes in at once, of so many rows."""
        for start in range(0, many, self._widest):
            yield slice(start, min(start + self._widest, many))


def _rows(row: str, width: int) -> str:
    """So many rows, or fewer: those that are missing are given as NULLs, and left out. Of one or two none is."""
    rows = ",".join([f"({row})"] * width)
    return f"SELECT * FROM (VALUES {rows}) WHERE column1 NOTNULL" if width > 2 else f"VALUES {rows}"  # noqa: S608


class ForEach:
    """Several statements to be run for each of many rows, as one."""

    def __init__(self, name: str, statements: Sequence[tuple[str, str]], last: Sequence[str]) -> None:
        """Of each pair the first is the parameter without which the statement is left out, or ''."""
        asked = [asked for _, statement in statements for asked in _NAME.findall(statement)]
        self._name, self._statements, self._last = name, statements, last
        self._names = [*dict.fromkeys(one for one in asked if one not in last), *last]

    @cached_property
    def rows(self) -> Wide:
        # A conflict ends it, and who asked rolls back: to keep each page as it was before would cost a fifth more.
        values = ", ".join(f":{one}" for one in self._names)
        return Wide(f"INSERT OR FAIL INTO {self._name} VALUES ({values})", self._last)  # noqa: S608

    def prepare(self, connection: apsw.Connection) -> None:
        """Have a connection know it: by a view, for nobody else, and a trigger on it."""
        nulls = ", ".join(f"NULL AS {one}" for one in self._names)
        body = "".join(_NAME.sub(r"NEW.\1", _only_with(*one)) + ";\n" for one in self._statements)
        connection.execute(f"CREATE TEMP VIEW {self._name} AS SELECT {nulls}")
        connection.execute(f"CREATE TEMP TRIGGER {self._name}_each INSTEAD OF INSERT ON {self._name} BEGIN\n{body}END")


def _only_with(needed: str, statement: str) -> str:
    if not needed:
        return statement.replace("ON CONFLICT DO NOTHING", "")
    found = _VALUES.fullmatch(statement)
    assert found is not None, statement
    head, row = found.groups()
    return f"{head}SELECT {row} WHERE :{needed} NOTNULL"
