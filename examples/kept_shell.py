"""A shell that outlives this script: run it twice, and the second run finds what the first one set.

python examples/kept_shell.py          starts a shell and counts in it
python examples/kept_shell.py          the same shell, and its variables
python examples/kept_shell.py --end    ends it
"""

import asyncio
import sys

from perdure import Perdure


async def main() -> None:
    async with Perdure() as app:
        await app.tasks.open("kept-shell", state={})
        runtime = await app.runtime("kept-shell")
        shell = await runtime.shell("main", rebuild="auto")
        if "--end" in sys.argv:
            await shell.end()
            print("ended")
            return
        counted = await shell.run("COUNT=$((COUNT + 1)); echo $COUNT times, in process $$")
        print(f"{shell.level}: {counted.output.strip()}")


asyncio.run(main())
