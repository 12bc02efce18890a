"""Steer a durable function from outside: another instruction half-way, a fork, the kill switch.

python examples/steering.py        # writes ten chapters; after six the goal changes, and the six stay

Everything it does is in ./.perdure; `perdure journal chapters` lists it, call by call.
"""

import asyncio
from contextlib import suppress

from perdure import Perdure, checkpoint, durable, pause, step
from perdure.errors import TaskFailed
from perdure.signals import instruction


@step
async def write(chapter: int, goal: str) -> str:
    print(f"writing chapter {chapter} {goal}")
    return f"chapter {chapter} {goal}"


@durable
async def report(chapters: int) -> list[str]:
    written: list[str] = await checkpoint.last([])
    while len(written) < chapters:
        goal = await instruction("in English")
        written.append(await write(len(written) + 1, goal))
        if len(written) == 6:
            await pause.input("Six are done. Go on?", str)
        await checkpoint.save(written)
    return written


async def main() -> None:
    async with Perdure() as app, app.worker():
        await app.kill_switch.off()  # whoever was killed below has left it on
        handle = await app.start("chapters", report, 10)
        task = await handle.task()
        with suppress(TaskFailed):  # it has completed: this is not the first run
            await app.tasks.wait_for("chapters", status="paused")
            await task.instruct("in French")
            await task.answer("yes")
        await handle.result()

        if await app.tasks.get("chapters-short") is None:
            await task.fork("chapters-short", at="checkpoint.save#3", set={"chapters": 4})
        await app.tasks.wait_for("chapters-short")

        await app.kill_switch.on(why="enough for today")
        await app.start("chapters-2", report, 2)
        print("stopped:", [switch.why for switch in await app.kill_switch.list()])
        await app.kill_switch.off()
        await app.tasks.wait_for("chapters-2")
        for id in ("chapters", "chapters-short", "chapters-2"):
            record = await app.tasks.get(id)
            print(id, len(record.result) if record else "gone")


asyncio.run(main())
