"""A gigabyte put out by a shell while nobody reads it, and the keeper killed now and then."""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
import threading
from pathlib import Path

from tests.runtime.kit import Place

SIZE = 1_000_000_000
MOST_MEMORY = 80 << 20  # of keeper and anchor
MOST_KEPT = 8 << 20  # of what was put out
_KILLS = 5
_MOST_SECONDS = 1500


def run(seed: int) -> None:
    with tempfile.TemporaryDirectory(prefix="perdure-floods-") as folder:
        place = Place(Path(folder) / "store" / "perdure.db")
        try:
            asyncio.run(_flood(place, random.Random(seed)))
        finally:
            place.clear()


async def _flood(place: Place, chance: random.Random) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env={"HOME": "/", "PS1": "$ "})
        other = await rt.shell("other", env={"HOME": "/", "PS1": "$ "})
        flood = asyncio.create_task(shell.run(f"head -c {SIZE} /dev/zero | tr '\\0' x; echo; echo after"))
        bell = threading.Event()
        for kill in range(_KILLS):
            await asyncio.to_thread(bell.wait, chance.random() * 5)
            assert (await other.run(f"echo {kill}")).output == f"{kill}\n", "a flood holds up others"
            if not flood.done():
                await asyncio.to_thread(place.kill_keeper)
            _check_sizes(place)
        result = await asyncio.wait_for(flood, _MOST_SECONDS)
        assert result.exit_code == 0 and result.end - result.start == SIZE + len("\r\nafter\r\n"), result
        found = await shell.read(result.start)
        assert found.gap > SIZE - MOST_KEPT and "after" in found.text
        _check_sizes(place)


def _check_sizes(place: Place) -> None:
    told = place.ask("status")
    assert sum(told["memory"].values()) < MOST_MEMORY, told["memory"]
    if os.getuid() == 0:  # the anchor lets nobody else look
        folder = f"/proc/{told['anchor']}/fd"
        kept = [f"{folder}/{name}" for name in os.listdir(folder)]
        used = sum(os.stat(fd).st_blocks * 512 for fd in kept if "memfd:perdure" in os.readlink(fd))
        assert used < MOST_KEPT, used
