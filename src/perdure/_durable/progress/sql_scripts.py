"""Run an SQL script inside a step, and after a crash continue at the next statement.

`cursor="target"`: each statement is committed together with the number of statements done, in a table of the target
database. Exact: after a crash nothing is repeated and nothing is left out. Only session settings (SET, PRAGMA, ATTACH,
DETACH) are applied again.
`cursor="whole"`: the whole script is one transaction, with its cursor: all of it is done, or none.
`cursor="journal"`: for statements that cannot run in a transaction (VACUUM, CREATE INDEX CONCURRENTLY). Each is marked
afterwards; the one under way when the process died is run again.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Literal

from perdure._durable.attempt import current
from perdure._durable.databases import SQLITES, driver_of, psycopg_rows, refuse_our_store, sqlite_rows
from perdure._durable.progress.marks import Place, mark
from perdure._ground import crash_points as crash
from perdure.errors import InvalidInput

_COLUMNS = "(id TEXT PRIMARY KEY, done INTEGER NOT NULL)"


async def run_script(
    connection: Any,
    script: str | Sequence[str],
    *,
    cursor: Literal["target", "whole", "journal"] = "target",
    name: str = "script",
) -> int:
    """Execute the statements that are not done yet. Returns how many those were.

    `connection` is a DB-API connection, blocking or async, or one of apsw. It is outside a transaction, and only
    this step uses it. The script has no BEGIN and no COMMIT of its own.

    Raises:
        InvalidInput: the connection is inside a transaction, the script begins or ends one, or there is no such
            cursor; nothing was executed.
        Exception: a statement raised it; the statements before it are done, except with cursor="whole".
    """
    if cursor not in ("target", "whole", "journal"):
        raise InvalidInput(f"cursor is {cursor!r}", do="choose target, whole or journal")
    statements = list(split(script)) if isinstance(script, str) else list(script)
    _refuse_boundaries(statements)
    target = _Target(connection, name)
    place = Place(name, flush=True)
    if cursor == "journal":
        return await _journaled(target, statements, place)
    done = first = await target.done()
    if first < len(statements):
        if cursor == "whole":
            await target.commit_with(statements[first:], len(statements))
            return len(statements) - first
        await target.set_again(statements[:first])
        for statement in statements[first:]:
            done += 1
            if _SETTING.match(_bare(statement)):
                await target.set(statement)
                await target.commit_with([], done)
            else:
                await target.commit_with([statement], done)
            await mark(done=done, total=len(statements))
            crash.place("script.statement")
    return len(statements) - first


async def _journaled(target: _Target, statements: list[str], place: Place) -> int:
    first = int(place.found or 0)
    await target.set_again(statements[:first])
    for number, statement in enumerate(statements[first:], first + 1):
        await target.execute(statement)
        await target.commit()
        await place.mark(number, number, len(statements))
        crash.place("script.statement")
    return len(statements) - first


class _Target:
    """A connection of any driver, and the row in its database that says how far this script is."""

    def __init__(self, connection: Any, name: str) -> None:
        if _is_inside(connection):
            raise InvalidInput(
                "the connection is inside a transaction", kept="nothing was executed", do="commit it before the script"
            )
        self._connection = connection
        scope = current.get()
        if scope is not None:
            refuse_our_store(connection, getattr(scope.attempt.store.engine, "path", None))
        of = (scope.attempt.uid, str(scope.attempt.line), scope.path, name) if scope else None
        # Only hex digits, so it can be written into a statement: drivers disagree on how to pass values.
        self._id = hashlib.sha256("\0".join(of).encode()).hexdigest()[:40] if of else None
        self._table = "perdure_cursors"

    async def execute(self, statement: str) -> Any:
        found = self._connection.execute(statement)
        return await found if inspect.isawaitable(found) else found

    async def set(self, statement: str) -> None:
        """Apply a session setting. Not inside a transaction: SQLite ignores some settings there, and PostgreSQL
        drops them with it."""
        await self.execute(statement)
        await self.commit()

    async def set_again(self, statements: Sequence[str]) -> None:
        """Apply the settings among these again, in order: after a crash the session is new. If it is not, a database
        may already be attached."""
        for statement in statements:
            if _SETTING.match(_bare(statement)):
                try:
                    await self.set(statement)
                except Exception as error:
                    if "already in use" not in str(error) or not _ATTACH.match(_bare(statement)):
                        raise

    async def commit(self) -> None:
        commit = getattr(self._connection, "commit", None)
        if commit is None:
            if getattr(self._connection, "in_transaction", False):
                await self.execute("COMMIT")
            return
        found = commit()
        if inspect.isawaitable(found):
            await found

    async def done(self) -> int:
        if self._id is None:
            return 0
        if hasattr(self._connection, "info"):  # psycopg: the script may change its search path later
            schema = str(await self._value("SELECT current_schema()") or "public").replace('"', '""')
            self._table = f'"{schema}".perdure_cursors'
        try:
            return await self._read()
        except Exception:  # most likely the table does not exist yet
            await self._roll_back()
        try:
            await self.execute(f"CREATE TABLE IF NOT EXISTS {self._table} {_COLUMNS}")
            await self.commit()
        except Exception:
            # When two processes create it at once, IF NOT EXISTS can still fail for one of them.
            await self._roll_back()
            with suppress(Exception):
                return await self._read()
            raise
        return 0

    async def _read(self) -> int:
        return int(await self._value(f"SELECT done FROM {self._table} WHERE id = '{self._id}'") or 0)  # noqa: S608

    async def _value(self, statement: str) -> Any:
        rows = await self._rows(statement)
        await self.commit()
        return rows[0][0] if rows else None

    async def _rows(self, statement: str) -> list[Any]:
        driver = driver_of(self._connection)
        if driver == "psycopg":
            return await psycopg_rows(self._connection, statement)
        if driver in SQLITES:
            return sqlite_rows(self._connection, statement)
        found = (await self.execute(statement)).fetchall()
        return list(await found if inspect.isawaitable(found) else found)

    async def commit_with(self, statements: Sequence[str], done: int) -> None:
        """Commit the statements and the cursor in one transaction."""
        await self._begin()
        try:
            for statement in statements:
                await self.execute(statement)
            if self._id is not None:
                await self.execute(
                    f"INSERT INTO {self._table} (id, done) VALUES ('{self._id}', {done}) "  # noqa: S608
                    f"ON CONFLICT (id) DO UPDATE SET done = {done}"
                )
            crash.place("script.before_commit")
        except BaseException:
            await self._roll_back()
            raise
        await self.commit()

    async def _begin(self) -> None:
        if getattr(self._connection, "autocommit", None) is not False:  # with False it begins one by itself
            await self.execute("BEGIN")

    async def _roll_back(self) -> None:
        rollback = getattr(self._connection, "rollback", None)
        if rollback is None:
            if self._connection.in_transaction:
                await self.execute("ROLLBACK")
            return
        found = rollback()
        if inspect.isawaitable(found):
            await found


def _is_inside(connection: Any) -> bool:
    status = getattr(getattr(connection, "info", None), "transaction_status", None)  # psycopg
    if status is not None:
        return int(status) != 0
    # sqlite3; with autocommit=False it is always inside a transaction.
    return getattr(connection, "autocommit", None) is not False and bool(getattr(connection, "in_transaction", False))


# ── statements ───────────────────────────────────────────────────────────────────────────────────

# Everything a semicolon can be hidden in, and the semicolon itself.
_TOKEN = re.compile(
    r"""\b[eE]'(?:[^'\\]|''|\\.)*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | `[^`]*`
        | --[^\n]* | /\*.*?\*/ | (\$\w*\$).*?\1 | ;""",
    re.VERBOSE | re.DOTALL,
)
# Statements that contain a block of statements: SQLite's triggers, PostgreSQL's functions in SQL. The END of a block
# follows a semicolon; the END of a CASE does not.
_BLOCK = re.compile(
    r"\s*create\s+(?:temp\s+|temporary\s+)?trigger\b.*\bbegin\b"
    r"|\s*create\s+(?:or\s+replace\s+)?(?:function|procedure)\b.*\bbegin\s+atomic\b",
    re.IGNORECASE | re.DOTALL,
)
_END = re.compile(r";\s*end\s*$", re.IGNORECASE)
# Statements that change only their session, and may be repeated.
_SETTING = re.compile(
    r"\s*(?:(?:set(?!\s+(?:local|transaction|constraints)\b)|reset|pragma|attach|detach)\b"
    r"|select\s+(?:pg_catalog\s*\.\s*)?set_config\s*\([^()]*\)\s*$)",
    re.IGNORECASE,
)
_ATTACH = re.compile(r"\s*attach\b", re.IGNORECASE)
_BOUNDARY = re.compile(
    r"\s*(?:begin|start\s+transaction|commit|end|abort|rollback)\b(?!.*\b(?:to|prepared)\b)", re.IGNORECASE | re.DOTALL
)


def split(script: str) -> Iterator[str]:
    """The statements of a script in SQLite's or PostgreSQL's syntax, without their semicolons."""
    begun = 0
    for token in _TOKEN.finditer(script):
        if token.group() != ";":
            continue
        statement = script[begun : token.start()]
        bare = _bare(statement)
        if bare.count("(") > bare.count(")") or (_BLOCK.match(bare) and not _END.search(bare)):
            continue  # a semicolon inside the statement's own block, or in the parentheses of a rule
        begun = token.end()
        if bare.strip():
            yield statement.strip()
    if _bare(script[begun:]).strip():
        yield script[begun:].strip()


def _bare(statement: str) -> str:
    """The statement without quoted text and comments."""
    return _TOKEN.sub(lambda found: ";" if found.group() == ";" else " ", statement)


def _refuse_boundaries(statements: Sequence[str]) -> None:
    for number, statement in enumerate(statements, 1):
        if _BOUNDARY.match(_bare(statement)):
            raise InvalidInput(
                f"statement {number} of the script is {statement[:40]!r}, but run_script makes the transactions itself",
                kept="nothing was executed",
                do='leave such statements out; cursor="whole" runs all in one transaction',
            )
