"""Kill the agent, the keeper, or both, at random moments, and see that nothing was lost and nothing done twice.

Each point asks a shell for one command by a new key, kills in the middle of it, and asks again: the shell's counter
must have gone up by exactly one. Beside it live a counting program, a REPL and a question for a secret; they are
looked at now and then, and at the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import threading
from collections import Counter
from typing import Any

from perdure import Perdure
from perdure.runtime import Shell
from tests.runtime.kit import Place, until_text
from tests.support.processes import Link, Nursery, say

TASK = "storm"
ENV = {"HOME": "/", "PS1": "$ "}
COUNTING = "import time\nfor n in range(10**9): print(f'n{n}.', flush=True); time.sleep(0.002)"
VICTIMS = ("agent", "keeper", "both")
# A command takes about this long from asking to its result.
LONGEST_DELAY = 0.03


def command(number: int) -> str:
    return f"N=$((N+1)); echo tick-$N; cd /usr/lib; export LAST={number}"


def agent(link: Link, url: str, number: int) -> None:
    """An agent in the middle of a command."""

    async def work() -> None:
        async with Perdure(url) as app:
            shell = await (await app.runtime(TASK)).shell("main", env=ENV)
            say(link, "begins")
            await shell.run(command(number), key=f"point-{number}")

    asyncio.run(work())


async def storm(place: Place, children: Nursery, points: int, seed: int) -> Counter[str]:
    """How often each was killed."""
    chance, killed = random.Random(seed), Counter[str]()
    async with place.runtime(TASK) as rt:
        shell = await rt.shell("main", env=ENV)
        others = await _others(rt)
        for number in range(1, points + 1):
            victim = chance.choice(VICTIMS)
            await _point(place, children, shell, number, victim, chance.random() * LONGEST_DELAY)
            killed[victim] += 1
            if number % 50 == 0:
                await _look(others)
        await _look(others)
        assert (await shell.run("echo $N $LAST $PWD")).output == f"{points} {points} /usr/lib\n"
        await _check_commands(shell, points)
    return killed


async def _point(place: Place, children: Nursery, shell: Shell, number: int, victim: str, delay: float) -> None:
    bell, child, running = threading.Event(), None, None
    if victim == "keeper":
        running = asyncio.create_task(shell.run(command(number), key=f"point-{number}"))
        await asyncio.sleep(0)
    else:
        await shell.release()
        child = children.start(agent, place.url, number)
        assert child.heard() == "begins"
    keeper = shell._client.about["pid"]
    await asyncio.to_thread(bell.wait, delay)
    if victim != "agent":
        _kill(keeper)
    if child is not None:
        child.kill()
    result = await (running or shell.run(command(number), key=f"point-{number}"))
    assert (result.output, result.exit_code) == (f"tick-{number}\n", 0), (number, victim, delay)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it was replaced a moment before
        os.kill(pid, signal.SIGKILL)


async def _others(rt: Any) -> dict[str, Shell]:
    counting = await rt.shell("count", ["python3", "-c", COUNTING])
    repl = await rt.shell("repl", ["python3", "-q", "-i"])
    await repl.send("x = 41\n")
    asking = await rt.shell("ask", ["bash", "-c", "read -s -p 'password: ' X; echo got:${#X}; exec cat"])
    await until_text(asking, "password: ")
    return {"count": counting, "repl": repl, "ask": asking}


async def _look(others: dict[str, Shell]) -> None:
    """All that lives beside is as it was, and has put out everything once."""
    assert await others["ask"].waiting() == "secret"
    await others["repl"].send("print(x + 1)\n")
    await others["repl"].expect(r"\n42")
    found = await others["count"].read()
    numbers = [int(part[1:]) for part in found.text.replace("\r\n", "").split(".")[1:-1]]
    assert numbers and numbers == list(range(numbers[0], numbers[0] + len(numbers)))


async def _check_commands(shell: Shell, points: int) -> None:
    """Every command is remembered once, in order, with its place in the output."""
    asked = [one for one in await shell.commands() if one.command.startswith("N=")]
    assert [one.command for one in asked] == [command(number) for number in range(points + 1 - len(asked), points + 1)]
    assert all(one.exit_code == 0 and one.start < one.end for one in asked)
    assert [one.start for one in asked] == sorted(one.start for one in asked)
