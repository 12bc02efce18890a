"""Start a job elsewhere once, look at it now and then, and go on with its result; also after a restart.

python examples/patterns/external_job.py FILE     # the job is done when FILE is there
"""

import asyncio
import sys
from pathlib import Path

from perdure import Perdure, durable, effect, pause
from perdure.effects import DID_NOT_HAPPEN, Happened


def was_submitted(file: str) -> object:
    """Look at the other side: is there a job of ours?"""
    ticket = Path(f"{file}.ticket")
    return Happened(ticket.read_text()) if ticket.exists() else DID_NOT_HAPPEN


@effect(verify=was_submitted)
def submit(file: str) -> str:
    Path(f"{file}.ticket").write_text("job-7")
    print("submitted", flush=True)
    return "job-7"


def result_in(file: str) -> str | None:
    return Path(file).read_text() if Path(file).exists() else None


@durable
async def build(file: str) -> str:
    job = submit(file)

    async def finished() -> str | None:
        return result_in(file)

    result = await pause.poll(finished, every="200ms", what=f"build {job}")
    return f"{job}: {result}"


async def main(file: str) -> None:
    async with Perdure() as app, app.worker():
        handle = await app.start(f"build-{file}", build, file)
        print("result:", await handle.result(), flush=True)


if len(sys.argv) < 2:
    sys.exit(__doc__)
asyncio.run(main(sys.argv[1]))
