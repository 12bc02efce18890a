"""Aimed damage to a store: where to put it so that every kind of place is hit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from struct import unpack_from
from typing import Any, NamedTuple

import psycopg

from tests.support.strangers import open_file

_HEADER, _FRAME = 32, 24
SECTOR, PAGE = 512, 4096


class Place(NamedTuple):
    """A bit of a file, and what it is a part of."""

    byte: int
    bit: int
    part: str
    is_in_last: bool = False  # in the last transaction of a log


def log_places(log: bytes, page: int = 4096) -> list[Place]:
    """One bit of each field of a write-ahead log's header and of each frame, and one of each frame's page."""
    frames = (len(log) - _HEADER) // (_FRAME + page)
    commits = [number for number in range(frames) if unpack_from(">I", log, _HEADER + number * (_FRAME + page) + 4)[0]]
    last = commits[-2] + 1 if len(commits) > 1 else 0
    found = [Place(byte + 3, 0, f"header {byte}") for byte in range(0, _HEADER, 4)]
    for number in range(frames):
        start = _HEADER + number * (_FRAME + page)
        for byte in (*range(3, _FRAME, 4), _FRAME + number * 31 % page, _FRAME + page - 1):
            found.append(Place(start + byte, number % 8, f"frame {number} at {byte}", number >= last))
    return found


class Cell(NamedTuple):
    """A column of one row."""

    table: str
    column: str
    key: dict[str, Any]
    value: Any
    row: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.table}.{self.column}"


# To change these by SQL, indexes included, is to give the task another name: a store without it is whole.
NAMES = ("tasks.namespace", "tasks.id", "tasks.is_current")


def pick(cells: list[Cell], rng: random.Random) -> tuple[Cell, Any]:
    """A column by chance, a row of it by chance, and what it is to hold."""
    while True:
        name = rng.choice(sorted({str(cell) for cell in cells if str(cell) not in NAMES}))
        cell = rng.choice([cell for cell in cells if str(cell) == name])
        value = flipped(cell.value, rng)
        if not any(other.key == {**cell.key, cell.column: value} for other in cells if cell.column in cell.key):
            return cell, value


def flipped(value: Any, rng: random.Random) -> Any:
    """The same value with one bit or one byte of it changed."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value ^ (1 << rng.choice((0, 1, 2, 5, 9, 17, 31, 40, 62)))
    data = bytearray(value.encode() if isinstance(value, str) else value)
    at = rng.randrange(len(data))
    if isinstance(value, str):  # what is not UTF-8 is in tests/tasks/test_spoiled_text.py
        data[at] = rng.choice([byte for byte in range(1, 127) if byte != data[at]])
        return data.decode(errors="replace")
    data[at] = data[at] ^ 1 << rng.randrange(8) if rng.random() < 0.5 else (data[at] + rng.randrange(1, 256)) % 256
    return bytes(data)


def where_damage_is_not_seen(log: bytes, page: int = 4096) -> int:
    """From where on damage in a log looks like a torn transaction: the frame that ends the last but one (0037)."""
    width, salts = _FRAME + page, log[16:24]
    frames = [at for at in range(_HEADER, len(log) - width + 1, width) if log[at + 8 : at + 16] == salts]
    return [at for at in frames if unpack_from(">I", log, at + 4)[0]][-2]


def spoil(path: Path, rng: random.Random, end: int | None = None) -> str:
    """Change a bit or a byte of a file before `end`, or make a sector or a page of it zeros; says what."""
    data = bytearray(path.read_bytes())
    before, how, at, end = bytes(data), "", 0, len(data) if end is None else end
    while bytes(data) == before:
        data[:] = before
        at, how = rng.randrange(end), rng.choice(("bit", "byte", "sector", "page"))
        if how in ("sector", "page") and at + PAGE > end:
            continue
        if how == "bit":
            data[at] ^= 1 << rng.randrange(8)
        elif how == "byte":
            data[at] = rng.randrange(256)
        else:
            size = SECTOR if how == "sector" else PAGE
            at = at // size * size
            data[at : at + size] = bytes(len(data[at : at + size]))
    path.write_bytes(data)
    return f"{how} {at} of {path.name}"


def sqlite_cells(path: Path) -> list[Cell]:
    """Every column of every row but what is empty."""
    found: list[Cell] = []
    with closing(open_file(path)) as connection:
        tables: list[Any] = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        for (table,) in tables:
            columns: list[Any] = connection.execute(f"PRAGMA table_info({table})").fetchall()
            names, keys = [row[1] for row in columns], [row[1] for row in columns if row[5]]
            rows: list[Any] = connection.execute(f"SELECT {', '.join(names)} FROM {table}").fetchall()
            found += _cells(table, names, keys, rows)
    return found


def _cells(table: str, names: list[str], keys: list[str], rows: list[Any]) -> Iterator[Cell]:
    for values in rows:
        row = dict(zip(names, values, strict=True))
        for name, value in row.items():
            if value not in (None, "", b""):
                yield Cell(table, name, {key: row[key] for key in keys}, value, row)


def change_sqlite(path: Path, cell: Cell, value: Any) -> None:
    with closing(open_file(path)) as connection:
        which = " AND ".join(f"{name} = ?" for name in cell.key)
        connection.execute(f"UPDATE {cell.table} SET {cell.column} = ? WHERE {which}", (value, *cell.key.values()))


_COLUMNS = """
SELECT c.relname, a.attname, coalesce(a.attnum = ANY (i.indkey), false)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
WHERE c.relnamespace = 'perdure'::regnamespace AND c.relkind = 'r' ORDER BY c.relname, a.attnum
"""


def postgres_cells(connection: psycopg.Connection[Any]) -> list[Cell]:
    """The same of PostgreSQL."""
    columns: dict[str, list[tuple[str, bool]]] = {}
    for table, name, is_key in connection.execute(_COLUMNS).fetchall():
        columns.setdefault(table, []).append((name, is_key))
    found: list[Cell] = []
    for table, known in columns.items():
        names, keys = [name for name, _ in known], [name for name, is_key in known if is_key]
        listed = ", ".join(f'"{name}"' for name in names)
        rows = connection.execute(f"SELECT {listed} FROM perdure.{table}".encode()).fetchall()
        found += _cells(table, names, keys, rows)
    return [cell for cell in found if isinstance(cell.value, int | str | bytes)]


def change_postgres(connection: psycopg.Connection[Any], cell: Cell, value: Any) -> None:
    which = " AND ".join(f'"{name}" = %s' for name in cell.key)
    change = f'UPDATE perdure.{cell.table} SET "{cell.column}" = %s WHERE {which}'
    connection.execute(change.encode(), (value, *cell.key.values()))
