"""A server that outlives the agent that started it. Run this twice: the second run finds the server of the first.

python examples/kept_server.py          starts it
python examples/kept_server.py          finds it: the same process, with its log and its counter
python examples/kept_server.py --end    ends it
"""

import asyncio
import sys
import urllib.request
from pathlib import Path

from perdure import Perdure
from perdure.runtime import port

PORT = int(sys.argv[sys.argv.index("--port") + 1]) if "--port" in sys.argv else 8765
COUNTER = Path(__file__).with_name("counting_server.py")


async def main() -> None:
    async with Perdure() as app:
        await app.tasks.open("build-the-site", state={})
        runtime = await app.runtime("build-the-site")
        web = await runtime.service("web", [sys.executable, str(COUNTER), str(PORT)], ready=port(PORT))
        if "--end" in sys.argv:
            await web.end()
            print("ended")
            return
        print(f"{web.level}: process {web.pid}, asked {ask()} times")


def ask() -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/") as answer:
        return str(answer.read().decode())


asyncio.run(main())
