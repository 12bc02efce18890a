"""Sessions and stores that are away or flooded for real: two gigabytes nobody reads, forty seconds without a database.

python -m tests.torture --part outages --seeds 0-1
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import threading
import time
from pathlib import Path

from perdure import Perdure, durable, step
from tests.sessions import acts
from tests.sessions.kit import Stage
from tests.support import postgres
from tests.support.processes import nursery
from tests.support.proxy import Proxy

MEGABYTES = 2048
AWAY_SECONDS = 40.0
_MOST_KB = 120_000


def run(seed: int) -> None:
    if seed % 2 == 0:
        asyncio.run(_nobody_reads())
    else:
        asyncio.run(_database_away())


async def _nobody_reads() -> None:
    """A client asks for two gigabytes, reads nothing and is killed: the result is counted, and fills no memory."""
    with contextlib.ExitStack() as things:
        folder = Path(things.enter_context(tempfile.TemporaryDirectory(prefix="pdo-")))
        children = things.enter_context(nursery())
        url = things.enter_context(postgres.fresh_database())
        stage = things.enter_context(Stage(children, folder, url))
        stage.outside("CREATE TABLE t (x int)")
        await stage.open()
        client = stage.client(acts.read_nothing, MEGABYTES)
        client.heard()
        proxy = stage.proxies[-1].pid
        client.kill()
        state = stage.wait("alone")
        assert state["discarded"] > (MEGABYTES - 50) * 1_000_000, state["discarded"]
        assert state["outcome"]["rows"] == MEGABYTES and state["transaction"] == "open"
        with open(f"/proc/{proxy}/status") as status:
            peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
        assert peak < _MOST_KB, f"the proxy took {peak} kB"


async def _database_away() -> None:
    """The store's database is away for forty seconds in the middle of a task: it stays running, nothing is doubled."""
    ran: list[int] = []
    go = threading.Event()

    @step(flush=True)
    async def work(number: int) -> int:
        ran.append(number)
        if number == 2:
            go.set()
        return number

    @durable(name="outage")
    async def outage() -> int:
        return sum([await work(number) for number in range(5)])

    with postgres.fresh_database() as url, contextlib.closing(Proxy(url)) as way:
        async with Perdure(way.url) as app, Perdure(url) as outside:
            going = asyncio.ensure_future(app.run("outage", outage))
            await asyncio.to_thread(go.wait)
            way.refuse_next(1_000_000)
            way.cut()
            await asyncio.to_thread(time.sleep, AWAY_SECONDS)
            record = await outside.tasks.get("outage")
            assert record is not None and record.status == "running"
            way.refuse_next(0)
            assert await going == 10
            record = await outside.tasks.get("outage")
            assert record is not None and len(record.attempts) == 1
    assert ran == [0, 1, 2, 3, 4]
