"""Read rows with a text that is not UTF-8.

SQLite keeps any bytes as text, and a damaged file may hold bytes that are not characters. One such text must not
keep all other rows from being read: what cannot be decoded is shown as \\xNN.

Owns what becomes of such a text, and finding all of them for `perdure doctor`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apsw
import apsw.ext

from perdure._store.rows import Params, Row


def read_rows(connection: apsw.Connection, statement: str, params: Params) -> list[Row]:
    """The rows of a query, with every text that can be decoded as it is."""
    columns = [f"c{number}" for number in range(len(apsw.ext.query_info(connection, statement).description))]
    raw = ", ".join(f"CASE typeof({name}) WHEN 'text' THEN CAST({name} AS BLOB) ELSE {name} END" for name in columns)
    kinds = ", ".join(f"typeof({name}) = 'text'" for name in columns)
    wrapped = f"WITH found ({', '.join(columns)}) AS ({statement}) SELECT {raw}, {kinds} FROM found"  # noqa: S608 (our own)
    width = len(columns)
    rows: list[Any] = connection.execute(wrapped, params).fetchall()
    return [
        tuple(_text(value) if is_text else value for value, is_text in zip(row[:width], row[width:], strict=True))
        for row in rows
    ]


def _text(value: bytes) -> str:
    return value.decode(errors="backslashreplace")


def find_all(connection: apsw.Connection) -> Iterator[str]:
    """The texts of the store that are not UTF-8."""
    tables: list[Any] = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    for (table,) in tables:
        known: list[Any] = connection.execute(f'PRAGMA table_info("{table}")').fetchall()
        for column in (name for _, name, kind, *_ in known if kind == "TEXT"):
            query = f'SELECT CAST("{column}" AS BLOB) FROM "{table}" WHERE typeof("{column}") = \'text\''  # noqa: S608
            for (value,) in connection.execute(query):
                try:
                    bytes(value).decode()
                except UnicodeDecodeError:
                    shown = _text(bytes(value))[:80]
                    yield f"{table}.{column} holds text that is not UTF-8: {shown}"
