"""Tell damage that belongs to one record from damage that belongs to the whole store.

A page that does not fit its checksum holds many records. Most of them can say for themselves whether they are sound: a
payload has a checksum of its own, a text is UTF-8, events are a chain. Where that finds the damaged record, it is told
as that record's, and the others are read as before. Where every record of the page seems sound, a number or a name has
changed and nothing tells which: then the page is refused, and all that stands on it.

A row that another program has changed looks the same as damage, and is treated the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from perdure._ground.secrets import envelope
from perdure._store import migrate
from perdure._store.sql import split
from perdure._store.sqlite import page_checksums

# What is in them is checked whenever it is read: the chain of events, the checksum over a payload in several parts.
_CHECKED_AS_A_WHOLE = frozenset({"events", "chunks"})
# What the header of our files says of them, and what is in them before the first migration.
APPLICATION_ID = 0x70657264
MIGRATIONS_TABLE = "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID"
# The pages that hold nothing.
FREE = "no table"
_DIGESTS = frozenset({"event_head", "digest", "hash"})


def is_of_a_page(error: BaseException) -> bool:
    return getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_DATA


def find(path: Path) -> dict[str, list[int]]:
    """The pages that do not fit their checksums, by the table or index they belong to."""
    if not page_checksums.has_checksums(path):
        return {}
    connection = _open_unchecked(path)
    try:
        rows: list[Any] = connection.execute("SELECT pageno, name FROM dbstat").fetchall()
        owners: dict[int, str] = dict(rows)
        found: dict[str, list[int]] = {}
        for number in _bad_pages(connection, path):
            found.setdefault(owners.get(number, FREE), []).append(number)
        return found
    finally:
        connection.close()


def in_words(path: Path) -> list[str]:
    try:
        found = find(path)
    except apsw.Error as error:  # the pages that say which page belongs to which table are damaged themselves
        return [f"pages do not fit their checksums, and cannot be told apart: {error}"]
    return [
        f"page {number} of {owner} does not fit its checksum: it was damaged, or changed by another "
        "program (`perdure doctor --adopt-copy` takes it as it is)"
        for owner, numbers in found.items()
        for number in numbers
    ]


def has_other_damage(path: Path) -> bool:
    """True if some page is wrong and none of its records says that it is the one."""
    try:
        return _has_other_damage(path)
    except (apsw.Error, UnicodeDecodeError):  # its schema cannot be read
        return True


def _has_other_damage(path: Path) -> bool:
    found = find(path)
    connection = _open_unchecked(path)
    try:
        if sum(map(len, found.values())) == connection.pragma("page_count"):
            return False  # not one page fits: another program has copied the file, and knows nothing of checksums
        query = "SELECT tbl_name FROM sqlite_schema WHERE name = ?"
        owners = found.keys() - {FREE}
        tables = {next((str(table) for (table,) in connection.execute(query, (name,))), "") for name in owners}
        return any(not _names_its_damage(connection, table) for table in tables)
    finally:
        connection.close()


def _open_unchecked(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=page_checksums.find_vfs(path))
    connection.set_busy_timeout(10_000)
    connection.execute("PRAGMA checksum_verification = OFF").fetchall()
    return connection


def _bad_pages(connection: apsw.Connection, path: Path) -> Iterator[int]:
    """By the file itself: SQLite tells that a page is wrong, and not which. What is in the log is put into it first."""
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    size = int(connection.pragma("page_size"))
    with path.open("rb") as file:
        number = 0
        while page := file.read(size):
            number += 1
            row: Any = connection.execute("SELECT verify_checksum(?)", (page,)).fetchall()
            if row[0][0] == 0:
                yield number


def _has_our_schema(connection: apsw.Connection) -> bool:
    """True if the first page, which also counts changes and copies, says of the tables what our migrations do."""
    applied = {str(name) for (name,) in connection.execute("SELECT name FROM migrations")}
    with closing(apsw.Connection(":memory:")) as fresh:
        fresh.execute(MIGRATIONS_TABLE)
        for step in migrate.load(Path(__file__).parent / "migrations"):
            if step.name in applied:
                for statement in split(step.script):
                    fresh.execute(statement)
        query = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name"
        is_same = connection.execute(query).fetchall() == fresh.execute(query).fetchall()
    return is_same and (connection.pragma("application_id"), connection.pragma("quick_check")) == (APPLICATION_ID, "ok")


def _names_its_damage(connection: apsw.Connection, table: str) -> bool:
    if table in _CHECKED_AS_A_WHOLE:
        return True
    if not table:
        return _has_our_schema(connection)
    known: list[Any] = connection.execute(f'PRAGMA table_info("{table}")').fetchall()
    names = [str(name) for _, name, *_ in known]
    # Texts as bytes: one that is not UTF-8 is what is looked for.
    columns = ", ".join(f'typeof("{name}"), CAST("{name}" AS BLOB)' for name in names)
    for row in connection.execute(f'SELECT {columns} FROM "{table}"'):  # noqa: S608 (names of our own schema)
        values = dict(zip(names, zip(row[::2], row[1::2], strict=True), strict=True))
        if any(_is_spoiled(name, *value, values) for name, value in values.items()):
            return True
    return False


def _is_spoiled(name: str, kind: object, value: Any, row: dict[str, tuple[Any, Any]]) -> bool:
    if kind == "text":
        try:
            bytes(value).decode()
        except UnicodeDecodeError:
            return True
    if kind == "blob" and name not in _DIGESTS:
        place = int(bytes(row["position"][1])) if name == "entry" else 0
        return not envelope.is_whole(bytes(value), place)
    return False
