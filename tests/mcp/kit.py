"""A real MCP client on the real server: over stdio, over HTTP, or both killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client, session
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, KNOWN_PROTOCOL_VERSIONS

from tests.runtime.kit import Place, until
from tests.support.server_processes import LiveServer, environment, live_server

VERSIONS = KNOWN_PROTOCOL_VERSIONS
ROOT = Path(__file__).resolve().parents[2]


def parameters(place: Place, **more: str) -> StdioServerParameters:
    env = {**environment(place.url, **more), "PS1": "$ "}
    return StdioServerParameters(command=sys.executable, args=["-m", "perdure", "mcp"], env=env, cwd=ROOT)


def speak(monkeypatch: pytest.MonkeyPatch, version: str) -> str:
    """Have the client offer this version; the mode it has to be made with."""
    if version not in HANDSHAKE_PROTOCOL_VERSIONS:
        return version
    monkeypatch.setattr(session, "LATEST_HANDSHAKE_VERSION", version)
    return "legacy"


@asynccontextmanager
async def over_stdio(place: Place, mode: str = "auto", **more: str) -> AsyncIterator[Client]:
    async with Client(parameters(place, **more), mode=mode) as client:  # type: ignore[arg-type]
        yield client


@asynccontextmanager
async def over_http(server: LiveServer, key: str, mode: str = "auto") -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=120) as http:
        transport: Any = streamable_http_client(f"{server.told['url']}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:  # type: ignore[arg-type]
            yield client


@contextmanager
def serving(place: Place) -> Iterator[LiveServer]:
    with live_server(place.url, "--no-dashboard") as server:
        yield server


def make_key(place: Place, *scopes: str) -> str:
    options = [part for scope in scopes for part in ("--scope", scope)]
    return perdure(place, "api-keys", "make", "agent", *options).strip()


def perdure(place: Place, *arguments: str) -> str:
    command = [sys.executable, "-m", "perdure", *arguments]
    done = subprocess.run(command, env=environment(place.url), capture_output=True, text=True, check=True, timeout=120)
    return done.stdout


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured answer of a tool."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    found: dict[str, Any] = result.structured_content
    return found


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return text_of(result)


def text_of(result: Any) -> str:
    return str(result.content[0].text)


# ── a client and its server in a process of their own ────────────────────────────────────────────


class Pair:
    """A client that makes calls, one after the other, in a process that can be killed with its server."""

    def __init__(self, place: Place, calls: list[tuple[str, dict[str, Any]]], *address: str) -> None:
        command = [sys.executable, "-m", "tests.mcp.client_program", json.dumps(calls), *address]
        env = environment(place.url)
        self.process = subprocess.Popen(command, env=env, cwd=ROOT, stdout=subprocess.PIPE, text=True)

    def until_connected(self) -> None:
        assert self.process.stdout is not None and self.process.stdout.readline() == "connected\n"

    @property
    def server(self) -> int:
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        found: list[str] = []

        def is_there() -> bool:
            found[:] = path.read_text().split()
            return bool(found)

        until(is_there)
        return int(found[0])

    def kill_server(self) -> None:
        """The server over stdio; one whose client is gone ends by itself, sooner or later."""
        if self.process.poll() is None:
            os.kill(self.server, signal.SIGKILL)

    def kill(self, *which: int) -> None:
        for pid in which:
            os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
