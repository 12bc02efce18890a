"""A migration as anybody would write it, killed again and again from outside until it has ended.

One round is one task. Its agent is killed at a random moment, and with it, by the dice, the process that holds the
session, and the one that keeps the connection for that; then another agent goes on. At the end every row of the
migration is there once, and at no time was a part of it seen from outside.
"""

from __future__ import annotations

import contextlib
import random
import time
from pathlib import Path
from typing import Any, Literal

import apsw
import psycopg

from perdure import Perdure
from perdure._durable import durable, step
from perdure._runtime.sessions.postgres import open_postgres
from perdure._runtime.sessions.session_processes import SessionPlace
from perdure._runtime.sessions.sqlite import open_sqlite
from tests.sessions.kit import Stage
from tests.support.processes import Child, Link, say

ROWS = 24
KILLS = 4  # of one task, at most
LONGEST = 0.02  # seconds from the first statement to the kill; a migration takes about as long
SHAPES = ("block", "steps", "bare", "mixed")
Engine = Literal["postgres", "sqlite"]
# Whose death comes with the agent's: nobody's, the session's process, and the parking of its connection.
VICTIMS = ((), ("holder",), ("holder", "parking"))

place: dict[str, Any] = {}


@step
async def insert(con: Any, number: int, row: int) -> int:
    mark = "%s" if place["engine"] == "postgres" else "?"
    await con.execute(f"INSERT INTO moved VALUES ({mark}, {mark})", (number, row))
    return row


@step
async def insert_two(con: Any, number: int, row: int) -> None:
    mark = "%s" if place["engine"] == "postgres" else "?"
    for one in (row, row + 1):
        await con.execute(f"INSERT INTO moved VALUES ({mark}, {mark})", (number, one))


async def _opened(number: int) -> Any:
    where = SessionPlace(Path(place["folder"]), Path(place["parking"]))
    if place["engine"] == "sqlite":
        return await open_sqlite(where, f"main-{number}", place["url"])
    session = await open_postgres(where, f"main-{number}", place["url"], hold="10m", rebuild=place["rebuild"])
    return await session.connect()


async def _counted(con: Any, number: int) -> int:
    sql = f"SELECT count(*) FROM moved WHERE number = {number}"
    if place["engine"] == "sqlite":
        return int((await con.fetch(sql))[0][0])
    return int((await (await con.execute(sql)).fetchone())[0])


@durable(name="sessions.migration")
async def migrate(number: int, shape: str) -> int:
    """No line of it knows that it may be killed."""
    con = await _opened(number)
    if shape in ("block", "steps"):
        async with con.transaction():
            await _move(con, number, shape)
    else:
        if place["engine"] == "sqlite":
            await con.execute("BEGIN IMMEDIATE")
        await _move(con, number, shape)
        await (con.execute("COMMIT") if place["engine"] == "sqlite" else con.commit())
    return await _counted(con, number)


async def _move(con: Any, number: int, shape: str) -> None:
    mark = "%s" if place["engine"] == "postgres" else "?"
    place["begun"]()
    for row in range(0, ROWS, 2):
        if shape == "steps":
            await insert(con, number, row)
            await insert(con, number, row + 1)
        elif shape == "mixed":
            await insert_two(con, number, row)
        else:
            await con.execute(f"INSERT INTO moved VALUES ({mark}, {mark})", (number, row))
            await insert(con, number, row + 1)
        if row % 8 == 0:
            found = await _counted(con, number)
            assert found == row + 2, f"{found} rows in the transaction, not {row + 2}"


@durable(name="sessions.many-steps")
async def many_steps(number: int, rows: int) -> int:
    con = await _opened(number)
    async with con.transaction():
        for row in range(rows):
            await insert(con, number, row)
            if row % 500 == 250:
                place["begun"]()
    return rows


async def be_long_agent(link: Link, where: dict[str, Any], store: str, number: int, rows: int) -> int:
    place.update(where, begun=lambda: say(link, "begun"))
    async with Perdure(store) as app:
        found: int = await app.run(f"steps-{number}", many_steps, number, rows)
        return found


async def be_agent(link: Link, where: dict[str, Any], store: str, number: int, shape: str) -> int:
    place.update(where, begun=lambda: say(link, "begun"))
    async with Perdure(store) as app:
        found: int = await app.run(f"migration-{number}", migrate, number, shape)
        return found


class Migrations:
    """Rounds of one engine, in one session."""

    def __init__(self, stage: Stage, engine: Engine, folder: Path, *, rebuild: str = "auto") -> None:
        self.stage, self.engine = stage, engine
        self.url = stage.url if engine == "postgres" else str(folder / "moved.db")
        self.store = f"sqlite://{folder}/perdure.db"
        self.kills = 0
        self.where = {
            "engine": engine,
            "folder": str(stage.folder),
            "parking": str(stage.parking),
            "url": self.url,
            "rebuild": rebuild,
        }
        self._outside("CREATE TABLE moved (number int, row int)")

    async def round(self, seed: int) -> None:
        dice = random.Random(seed)
        shape = dice.choice(SHAPES)
        for _ in range(dice.randrange(1, KILLS + 1)):
            agent = await self._begin(seed, shape)
            if agent.heard() != "begun":
                break  # it had ended before, and only told so again
            self._kill(dice, agent)
            assert self._rows(seed) in (0, ROWS), "a part of it is seen from outside"
        said = self._end_of(await self._begin(seed, shape))
        assert said == ROWS, f"{said} rows are counted, not {ROWS}"
        rows = self._outside(f"SELECT row FROM moved WHERE number = {seed} ORDER BY row")
        assert rows == list(range(ROWS)), rows
        await (await self._session(seed)).end()

    def _end_of(self, agent: Child) -> Any:
        said = agent.heard()
        while said == "begun":
            said = agent.heard()
        agent.wait()
        return said

    async def _begin(self, seed: int, shape: str) -> Child:
        """An agent; the session is there, so that its process is one that can be killed."""
        session = await self._session(seed)
        if self.engine == "sqlite":
            await session.close()
        return self.stage.children.start(be_agent, self.where, self.store, seed, shape)

    async def _session(self, seed: int) -> Any:
        if self.engine == "sqlite":
            return await open_sqlite(self.stage.place, f"main-{seed}", self.url)
        how = {"hold": "10m", "rebuild": self.where["rebuild"]}
        return await open_postgres(self.stage.place, f"main-{seed}", self.url, **how)

    def _kill(self, dice: random.Random, agent: Child) -> None:
        end = time.perf_counter() + dice.random() * LONGEST
        while time.perf_counter() < end:
            pass
        victims = dice.choice(VICTIMS)
        order = dice.sample(["agent", *victims], 1 + len(victims))
        for victim in order:
            if victim == "agent":
                agent.kill()
            elif victim == "holder":
                self.stage.kill_proxy()
            else:
                self._kill_parking()
        self.kills += 1
        with contextlib.suppress(Exception):
            agent.rest()

    def _kill_parking(self) -> None:
        self.stage.parker.kill()
        self.stage.parking.unlink()
        self.stage.__enter__()

    def _rows(self, seed: int) -> int:
        return int(self._outside(f"SELECT count(*) FROM moved WHERE number = {seed}")[0])

    def _outside(self, sql: str) -> list[Any]:
        """What others see."""
        if self.engine == "sqlite":
            other = apsw.Connection(self.url)
            other.set_busy_timeout(10_000)
            try:
                return [row[0] for row in other.execute(sql)]
            finally:
                other.close()
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return [row[0] for row in cursor] if cursor.description else []
