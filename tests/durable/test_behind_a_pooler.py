"""Durable functions whose store is behind a real PgBouncer in transaction mode."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest

from perdure import Perdure, durable, effect, signals, step
from tests.support.pgbouncer import PgBouncer, pgbouncer_to

done: Counter[str] = Counter()
# Some are under way before PgBouncer is killed, and end after it.
half_way: list[str] = []
may_go_on = asyncio.Event()


@pytest.fixture
def bouncer(postgres_url: str) -> Iterator[PgBouncer]:
    global may_go_on
    done.clear()
    half_way.clear()
    may_go_on = asyncio.Event()
    with pgbouncer_to(postgres_url) as between:
        yield between


@step
async def read_behind(what: str) -> str:
    return what


@effect
async def send_behind(what: str) -> str:
    done[what] += 1
    return what


@durable
async def mail_behind(name: str, many: int) -> str:
    for number in range(many):
        await send_behind(await read_behind(f"{name}-{number}"))
    half_way.append(name)
    await may_go_on.wait()
    for number in range(many, 2 * many):
        await send_behind(await read_behind(f"{name}-{number}"))
    return await signals.next("go", str)


@pytest.mark.req("R64")
async def test_each_effect_happens_once_though_the_pooler_is_killed_in_the_middle(bouncer: PgBouncer) -> None:
    names = [f"mail-{number}" for number in range(20)]
    async with Perdure(bouncer.url) as app:
        work = [asyncio.ensure_future(app.run(name, mail_behind, name, 5)) for name in names]
        while len(half_way) < len(names):
            await asyncio.sleep(0)
        bouncer.kill()
        may_go_on.set()
        await asyncio.sleep(0)
        bouncer.start()
        for name in names:
            await (await app.tasks.open(name)).signal("go", name)
        assert await asyncio.gather(*work) == names
    assert done == {f"{name}-{number}": 1 for name in names for number in range(10)}


async def test_a_worker_finds_what_others_have_started(bouncer: PgBouncer) -> None:
    may_go_on.set()
    async with Perdure(bouncer.url) as starter, Perdure(bouncer.url) as other, other.worker():
        handle = await starter.start("mail", mail_behind, "mail", 2)
        await (await handle.task()).signal("go", "gone")
        assert await handle.result() == "gone"
    assert done == {f"mail-{number}": 1 for number in range(4)}
