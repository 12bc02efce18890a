"""What wakes a durable function and has no place in its journal is named by its line, when it happens first."""

from __future__ import annotations

import asyncio
import inspect
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, durable, effect, recorded, step
from perdure._durable.attempt.timing import unrecorded_wake_ups as unrecorded_wakeups
from tests.replay.kit import play
from tests.support import loops

Told = Callable[[], list[str]]
doze = asyncio.sleep


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    unrecorded_wakeups._told.clear()
    yield
    unrecorded_wakeups._told.clear()


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Told:
    return lambda: [record.getMessage() for record in caplog.records if record.name == "perdure.durable"]


def _place(function: Callable[..., Any]) -> str:
    lines, first = inspect.getsourcelines(function)
    return f"{Path(__file__)}:{first + next(n for n, line in enumerate(lines) if '# here' in line)}"


async def from_a_socket() -> bytes:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.send(b"x")
        return await asyncio.get_running_loop().sock_recv(ours, 1)  # here


async def from_a_stream() -> bytes:
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.send(b"x\n")
        reader, writer = await asyncio.open_connection(sock=ours)  # here
        try:
            return await reader.readline()
        finally:
            writer.close()
            await writer.wait_closed()


async def from_a_child() -> int:
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", "")  # here
    return await child.wait()


async def from_a_thread() -> str:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[str] = loop.create_future()
    thread = threading.Thread(target=loop.call_soon_threadsafe, args=(future.set_result, "x"))
    loop.call_soon(thread.start)
    found = await future  # here
    thread.join()
    return found


async def from_a_pool() -> int:
    with ThreadPoolExecutor(1) as pool:
        go = threading.Event()
        future = pool.submit(go.wait, 20)
        asyncio.get_running_loop().call_soon(go.set)
        return await asyncio.futures.wrap_future(future)  # here


async def from_a_signal() -> None:
    loop = asyncio.get_running_loop()
    came = asyncio.Event()
    loop.add_signal_handler(signal.SIGUSR1, came.set)  # here
    try:
        signal.raise_signal(signal.SIGUSR1)
        await came.wait()
    finally:
        loop.remove_signal_handler(signal.SIGUSR1)


WAKERS = [from_a_socket, from_a_stream, from_a_child, from_a_thread, from_a_pool, from_a_signal]


@pytest.mark.req("R67")
@pytest.mark.parametrize("kind", loops.KINDS)
@pytest.mark.parametrize("waker", WAKERS)
def test_it_is_named_in_the_body_and_not_in_a_step(waker: Callable[[], Awaitable[Any]], kind: str, told: Told) -> None:
    loops.skip_unless_here(kind)

    @step
    async def wrapped() -> None:
        await waker()

    loops.run(kind, play(wrapped)).result()
    assert told() == []
    for _ in range(2):
        loops.run(kind, play(waker)).result()
    message, *others = told()  # others: a stream and a child wake it again, in another line
    assert len({one.partition(" ")[0] for one in (message, *others)}) == 1 + len(others)
    assert message.startswith(f"{_place(waker)} in the durable function of task 'the-task' ")
    assert message.endswith("Do it in a step")


async def test_a_connection_that_was_opened_elsewhere_is_noticed_when_it_wakes_the_code(told: Told) -> None:
    await play(doze, 0)  # from its first attempt on, a loop is looked at
    ours, theirs = socket.socketpair()
    with theirs:
        reader, writer = await asyncio.open_connection(sock=ours)

        async def program() -> bytes:
            asyncio.get_running_loop().call_soon(theirs.send, b"x\n")
            return await reader.readline()  # here

        (await play(program)).result()
        (message,) = told()
        assert message.startswith(_place(program)) and "is woken by a socket or pipe" in message
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize("kind", loops.KINDS)
def test_nothing_that_is_recorded_is_named(kind: str, told: Told, tmp_path: Path) -> None:
    loops.skip_unless_here(kind)

    @step
    async def work() -> int:
        return await asyncio.to_thread(int, "5")

    @effect(keyed=True)
    async def mail() -> int:
        return 5

    @durable(name=f"all of it on {kind}")
    async def agent() -> int:
        await doze(0.0001)
        with ThreadPoolExecutor(1) as pool:
            found = await asyncio.get_running_loop().run_in_executor(pool, int, "5")
            await asyncio.wrap_future(pool.submit(int, "5"))
        await asyncio.gather(work(), mail(), doze(0.0001), asyncio.to_thread(int))
        recorded.now()
        return found

    async def main() -> int:
        async with Perdure(tmp_path / "perdure.db") as app:
            return await app.run("task", agent)

    assert loops.run(kind, main()) == 5
    assert told() == []
