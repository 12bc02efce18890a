"""Reads twelve chapters, remembering each; kill it half-way and start it again.

python examples/first_hour.py        # Ctrl-C or kill -9 it, then run the same line again
"""

import asyncio
import sys

from perdure import Perdure

PAUSE = float(sys.argv[1]) if len(sys.argv) > 1 else 0.3


async def main() -> None:
    async with Perdure() as app:
        task = await app.tasks.open("read-the-book", state={"chapter": 0, "words": 0})
        if task.is_finished:
            record = await task.record()
            print("finished already:", record.result)
            return
        print("new task" if task.created else f"carrying on after chapter {task.state['chapter']}")
        for chapter in range(task.state["chapter"] + 1, 13):
            await asyncio.sleep(PAUSE)  # the work
            await task.checkpoint({"chapter": chapter, "words": task.state["words"] + 1000 + chapter})
            print("chapter", chapter, "done", flush=True)
        await task.complete({"words": task.state["words"]})
        print("all done:", task.state["words"], "words")


asyncio.run(main())
