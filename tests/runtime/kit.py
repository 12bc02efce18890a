"""A store and its keeper, as tests handle them: found, killed, replaced, and gone at the end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from perdure import Perdure
from perdure._ground.bridge import drive
from perdure._ground.config import find_address
from perdure._runtime import Runtime, Shell
from perdure._runtime.keeper_client import client
from perdure._runtime.keeper_client import keeper_place as places
from perdure.errors import PerdureError
from tests.support.processes import Link, nursery

PATIENCE = 120.0
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b\][^\x07]*\x07|\r")


class Place:
    def __init__(self, file: Path) -> None:
        self.url = f"sqlite://{file}"
        self.home = places.home_of(find_address(self.url))

    @contextlib.asynccontextmanager
    async def runtime(self, task: str = "work") -> AsyncIterator[Runtime]:
        async with Perdure(self.url) as app:
            await app.tasks.open(task, state={})
            yield await app.runtime(task)

    def ask(self, verb: str, **values: Any) -> dict[str, Any]:
        return dict(drive(_asked(client.client_for(self.home), verb, values)))

    @property
    def keeper(self) -> int:
        return int(self.ask("status")["pid"])

    @property
    def anchor(self) -> int:
        return int(self.ask("status")["anchor"])

    @property
    def socket(self) -> str:
        found = places.anchor_of(self.home)
        assert found is not None
        return f"{found['live']}/sock"

    def kill_keeper(self) -> None:
        """kill -9, and wait until another one answers."""
        before = self.keeper
        os.kill(before, signal.SIGKILL)
        until(lambda: self.keeper != before)

    def kill_anchor(self) -> None:
        """kill -9 of both, the keeper held still before, or it would notice and end by itself."""
        keeper, anchor = self.keeper, self.anchor
        os.kill(keeper, signal.SIGSTOP)
        os.kill(anchor, signal.SIGKILL)
        os.kill(keeper, signal.SIGKILL)
        until(lambda: not is_alive(keeper) and not is_alive(anchor))

    def in_another_process(self, shell: str, env: dict[str, str], command: str = "") -> list[Any]:
        """Open a shell there, and run something in it: its level and process."""
        with nursery() as children:
            return list(children.run(_opens, self.url, shell, env, command))

    def clear(self) -> None:
        here = client.find(self.home)
        if here is not None:
            with contextlib.suppress(PerdureError):
                self.ask("stop", units_too=True)
            here.close()


def _opens(link: Link, url: str, name: str, env: dict[str, str], command: str) -> list[Any]:
    async def work() -> list[Any]:
        async with Perdure(url) as app:
            shell = await (await app.runtime("work")).shell(name, env=env)
            if command:
                await shell.run(command)
            return [shell.level, shell.record.pid]

    return asyncio.run(work())


async def _asked(here: client.Client, verb: str, values: dict[str, Any]) -> dict[str, Any]:
    return (await here.ask(verb, **values)).args


def until(is_so: Callable[[], Any], what: str = "") -> Any:
    """Look again until it is so; PATIENCE only turns a hang into an error."""
    bell = threading.Event()
    for _ in range(int(PATIENCE / 0.01)):
        if found := is_so():
            return found
        bell.wait(0.01)
    raise TimeoutError(what or "what was waited for did not come")


async def text_of(shell: Shell) -> str:
    """All that is kept of its output, as a person would read it."""
    return _ESCAPES.sub("", (await shell.read()).text)


async def until_text(shell: Shell, pattern: str) -> re.Match[str]:
    bell = threading.Event()
    for _ in range(int(PATIENCE / 0.01)):
        if found := re.search(pattern, await text_of(shell)):
            return found
        bell.wait(0.01)
    raise TimeoutError(f"{pattern!r} did not come; there is {await text_of(shell)!r}")


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
