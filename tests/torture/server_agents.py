"""Kill two servers of one store at random under agents that have nothing but an address and a key.

python -m tests.torture --part server-agents --seeds 0-19

Each agent adds items to its task, asks for an approval, and completes, with now one server and now the other. An
operator approves over HTTP too. Each server dies at a random request, at a named place of it or wherever it is after
some acknowledged writes, and is started again on its port. At the end each task is completed, holds each item once and
in order, was approved once, and its chain of events is whole. Even seeds are on SQLite, odd ones on PostgreSQL.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from perdure import Perdure
from perdure._tasks import store_of, verify
from perdure.errors import AlreadyDecided, Conflict, LeaseLost, StoreUnavailable
from tests.support import postgres
from tests.support.http_server import make_key, serving
from tests.support.server_processes import LiveServer, live_server
from tests.support.waiting import look_again

# Where a server dies in a request: before it, between its write and its answer, and amid its answer.
PLACES = ("server.admitted", "server.marked", "server.carried_out", "server.kept", "server.answering")
QUICK = {"PERDURE_SERVER_RATE": "1000000", "PERDURE_SERVER_BURST": "1000000"}


def run(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        url = f"sqlite://{folder}/store/p.db"
        if seed % 2:
            postgres.ensure_server()
            url = stack.enter_context(postgres.fresh_database())
        asyncio.run(check(url, seed))


async def check(url: str, seed: int, *, agents: int = 4, items: int = 8, kills: int = 4) -> None:
    chance = random.Random(seed)
    async with serving(url) as server:
        key = await make_key(server, "admin")
    names = [f"job-{number}" for number in range(agents)]
    with servers(url) as pair:
        traffic = Traffic(len(names))
        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(_work(pair, key, name, items, random.Random(f"{seed} {name}"), traffic))
            group.create_task(_approve(pair, key, traffic))
            for number in range(2):
                group.create_task(_kill(pair, number, kills, random.Random(chance.random()), traffic))
    await _compare(url, names, items)


class Traffic:
    """What was acknowledged to the agents, and how many of them still work."""

    def __init__(self, working: int) -> None:
        self.writes, self.working = 0, working
        self._moved = asyncio.Condition()

    async def acknowledge(self, *, is_last: bool = False) -> None:
        async with self._moved:
            self.writes += 1
            self.working -= is_last
            self._moved.notify_all()

    async def reaches(self, writes: int) -> bool:
        """Wait for so many acknowledged writes; False when the agents have ended before."""
        async with self._moved:
            await self._moved.wait_for(lambda: self.writes >= writes or not self.working)
        return self.working > 0


class Pair:
    """Two servers of one store, each on a port that it keeps."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stacks = [ExitStack(), ExitStack()]
        self._live: list[LiveServer] = [self._start(number, 0) for number in range(2)]
        self.addresses = [f"http://{server.host}" for server in self._live]

    def _start(self, number: int, port: int, **more: str) -> LiveServer:
        return self._stacks[number].enter_context(live_server(self._url, command="serve", port=port, **QUICK, **more))

    def kill(self, number: int, place: str = "") -> None:
        """Kill a server and start it anew. The next one dies by itself at this place."""
        self._stacks[number].close()
        self._live[number] = self._start(number, self._live[number].port, PERDURE_CRASH_AT=place)

    def wait(self, number: int) -> None:
        """Wait for the death of a server."""
        self._live[number].process.wait()

    def close(self) -> None:
        for stack in self._stacks:
            stack.close()


@contextmanager
def servers(url: str) -> Iterator[Pair]:
    pair = Pair(url)
    try:
        yield pair
    finally:
        pair.close()


async def _work(pair: Pair, key: str, name: str, items: int, chance: random.Random, traffic: Traffic) -> None:
    """An agent: whatever it is told, it opens its task again and goes on from what that holds."""
    while True:
        async with Perdure(chance.choice(pair.addresses), key=key) as app:
            try:
                if await _go_on(app, name, items, traffic):
                    return
            except (LeaseLost, Conflict, StoreUnavailable):
                continue


async def _go_on(app: Perdure, name: str, items: int, traffic: Traffic) -> bool:
    """Work until the task is completed (True), or until another attempt is needed."""
    task = await app.tasks.open(name, state={"items": []})
    if task.is_paused:
        await look_again()
        return False
    if not task.is_finished:
        async with task.attempt(take_over=True):
            for number in range(len(task.state["items"]), items):
                await task.append("items", number, once=f"item {number}")
                await traffic.acknowledge()
            if "approval" not in task.state:
                await task.pause("Go on?", reason="human_approval", once="ask")
                return False
            await task.complete(task.state["items"], once="end")
    await traffic.acknowledge(is_last=True)
    return True


async def _approve(pair: Pair, key: str, traffic: Traffic) -> None:
    """An operator: approves whatever is asked, over either server."""
    chance = random.Random(0)
    while traffic.working:
        async with Perdure(chance.choice(pair.addresses), key=key) as app:
            try:
                for item in await app.inbox.page(kinds={"approval"}):
                    await app.inbox.approve(item.id, once=item.id)
            except (AlreadyDecided, StoreUnavailable):
                continue
        await look_again()


async def _kill(pair: Pair, number: int, kills: int, chance: random.Random, traffic: Traffic) -> None:
    for _ in range(kills):
        place = f"{chance.choice(PLACES)}:{chance.randrange(1, 12)}"
        await asyncio.to_thread(pair.kill, number, place)
        death = asyncio.ensure_future(asyncio.to_thread(pair.wait, number))
        enough = asyncio.ensure_future(traffic.reaches(traffic.writes + chance.randrange(3, 12)))
        await asyncio.wait({death, enough}, return_when=asyncio.FIRST_COMPLETED)
        if enough.done() and not enough.result():
            break
        enough.cancel()
    await asyncio.to_thread(pair.kill, number)


async def _compare(url: str, names: list[str], items: int) -> None:
    async with Perdure(url) as app:
        for name in names:
            record = await app.tasks.get(name)
            assert record is not None and record.status == "completed", record
            assert record.state["items"] == record.result == list(range(items)), record.state
            kinds = Counter(event.kind for event in await app.tasks.events(name))
            told = {kind: kinds[kind] for kind in ("created", "paused", "resumed", "completed", "failed")}
            assert told == {"created": 1, "paused": 1, "resumed": 1, "completed": 1, "failed": 0}, (name, told)
        assert (await verify(store_of(app.tasks))).is_whole
