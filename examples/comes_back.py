"""An agent that is cut off in the middle of a file, and goes on there with all it had around it.

python examples/comes_back.py           reads some lines, saves, and crashes
python examples/comes_back.py           comes back: same directory, same variables, next line
python examples/comes_back.py --plan    only tells what would come back
"""

import asyncio
import os
import sys
from pathlib import Path

from perdure import Perdure
from perdure.runtime import Fingerprint

LINES = [f"line {number}" for number in range(1, 11)]


async def main() -> None:
    async with Perdure() as app:
        task = await app.tasks.open("read-the-lines", state={"read": 0})
        rt = await app.runtime(task.id)
        book = the_book()
        await rt.expect(Fingerprint.file(book))
        if "--plan" in sys.argv:
            for unit in (await rt.plan()).units:
                print(f"{unit.name}: {unit.level}, {unit.verdict.reason}")
        elif task.is_finished:
            print("read to the end already")
        elif task.created:
            await begin(rt, book)
        else:
            await carry_on(rt, task)


def the_book() -> Path:
    book = Path("book.txt").absolute()
    if not book.exists():
        book.write_text("\n".join(LINES) + "\n")
    return book


async def begin(rt, book: Path) -> None:
    rt.env["APP_MODE"] = "reading"
    rt.variables["mood"] = "curious"
    file = book.open("rb")
    rt.hold("book", "file_position", file)
    for _ in range(4):
        print(file.readline().decode().strip(), flush=True)
    await rt.save()
    print("crashed", flush=True)
    os._exit(1)


async def carry_on(rt, task) -> None:
    back = await rt.restore()
    print(f"back: {rt.env['APP_MODE']}, {rt.variables['mood']}, lost: {back.report.lost}")
    with rt["book"] as file:
        for line in file:
            print(line.decode().strip())
    await task.complete({"read": len(LINES)})


asyncio.run(main())
