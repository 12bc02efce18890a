"""A session's process or its server dies under a living agent: the function goes on, and never sees a broken link."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from perdure import Perdure
from perdure._durable import durable, effect, step
from perdure._runtime.sessions.sqlite import open_sqlite
from perdure.errors import SessionLost
from tests.durable.effects_kit import until_paused
from tests.sessions.acts import one
from tests.sessions.kit import Stage, rows

INSERT = "INSERT INTO t VALUES (%s)"


pytestmark = pytest.mark.usefixtures("table")


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/perdure.db"


class Once:
    """Does something the first time it is called."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self._act, self.times = act, 0

    def __call__(self) -> None:
        self.times += 1
        if self.times == 1:
            self._act()


def _kill_all(stage: Stage) -> None:
    stage.kill_proxy()
    stage.kill_parking()


def _end_backend(stage: Stage) -> None:
    others = "datname = current_database() AND pid <> pg_backend_pid()"
    stage.outside(f"SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE {others}")


BREAKS: dict[str, Callable[[Stage], None]] = {
    "proxy": Stage.kill_proxy,
    "proxy and parking": _kill_all,
    "backend": _end_backend,
}


@pytest.mark.req("R79")
@pytest.mark.parametrize("breaks", BREAKS)
@pytest.mark.parametrize("in_steps", [True, False])
async def test_a_block_whose_link_breaks_is_finished_with_each_row_once(
    stage: Stage, store: str, breaks: str, in_steps: bool
) -> None:
    break_it = Once(lambda: BREAKS[breaks](stage))
    seen: list[Exception] = []

    @step
    async def insert(con: Any, x: int) -> None:
        await con.execute(INSERT, (x,))

    @durable
    async def move() -> int:
        con = await (await stage.open()).connect()
        try:
            async with con.transaction():
                for x in range(4):
                    if x == 2:
                        break_it()
                    await (insert(con, x) if in_steps else con.execute(INSERT, (x,)))
        except Exception as error:
            seen.append(error)
            raise
        return 4

    async with Perdure(store) as app:
        assert await app.run("move", move) == 4
    assert (rows(stage), seen, break_it.times) == ([0, 1, 2, 3], [], 2)


@pytest.mark.parametrize("place", ["enter", "commit", "without a block", "savepoint", "read"])
async def test_wherever_the_link_breaks_the_function_goes_on(stage: Stage, store: str, place: str) -> None:
    break_it = Once(stage.kill_proxy)

    @step
    async def insert_inside(con: Any, x: int) -> None:
        async with con.transaction():
            await con.execute(INSERT, (x,))
            if place == "savepoint":
                break_it()

    @durable
    async def move() -> int:
        session = await stage.open()
        con = await session.connect()
        if place == "enter":
            break_it()
        if place == "without a block":
            await con.execute(INSERT, (1,))
            await insert_inside(con, 2)
            break_it()
            await con.commit()
        else:
            async with con.transaction():
                await con.execute(INSERT, (1,))
                await insert_inside(con, 2)
                if place == "commit":
                    break_it()
        if place == "read":
            break_it()
        return int((await one(con, "SELECT count(*) FROM t"))[0])

    async with Perdure(store) as app:
        assert await app.run("move", move) == 2
    assert rows(stage) == [1, 2] and break_it.times > 0


async def test_a_timeout_around_a_statement_and_another_branch_at_work_do_not_matter(stage: Stage, store: str) -> None:
    break_it, others = Once(stage.kill_proxy), []
    may_end = asyncio.Event()

    @step
    async def other() -> str:
        others.append("began")
        await may_end.wait()
        return "done"

    @durable
    async def move() -> str:
        con = await (await stage.open()).connect()
        beside = asyncio.create_task(other())
        while not others:
            await asyncio.sleep(0)
        async with asyncio.timeout(3600), con.transaction():
            break_it()
            asyncio.get_running_loop().call_soon(may_end.set)
            await con.execute(INSERT, (1,))
        return await beside

    async with Perdure(store) as app:
        assert await app.run("move", move) == "done"
    assert (rows(stage), others) == ([1], ["began"])


async def test_a_statement_that_breaks_its_session_each_time_is_not_repeated_for_ever(stage: Stage, store: str) -> None:
    tries: list[int] = []

    @durable
    async def move() -> None:
        con = await (await stage.open()).connect()
        async with con.transaction():
            tries.append(len(tries))
            stage.kill_proxy()
            await con.execute(INSERT, (1,))

    async with Perdure(store) as app:
        with pytest.raises(SessionLost, match="broke 4 times at the same place"):
            await app.run("move", move)
    assert (tries, rows(stage)) == ([0, 1, 2, 3], [])


async def test_a_newer_client_is_not_a_broken_link(stage: Stage, store: str) -> None:
    tries: list[int] = []

    @durable
    async def move() -> None:
        session = await stage.open()
        con = await session.connect(autocommit=True)
        await session.connect(autocommit=True)
        tries.append(1)
        await con.execute(INSERT, (1,))

    async with Perdure(store) as app:
        with pytest.raises(psycopg.OperationalError, match="newer client"):
            await app.run("move", move)
    assert (tries, rows(stage)) == ([1], [])


async def test_an_effect_whose_link_breaks_is_uncertain_and_not_run_again(stage: Stage, store: str) -> None:
    runs: list[int] = []

    @effect
    async def insert(x: int) -> None:
        runs.append(x)
        con = await (await stage.open()).connect(autocommit=True)
        stage.kill_proxy()
        await con.execute(INSERT, (x,))

    @durable
    async def move() -> None:
        await insert(1)

    async with Perdure(store) as app:
        assert (await until_paused(app, "move", move)).reason == "human_input"
        assert runs == [1]


async def test_a_holder_that_dies_under_its_agent(stage: Stage, store: str, tmp_path: Path) -> None:
    path = tmp_path / "books.db"
    with apsw.Connection(str(path)) as made:
        made.execute("CREATE TABLE t (x)")
    break_it = Once(stage.kill_proxy)

    @durable
    async def move() -> int:
        db = await open_sqlite(stage.place, "books", path)
        async with db.transaction():
            for x in range(4):
                if x == 2:
                    break_it()
                await db.execute("INSERT INTO t VALUES (?)", (x,))
        return int((await db.fetch("SELECT count(*) FROM t"))[0][0])

    async with Perdure(store) as app:
        assert await app.run("move", move) == 4
    assert break_it.times == 2
