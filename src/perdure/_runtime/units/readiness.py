"""When a service is ready: a port, an address that answers, a line of its log, or a command that succeeds."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from perdure._ground.bridge import Call
from perdure.errors import InvalidInput

_TRY_SECONDS = 2.0
_SERVER_ERROR = 500


class Look(Protocol):
    """The check that tells when a service is ready."""

    ports: list[int]

    async def own_log(self) -> str: ...


class Ready(Protocol):
    @property
    def port(self) -> int | None:
        """The port it will listen on, if that is known before."""
        ...

    async def is_ready(self, look: Look) -> bool: ...

    def __str__(self) -> str: ...


@dataclass(frozen=True)
class _Port:
    port: int

    async def is_ready(self, look: Look) -> bool:
        """By the service's own processes: a stranger's port is not this service's readiness."""
        return self.port in look.ports

    def __str__(self) -> str:
        return f"it listens on port {self.port}"


@dataclass(frozen=True)
class _Http:
    url: str

    @property
    def port(self) -> int | None:
        parts = urlsplit(self.url)
        return (parts.port or 80) if parts.hostname in ("127.0.0.1", "localhost", "::1") else None

    async def is_ready(self, look: Look) -> bool:
        if self.port is not None and self.port not in look.ports:
            return False
        return await Call(lambda: _answers(self.url))

    def __str__(self) -> str:
        return f"{self.url} answers"


@dataclass(frozen=True)
class _LogLine:
    pattern: str
    port: int | None = None

    async def is_ready(self, look: Look) -> bool:
        return re.search(self.pattern, await look.own_log(), re.MULTILINE) is not None

    def __str__(self) -> str:
        return f"its log has a line like {self.pattern!r}"


@dataclass(frozen=True)
class _Command:
    argv: tuple[str, ...]
    port: int | None = None

    async def is_ready(self, look: Look) -> bool:
        nothing = asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(*self.argv, stdin=nothing, stdout=nothing, stderr=nothing)
        try:
            async with asyncio.timeout(_TRY_SECONDS):
                return await process.wait() == 0
        except TimeoutError:
            process.kill()
            await process.wait()
            return False

    def __str__(self) -> str:
        return f"`{' '.join(self.argv)}` succeeds"


def port(number: int) -> Ready:
    """Ready when the service itself listens on this port."""
    if not 0 < number < 65536:
        raise InvalidInput(f"{number} is not a port")
    return _Port(number)


def http(url: str) -> Ready:
    """Ready when this address answers, with anything but a server error."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise InvalidInput(f"{url!r} is not the address of a web server")
    return _Http(url)


def log_line(pattern: str) -> Ready:
    """Ready when a line of its log fits the regular expression."""
    try:
        re.compile(pattern)
    except re.error as error:
        raise InvalidInput(f"{pattern!r} is not a regular expression: {error}") from None
    return _LogLine(pattern)


def command(*argv: str) -> Ready:
    """Ready when this command succeeds; it is tried again and again."""
    if not argv:
        raise InvalidInput("a command has a name")
    return _Command(argv)


def _answers(url: str) -> bool:
    opener = build_opener(ProxyHandler({}))
    try:
        with opener.open(Request(url), timeout=_TRY_SECONDS) as answer:
            return bool(answer.status < _SERVER_ERROR)
    except HTTPError as error:
        return error.code < _SERVER_ERROR
    except (URLError, OSError, ValueError):
        return False
