"""Servers and other background programs that outlive the agent."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from perdure._ground.bridge import Nap
from perdure._ground.durations import Duration, require_timedelta
from perdure._runtime.keeper_client import Ask
from perdure._runtime.units.output import Output, read_all
from perdure._runtime.units.readiness import Ready
from perdure._runtime.units.unit import Unit
from perdure.errors import TimedOut, UnitEnded

READY_SECONDS = 60.0
_LOOK_SECONDS = 0.03


@dataclass(frozen=True)
class ServiceState:
    """A service as it is now."""

    pid: int
    ports: list[int]
    status: int | None
    restarts: int
    log_end: int
    start: int = 0  # of its process, in clock ticks since boot: with its pid, which process it is

    @property
    def is_alive(self) -> bool:
        return self.status is None


class Service(Unit):
    """A program in the background: `pid`, its log by offset, its ports."""

    ports: list[int]
    _own_log_from = 0

    @property
    def pid(self) -> int:
        return self.record.pid

    def ask(self, verb: str, body: bytes = b"", **args: Any) -> Ask:
        """The log of one that has ended is there still."""
        if verb in ("state", "read"):
            return self._client.do(self.record.uid, verb, body, **args)
        return super().ask(verb, body, **args)

    async def state(self) -> ServiceState:
        reply = await self.ask("state")
        told = reply.args
        self.ports, self._own_log_from = list(told["ports"]), told.get("log_from", 0)
        pid, start = told["pid"], told.get("start", 0)
        self.record.pid, self.record.start = pid, start
        return ServiceState(pid, self.ports, told["status"], told["restarts"], told["end"], start)

    async def read(self, from_offset: int = 0) -> Output:
        """Its log from an offset on, as far as it is kept."""
        return await read_all(self, from_offset)

    async def log(self) -> str:
        return (await self.read()).text

    async def own_log(self) -> str:
        """The log of its present process: without what was written before it was restarted."""
        return (await self.read(self._own_log_from)).text

    async def signal(self, number: int) -> None:
        await self.write("signal", number=number)

    async def wait_ready(self, ready: Ready, *, timeout: Duration | None = None) -> None:
        """Return when it is ready.

        Raises:
            UnitEnded: it ended before it was ready; the message has the end of its log.
            TimedOut: it was not ready in time; it runs on.
        """
        limit = READY_SECONDS if timeout is None else require_timedelta("timeout", timeout).total_seconds()
        end = time.monotonic() + limit
        while True:
            state = await self.state()
            if not state.is_alive:
                raise UnitEnded(self.name, f"it ended before it was ready; the end of its log: {await self._tail()}")
            if await ready.is_ready(self):
                await self.ask("ready")
                return
            if time.monotonic() > end:
                raise TimedOut(
                    f"service {self.name!r} is not ready after {limit:g} s; it waited for {ready}",
                    kept="it goes on",
                    do=f"look at its log; the end of it: {await self._tail()}",
                )
            await Nap(_LOOK_SECONDS)

    async def _tail(self) -> str:
        return repr((await self.log())[-300:].strip())


def service_recipe(ready: Ready | None, restart: str) -> dict[str, Any]:
    return {"port": ready.port if ready is not None else None, "restart": restart}
