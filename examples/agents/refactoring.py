"""Refactor 42 files with a child for each folder. Kill it anywhere and run it again.

python examples/agents/refactoring.py    # the files are made in src/
"""

import asyncio
from pathlib import Path

from perdure import Perdure, durable, step

app = Perdure()
SOURCE = Path("src")


@step
async def rewrite(file: str) -> int:
    path = SOURCE / file
    await asyncio.sleep(0.01)  # a model thinks
    path.write_text(path.read_text().replace("old_name", "new_name"))  # the same again is the same
    print("rewrote", file, flush=True)
    return 1


@durable
async def refactor_folder(files: list[str]) -> int:
    return sum([await rewrite(file) for file in files])


@durable
async def refactor(files: list[str]) -> int:
    folders: dict[str, list[str]] = {}
    for file in files:
        folders.setdefault(file.split("/")[0], []).append(file)
    children = [await app.start(f"refactor-{name}", refactor_folder, inside) for name, inside in folders.items()]
    return sum([await child.result() for child in children])


def make_files() -> list[str]:
    names = [f"part{number // 6}/file{number}.py" for number in range(42)]
    for name in names:
        path = SOURCE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text(f"old_name({name!r})\n")
    return names


async def main() -> None:
    async with app, app.worker():
        handle = await app.start("refactoring", refactor, make_files())
        print("done:", await handle.result(), "files", flush=True)


asyncio.run(main())
