"""A full disk under the keeper: told as such, nothing done twice, and all goes on when there is space again."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, errors
from perdure._runtime.keeper_client import keeper_control as keeping
from tests.crash.test_disk_full import _mount
from tests.runtime.kit import PATIENCE
from tests.support.processes import Link, nursery

ENV = {"HOME": "/", "PS1": "$ "}


@pytest.mark.req("R83")
def test_a_full_disk_holds_up_no_unit_and_nothing_is_done_twice(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    with nursery() as children:
        found = children.run(on_a_full_disk, disk)
    if found is None:
        pytest.skip("no disk may be mounted here")
    assert found == {
        "an open shell": "StoreFull",  # its key cannot be noted
        "a shell that ends": "3",
        "a new shell": "UnitEnded",
        "typed": "typed\n",
        "again": "ran it once",
        "once more": "ran it once",
        "level": "kept",
        "new": "new\n",
    }


def on_a_full_disk(_: Link, disk: Path) -> dict[str, str] | None:
    if not _mount(disk):
        return None
    return asyncio.run(_work(disk))


async def _work(disk: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    count = "N=$((N+1)); echo ran $N"
    async with Perdure(f"sqlite://{disk}/store/perdure.db") as app:
        await app.tasks.open("work", state={})
        rt = await app.runtime("work")
        shell = await rt.shell("main", env=ENV)
        await shell.run("true")
        ending = await rt.shell("ending", env=ENV)
        last_words = asyncio.ensure_future(ending.run("echo ready; read -r LINE; exit 3"))
        await ending.expect("ready")
        ballast = _fill(disk)
        await ending.send("\n")
        found["a shell that ends"] = str((await asyncio.wait_for(last_words, PATIENCE)).exit_code)
        last = 0
        while last < 500:  # a file's last page has room for a few
            last += 1
            found["an open shell"] = await _said(shell.run(count, key=f"count-{last}"))
            if found["an open shell"] != "nothing":
                break
        found["a new shell"] = await _said(rt.shell("new", env=ENV))
        await shell.send("echo typed\n")
        found["typed"] = "typed\n" if await shell.expect("\ntyped") else ""
        ballast.unlink()
        while await shell.waiting() != "prompt":
            await asyncio.sleep(0)
        for name in ("again", "once more"):
            found[name] = (await shell.run(count, key=f"count-{last}")).output.replace(f" {last}\n", " it once")
        found["level"] = (await rt.shell("main")).level
        found["new"] = (await (await rt.shell("new", env=ENV)).run("echo new")).output
        await keeping.stop(app._store, units_too=True)
    return found


def _fill(disk: Path) -> Path:
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    return ballast


async def _said(asked: Any) -> str:
    try:
        await asked
    except errors.PerdureError as error:
        return type(error).__name__
    return "nothing"
