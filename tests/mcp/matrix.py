"""Kill client, server and keeper at random moments of two calls, and see that nothing is lost and nothing done twice.

At each point a client saves its notes and has a command run that counts in the shell; something of them is killed
meanwhile. A new pair asks again: the counter must have gone up by exactly one, and the notes are those of this point
or the one before.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any, Literal

from mcp.client import Client

from tests.mcp.kit import Pair, call, make_key, over_http, over_stdio, serving
from tests.runtime.kit import Place
from tests.support.server_processes import LiveServer

Transport = Literal["stdio", "http"]
VICTIMS = (("client",), ("server",), ("keeper",), ("client", "server"), ("client", "server", "keeper"))
# Two calls take about this long once the client is connected.
_LONGEST_DELAY = 0.8


def calls(number: int) -> list[tuple[str, dict[str, Any]]]:
    command = f"N=$((N+1)); echo tick-$N; sleep 0.2; cd /usr/lib; LAST={number}"
    asked = {"command": command, "command_id": f"point-{number}", "wait_seconds": 40}
    return [("save_state", {"state": {"point": number}}), ("run_command", asked)]


class _Server:
    """How a client reaches the server; over HTTP it is started again when it was killed."""

    def __init__(self, place: Place, transport: Transport) -> None:
        self._place, self._transport = place, transport
        self._live: LiveServer | None = None
        self._stack = ExitStack()
        self._key = ""

    def pair(self, number: int) -> Pair:
        if self._transport == "stdio":
            return Pair(self._place, calls(number))
        return Pair(self._place, calls(number), f"{self._http().told['url']}/mcp", self._key)

    def _http(self) -> LiveServer:
        if self._live is None or self._live.process.poll() is not None:
            self._stack.close()
            self._live = self._stack.enter_context(serving(self._place))
            self._key = self._key or make_key(self._place, "agent", "units:type")
        return self._live

    def kill(self, pair: Pair) -> None:
        if self._live is None:
            pair.kill_server()
        else:
            self._live.process.kill()
            self._live.process.wait()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        if self._transport == "stdio":
            async with over_stdio(self._place) as client:
                yield client
        else:
            live = self._http()
            async with over_http(live, self._key) as client:
                yield client

    def close(self) -> None:
        self._stack.close()


async def storm(place: Place, points: int, seed: int, transport: Transport) -> Counter[str]:
    """How often each was killed."""
    chance, killed, server = random.Random(seed), Counter[str](), _Server(place, transport)
    try:
        for number in range(1, points + 1):
            victims = chance.choice(VICTIMS)
            await _point(place, server, number, victims, chance.random() * _LONGEST_DELAY)
            killed.update(victims)
        async with server.client() as client:
            for number in range(1, points + 1):
                found = await call(client, "read_output", command_id=f"point-{number}")
                assert (found["output"], found["exit_code"]) == (f"tick-{number}\n", 0)
            told = await call(client, "run_command", command="echo $N $LAST $PWD", wait_seconds=40)
            assert told["output"] == f"{points} {points} /usr/lib\n"
            [shell] = (await call(client, "list_shells"))["shells"]
            assert shell["alive"]
    finally:
        server.close()
    return killed


async def _point(place: Place, server: _Server, number: int, victims: tuple[str, ...], delay: float) -> None:
    pair = server.pair(number)
    try:
        pair.until_connected()
        threading.Event().wait(delay)
        if "keeper" in victims and number > 1:  # it is started by the first call
            place.kill_keeper()
        if "client" in victims:
            pair.kill()
        if "server" in victims:
            server.kill(pair)
    finally:
        pair.kill()
    async with server.client() as client:
        state = (await call(client, "where_was_i")).get("state")
        assert state in ({"point": number}, {"point": number - 1} if number > 1 else None), (number, victims, delay)
        for tool, arguments in calls(number):
            answer = await call(client, tool, **arguments)
        assert (answer["status"], answer["output"]) == ("exited", f"tick-{number}\n"), (number, victims, delay)
