"""List the running servers of a store, so that `perdure link` can name one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct

from perdure._ground.ids import Process, is_alive_here, new_uid, this_process
from perdure.errors import PerdureError
from perdure.server.credentials import Vault


class RunningServer(Struct, frozen=True):
    """A server that has said where it is reached."""

    url: str
    host: str
    pid: int
    process: Process
    started_at: int


class Vitals(Struct, frozen=True):
    """The problems that a server has noticed since it began, with itself and with its clients."""

    streams_refused: int = 0
    held: float = 0.0  # the longest that one request held up all others, in seconds
    held_by: str = ""  # its route
    skews: dict[str, float] = {}  # by credential: how far ahead the clock of its client is, in seconds


class RunningServers:
    """The servers that have come and not left."""

    def __init__(self, vault: Vault) -> None:
        self._shelf = vault.shelf("running server", RunningServer)
        self._vitals = vault.shelf("server vitals", Vitals)
        self._clock = vault.clock

    async def come(self, url: str) -> str:
        """This process serves the store under this address. Returns what `leave` wants to know."""
        me = this_process()
        name = new_uid(self._clock.now_ms())
        await self._shelf.add(name, RunningServer(url, me.host, me.pid, me, self._clock.now_ms()))
        return name

    async def leave(self, name: str) -> None:
        if (kept := await self._shelf.get(name)) is not None:
            await self._shelf.drop(kept)
        if (told := await self._vitals.get(name)) is not None:
            await self._vitals.drop(told)

    async def keep_telling(self, name: str, vitals: Callable[[], Vitals], every: float = 60.0) -> None:
        """Write down what a server has noticed, whenever that has changed. Runs until it is cancelled."""
        before = Vitals()
        while True:
            found = vitals()
            if found != before:
                with suppress(PerdureError):  # the store is away: the next look writes it
                    await self.tell(name, found)
                    before = found
            await asyncio.sleep(every)

    async def tell(self, name: str, vitals: Vitals) -> None:
        await self._vitals.update(name, lambda _: (vitals, None))

    async def vitals(self) -> list[tuple[RunningServer, Vitals]]:
        """The notices of all servers that can be alive."""
        told = {kept.key: kept.value for kept in await self._vitals.all()}
        alive = await self.look()
        return [
            (kept.value, told[kept.key]) for kept in await self._shelf.all() if kept.value in alive and kept.key in told
        ]

    async def look(self) -> list[RunningServer]:
        """Those that may be alive, in the order they came. Nothing is changed."""
        here = this_process()
        found = [kept.value for kept in await self._shelf.all()]
        return [one for one in found if one.process[:3] != here[:3] or is_alive_here(one.process)]

    async def all(self) -> list[RunningServer]:
        """Those that may be alive, the newest first. What a killed process of this machine left is removed."""
        found = []
        here = this_process()
        for kept in await self._shelf.all():
            process = kept.value.process
            is_of_here = process[:3] == here[:3]  # host, boot and pid namespace
            if is_of_here and not is_alive_here(process):
                await self._shelf.drop(kept)
            else:
                found.append(kept.value)
        return sorted(found, key=lambda server: -server.started_at)
