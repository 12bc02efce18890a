"""One item of work per file: each is done once, also when the process is killed between two of them.

python examples/patterns/per_file.py FOLDER        # writes FOLDER/out/NAME for each FOLDER/*.txt
"""

import asyncio
import sys
from pathlib import Path

from perdure import Perdure, durable, step


@step(flush=True)
def shout(path: str, out: str) -> str:
    """May be repeated when it was cut off: writing the same file again changes nothing."""
    target = Path(out) / Path(path).name
    target.parent.mkdir(exist_ok=True)
    target.write_text(Path(path).read_text().upper())
    print("done", target.name, flush=True)
    return str(target)


@step
def list_files(folder: str) -> list[str]:
    """A step too, so that files that come later do not change what was begun."""
    return sorted(str(path) for path in Path(folder).glob("*.txt"))


@durable
async def shout_all(folder: str) -> list[str]:
    out = f"{folder}/out"
    return [shout(path, out) for path in list_files(folder)]


async def main(folder: str) -> None:
    async with Perdure() as app:
        done = await app.run(f"shout-{folder.rpartition('/')[2]}", shout_all, folder)
        print(len(done), "files")


if len(sys.argv) < 2:
    sys.exit(__doc__)
asyncio.run(main(sys.argv[1]))
