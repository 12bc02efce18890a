"""Statements of one row of VALUES, made wide: many rows by one of them.

Each statement is run while the interpreter's lock is free, and has to wait for it afterwards: so the fewer there are,
the more of SQLite's work is done beside that of the event loop.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain
from operator import add, itemgetter
from typing import Any

import apsw

from perdure._store.contract import Params

# Each width is prepared once, and kept: apsw keeps statements of up to 16,384 bytes.
_WIDTHS = (256, 128, 64, 32, 16, 8, 4, 2, 1)
_ROW = re.compile(r"(.*\bVALUES\s*)(\([^()]*(?:\([^()]*\)[^()]*)*\))(.*)", re.DOTALL)
_NAME = re.compile(r":(\w+)")

Values = Callable[[Params], tuple[Any, ...]]


def run(cursor: apsw.Cursor, statement: str, rows: Sequence[Params], more: Sequence[tuple[Any, ...]] = ()) -> None:
    """Run a statement that takes one row of VALUES for all of these. What is not in a row's parameters stands last
    in the statement, and comes from `more`."""
    done = 0
    for width in widths(len(rows)):
        wide, values_of = widened(statement, width, len(more[0]) if more else 0)
        values = map(values_of, rows[done : done + width])
        if more:
            values = map(add, values, more[done : done + width])
        cursor.execute(wide, list(chain.from_iterable(values)))
        done += width


def widths(many: int) -> Iterator[int]:
    """So many rows as few statements take them."""
    for width in _WIDTHS:
        while many >= width:
            yield width
            many -= width


@cache
def widened(statement: str, width: int, more: int = 0) -> tuple[str, Values]:
    """The statement with so many rows in place of its one, and what a row is made of, but for so many values at its
    end. A conflict is an error here."""
    found = _ROW.fullmatch(statement)
    assert found is not None, statement
    head, row, tail = found.groups()
    names = _NAME.findall(row)
    row = re.sub(r",\s+", ",", _NAME.sub("?", row))
    wide = head + ",".join([row] * width) + tail.replace("ON CONFLICT DO NOTHING", "")
    return wide, itemgetter(*names[: len(names) - more])
