"""Shells through the keeper, beside a bare terminal; finding one again; the memory of the keeper."""

from __future__ import annotations

import asyncio
import os
import select
import subprocess
import sys
import time

from perdure._runtime import Runtime, Shell, runtime_of
from perdure._runtime import keeper_control as keeping
from perdure._store import Store
from perdure._tasks import store_of
from perdure.bench.figures import Budget, Figure, figure_of
from perdure.bench.lines.spools import spool
from perdure.bench.rounds import middle_ms, middle_ms_of, take_turns
from perdure.bench.stage import Plot
from perdure.keeper import Channel

_MB = 1_000_000
_MEMORY_MB = 45.0


async def shells(plot: Plot, quick: bool) -> list[Figure]:
    """Measure on one engine only, because the keeper does not depend on the store."""
    if plot.engine != "sqlite":
        return []
    async with plot.app() as app:
        task = await app.tasks.open("bench", state={})
        rt = await app.runtime("bench")
        try:
            echoing = await rt.shell("echo", ["cat"])
            figures = [await _echo(echoing, quick), await _flow(rt, quick)]
            figures.append(await _found_again(store_of(app.tasks), task.uid, echoing.uid, quick))
            figures.append(await spool(rt, quick))
            figures.append(await _memory(store_of(app.tasks)))
        finally:
            await keeping.stop(store_of(app.tasks), units_too=True)
    return figures


class BareTerminal:
    """A program on a terminal, without a keeper."""

    def __init__(self, *argv: str) -> None:
        self.master, slave = os.openpty()
        self._process = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
        os.close(slave)

    def echo(self) -> None:
        os.write(self.master, b"x\n")
        found = b""
        while found.count(b"x") < 2:
            found += os.read(self.master, 4096)

    def drain(self) -> int:
        size = 0
        while True:
            select.select([self.master], [], [])
            try:
                size += len(os.read(self.master, 65536))
            except OSError:
                return size

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self.master)


async def _echo(shell: Shell, quick: bool) -> Figure:
    times, at = (50 if quick else 300), 0

    async def once() -> None:
        nonlocal at
        waiting = asyncio.ensure_future(
            _until(shell, at + 6)
        )  # x\r\n twice: once from the terminal's echo, once from the program
        await shell.send("x\n")
        at = await waiting

    bare = BareTerminal("cat")
    try:
        rounds = await take_turns(
            3 if quick else 7,
            {"floor": lambda: middle_ms(bare.echo, times), "ours": lambda: middle_ms_of(once, times)},
        )
    finally:
        bare.close()
    bound = rounds["floor"].median + 0.3
    budget = Budget(bound, "≤ a bare terminal + 0.3 ms")
    return figure_of("shell", "a line through a shell and back", "ms", rounds, floor_is="bare PTY", budget=budget)


async def _until(shell: Shell, offset: int) -> int:
    at = 0
    while at < offset:
        reply = await shell.ask("wait", start=max(at, offset - 1), seconds=5)
        at = int(reply.args["end"])
    return at


async def _flow(rt: Runtime, quick: bool) -> Figure:
    size = (5 if quick else 40) * _MB
    script = f"head -c {size} /dev/zero | tr '\\0' x"
    number = 0

    async def ours() -> float:
        nonlocal number
        number += 1
        began = time.perf_counter()
        shell = await rt.shell(f"flow-{number}", ["sh", "-c", script])
        await _until(shell, size)
        return size / _MB / (time.perf_counter() - began)

    def floor() -> float:
        began = time.perf_counter()
        bare = BareTerminal("sh", "-c", script)
        bare.drain()
        bare.close()
        return size / _MB / (time.perf_counter() - began)

    rounds = await take_turns(1 if quick else 3, {"floor": floor, "ours": ours})
    return figure_of("shell", f"{size // _MB} MB put out by a shell", "MB/s", rounds, floor_is="bare PTY")


async def _found_again(store: Store, uid: str, unit: str, quick: bool) -> Figure:
    times = 10 if quick else 50

    async def once() -> None:
        rt = runtime_of(store, "bench", uid)
        rt._client = type(rt._client)(rt._client.home)
        await rt.shell("echo", ["cat"])
        rt._client.close()

    where = keeping.socket_of(store)

    def bare() -> None:
        with Channel(where) as channel:
            channel.ask("release", {"unit": unit})

    rounds = await take_turns(3, {"floor": lambda: middle_ms(bare, times), "ours": lambda: middle_ms_of(once, times)})
    return figure_of(
        "shell",
        "a new connection finds a shell",
        "ms",
        rounds,
        floor_is="a connection and one question, blocking",
        budget=Budget(2.0, "≤ 2 ms"),
    )


async def _memory(store: Store) -> Figure:
    found = await keeping.status(store)
    assert found is not None
    floor = 2 * _bare_memory()
    return Figure(
        name="shell",
        what="anchor and keeper, resident",
        unit="MB",
        figure=found.memory / _MB,
        floor=floor / _MB,
        floor_is="two bare interpreters",
        budget=Budget(_MEMORY_MB, f"≤ {_MEMORY_MB:g} MB"),
    )


def _bare_memory() -> int:
    """The resident bytes of an interpreter that does nothing."""
    script = "import os; print(open('/proc/self/statm').read().split()[1], os.sysconf('SC_PAGE_SIZE'))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    pages, size = done.stdout.split()
    return int(pages) * int(size)
