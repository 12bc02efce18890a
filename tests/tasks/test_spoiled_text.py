"""Text that is not UTF-8 in any column of a SQLite store: it spoils the task it belongs to, and no other."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from perdure import Perdure, durable, effect
from perdure._durable import where
from perdure._tasks import examine
from perdure.errors import PerdureError
from tests.support.journals import calls_of

done: list[str] = []


@effect
async def send(what: str) -> str:
    done.append(what)
    return what


@durable(name="send two")
async def work(who: str) -> str:
    return await send(f"{who} one") + await send(f"{who} two")


def text_columns(path: Path) -> list[tuple[str, str]]:
    connection = apsw.Connection(str(path))
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    found = [
        (str(table), str(column))
        for table in tables
        for _, column, kind, *_ in connection.execute(f"PRAGMA table_info({table})").fetchall()
        if kind == "TEXT" and connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchall()
    ]
    connection.close()
    return [(table, column) for table, column in found if table != "migrations"]


def spoil(path: Path, table: str, column: str, uid: str) -> bool:
    connection = apsw.Connection(str(path))
    names = [str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})").fetchall()]
    own = next((name for name in ("task_uid", "uid", "owner") if name in names), None)
    spoiled = f"CAST(CAST({column} AS BLOB) || x'ff' AS TEXT)"
    which = f"WHERE {column} IS NOT NULL AND " + (f"{own} = ?" if own else "? <> ''")
    connection.execute(f"UPDATE {table} SET {column} = {spoiled} {which}", (uid,))
    changed = connection.changes() > 0
    connection.close()
    return changed


@pytest.mark.req("R95")
async def test_a_text_that_is_not_utf_8_spoils_its_own_task_at_most(tmp_path: Path) -> None:
    first = tmp_path / "first"
    async with Perdure(f"sqlite:///{first}/p.db") as app:
        for who in ("bad", "good"):
            await app.run(who, work, who)
        uid = (await app.tasks.handle("bad")).uid
    spoiled = 0
    for table, column in text_columns(first / "p.db"):
        folder = tmp_path / f"{table}.{column}"
        shutil.copytree(first, folder)
        if not spoil(folder / "p.db", table, column, uid):
            continue
        spoiled += 1
        done.clear()
        async with Perdure(f"sqlite:///{folder}/p.db") as app:
            assert "good" in [task.id for task in await app.tasks.list()], (table, column)
            assert await app.run("good", work, "good") == "good onegood two"
            assert (await where(app.tasks, "good")).status == "completed"
            problems = [one.what for one in await examine(app._store) if one.level == "problem"]
            assert any(f"{table}.{column}" in what for what in problems), (table, column, problems)
            for look in (where(app.tasks, "bad"), calls_of(app, "bad"), app.journal.outline("bad")):
                with suppress(PerdureError):  # in our words, or shown
                    await look
        assert done == [], (table, column)
    assert spoiled > 15
