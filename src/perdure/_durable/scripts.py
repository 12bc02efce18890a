"""Run an SQL script inside a step, and after a crash go on at the next statement.

`cursor="target"`: each statement is committed together with how many are done, in a table of the target
database. Exact: after a crash nothing is repeated and nothing is left out.
`cursor="whole"`: the whole script is one transaction, with its cursor; it is done, or it has not begun.
`cursor="journal"`: for statements that no transaction takes (VACUUM, CREATE INDEX CONCURRENTLY). Each is
marked after it; the one under way when the process died is run again.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from perdure._durable.marking import progress
from perdure._durable.scopes import current
from perdure._ground import crash
from perdure.errors import InvalidInput

_TABLE = "CREATE TABLE IF NOT EXISTS perdure_cursors (id TEXT PRIMARY KEY, done INTEGER NOT NULL)"


async def run_script(
    connection: Any,
    script: str | Sequence[str],
    *,
    cursor: Literal["target", "whole", "journal"] = "target",
    name: str = "script",
) -> int:
    """Execute the statements that are not done yet; how many that were.

    The connection is a DB-API one, blocking or async, or apsw's; outside a transaction, and this step's alone.

    Raises:
        InvalidInput: the connection is inside a transaction, or there is no such cursor.
        Exception: what a statement raised; those before it are done, but for cursor="whole".
    """
    if cursor not in ("target", "whole", "journal"):
        raise InvalidInput(f"cursor is {cursor!r}", do="choose target, whole or journal")
    statements = list(split(script)) if isinstance(script, str) else list(script)
    target = _Target(connection, name)
    if cursor == "journal":
        return await _journaled(target, statements, name)
    done = first = await target.done()
    if first < len(statements):
        if cursor == "whole":
            await target.commit_with(statements[first:], len(statements))
            return len(statements) - first
        for statement in statements[first:]:
            done += 1
            await target.commit_with([statement], done)
            await progress.mark(done=done, total=len(statements))
            crash.place("script.statement")
    return len(statements) - first


async def _journaled(target: _Target, statements: list[str], name: str) -> int:
    first = int((progress.cursor or {}).get(name, 0))
    for number, statement in enumerate(statements[first:], first + 1):
        await target.execute(statement)
        await target.commit()
        cursor = {**(progress.cursor or {}), name: number}
        await progress.mark(cursor=cursor, done=number, total=len(statements), flush=True)
        crash.place("script.statement")
    return len(statements) - first


class _Target:
    """A connection of whatever make, and the row in it that says how far this script is."""

    def __init__(self, connection: Any, name: str) -> None:
        self._connection = connection
        scope = current.get()
        of = (scope.run.uid, str(scope.run.line), scope.path, name) if scope else None
        # Made of hex alone, so it may stand in a statement: drivers do not agree on how to pass values.
        self._id = hashlib.sha256("\0".join(of).encode()).hexdigest()[:40] if of else None

    async def execute(self, statement: str) -> Any:
        found = self._connection.execute(statement)
        return await found if inspect.isawaitable(found) else found

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
        await self.execute(_TABLE)
        rows = await self.execute(f"SELECT done FROM perdure_cursors WHERE id = '{self._id}'")  # noqa: S608
        found = rows.fetchone()
        row = await found if inspect.isawaitable(found) else found
        await self.commit()
        return int(row[0]) if row else 0

    async def commit_with(self, statements: Sequence[str], done: int) -> None:
        """The statements and the cursor, in one transaction."""
        await self._begin()
        try:
            for statement in statements:
                await self.execute(statement)
            if self._id is not None:
                await self.execute(
                    f"INSERT INTO perdure_cursors (id, done) VALUES ('{self._id}', {done}) "  # noqa: S608
                    f"ON CONFLICT (id) DO UPDATE SET done = {done}"
                )
            crash.place("script.before_commit")
        except BaseException:
            await self._roll_back()
            raise
        await self.commit()

    async def _begin(self) -> None:
        if getattr(self._connection, "autocommit", None) is False:
            return  # it begins one by itself
        if getattr(self._connection, "in_transaction", False):
            raise InvalidInput("the connection is inside a transaction", do="commit it before the script")
        await self.execute("BEGIN")

    async def _roll_back(self) -> None:
        rollback = getattr(self._connection, "rollback", None)
        if rollback is None:
            await self.execute("ROLLBACK")
            return
        found = rollback()
        if inspect.isawaitable(found):
            await found


# ── statements ───────────────────────────────────────────────────────────────────────────────────

# What a semicolon may be hidden in, and the semicolon itself.
_TOKEN = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | (\$\w*\$).*?\1 | ;""", re.VERBOSE | re.DOTALL
)
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_TRIGGER = re.compile(r"\s*create\s+(?:temp\s+|temporary\s+)?trigger\b.*\bbegin\b", re.IGNORECASE | re.DOTALL)
_END = re.compile(r"\bend\s*$", re.IGNORECASE)


def split(script: str) -> Iterator[str]:
    """The statements of a script, as SQLite and PostgreSQL write them; without their semicolons."""
    begun = 0
    for token in _TOKEN.finditer(script):
        if token.group() != ";":
            continue
        statement = script[begun : token.start()]
        bare = _COMMENT.sub(" ", statement)
        if _TRIGGER.match(bare) and not _END.search(bare):
            continue  # a semicolon inside the trigger's own block
        begun = token.end()
        if bare.strip():
            yield statement.strip()
    if _COMMENT.sub(" ", script[begun:]).strip():
        yield script[begun:].strip()
