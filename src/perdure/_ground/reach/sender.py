"""Send one request to an address chosen by others.

The host is resolved once. Every address it has must be allowed, and the connection is made to one of those addresses,
so a name that changes its answer between the check and the connection gains nothing. The certificate must fit the name
as written. Redirects are not followed, proxies of the environment are not used, and an answer is read up to a size and
for a time.

Owns the sending. addresses.py decides about IP addresses, web_address.py about how an address is written, and
answer.py reads what comes back.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address
from typing import TypeAlias

from msgspec import Struct

from perdure._ground.reach.addresses import is_own, why_refused
from perdure._ground.reach.answer import Unreadable, read_answer
from perdure._ground.reach.web_address import PUBLIC, Rules, WebAddress, read_address
from perdure.errors import AddressRefused

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
Dial: TypeAlias = Callable[[str, int, ssl.SSLContext | None, str | None], Awaitable[Streams]]

IN_ALL, TO_RESOLVE = 10.0, 3.0  # seconds
MOST_SENT, MOST_ANSWERED = 256 * 1024, 64 * 1024  # bytes
AT_ONCE, PER_HOST = 8, 2
_FOLD = 3  # addresses that are tried


class Reply(Struct, frozen=True):
    """The receiver's answer. Without a status there was none, and `trouble` says why."""

    status: int | None
    headers: Mapping[str, str] = {}
    body: bytes = b""
    trouble: str = ""

    @property
    def is_good(self) -> bool:
        return self.status is not None and 200 <= self.status < 300 and not self.trouble


class Sender:
    """Sends requests, 8 at a time and 2 to one host. Belongs to one event loop."""

    def __init__(
        self,
        rules: Rules = PUBLIC,
        *,
        resolve: Resolve | None = None,
        dial: Dial | None = None,
        trust: ssl.SSLContext | None = None,
        owns: Callable[[str], bool] = is_own,
    ) -> None:
        """`trust` verifies certificates; by default the system's authorities do."""
        self.rules = rules
        self._resolve, self._dial, self._trust, self._owns = resolve or _resolve, dial or _dial, trust, owns
        self._room = asyncio.Semaphore(AT_ONCE)
        self._gates: dict[str, asyncio.Semaphore] = {}
        self._users: Counter[str] = Counter()

    async def check(self, address: str) -> WebAddress:
        """Say now whether requests to this address would be sent.

        Raises:
            AddressRefused: it is not allowed, or its host has no address.
        """
        parts = read_address(address, self.rules)
        try:
            await self._addresses(parts, address)
        except (OSError, TimeoutError) as problem:
            raise AddressRefused(address, f"its host has no address: {_words(problem)}") from None
        return parts

    async def post(self, address: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Send the body. Any failure is described in the reply."""
        if len(body) > MOST_SENT:
            return Reply(None, trouble=f"the body has {len(body)} bytes; at most {MOST_SENT} are sent")
        try:
            parts = read_address(address, self.rules)
            async with self._turn(parts.host), asyncio.timeout(IN_ALL):
                return await self._exchange(parts, address, _request("POST", parts, headers, body))
        except AddressRefused as refused:
            return Reply(None, trouble=f"refused the address: {refused.why}")
        except TimeoutError:
            return Reply(None, trouble=f"no whole answer within {IN_ALL:g} s")
        except ssl.SSLCertVerificationError as problem:
            return Reply(None, trouble=f"the certificate is not good: {problem.verify_message}")
        except Unreadable as problem:
            return Reply(problem.status, trouble=str(problem))
        except (OSError, EOFError) as problem:
            return Reply(None, trouble=_words(problem))

    async def certificate_end(self, address: str) -> float:
        """When the certificate of an https receiver ends, in seconds since 1970. Nothing is sent to it.

        Raises:
            AddressRefused: requests to this address would not be sent.
            OSError, TimeoutError: it cannot be reached; ssl.SSLCertVerificationError: its certificate is not good.
        """
        parts = read_address(address, self.rules)
        async with self._turn(parts.host), asyncio.timeout(IN_ALL):
            _, writer = await self._connect(parts, await self._addresses(parts, address))
        try:
            return float(ssl.cert_time_to_seconds(writer.get_extra_info("peercert")["notAfter"]))
        finally:
            writer.transport.abort()

    async def _exchange(self, parts: WebAddress, address: str, request: bytes) -> Reply:
        addresses = await self._addresses(parts, address)
        reader, writer = await self._connect(parts, addresses)
        try:
            writer.write(request)
            await writer.drain()
            status, headers, body = await read_answer(reader, MOST_ANSWERED)
            return Reply(status, headers, body)
        finally:
            writer.transport.abort()  # nothing more is wanted, and a slow farewell is not waited for

    async def _addresses(self, parts: WebAddress, written: str) -> Sequence[str]:
        """The addresses of the host; all of them are allowed."""
        if parts.is_literal:
            found: Sequence[str] = [parts.host]
        else:
            async with asyncio.timeout(TO_RESOLVE):
                found = await self._resolve(parts.host, parts.port)
        if not found:
            raise OSError(f"{parts.host} has no address")
        for one in found:
            why = why_refused(one, is_private_allowed=self.rules.is_private_allowed)
            if why is None and not self.rules.is_private_allowed and self._owns(one):
                why = "it is an address of this machine"
            if why is None and parts.scheme == "http" and not ip_address(one).is_loopback:
                why = "http is for receivers on this machine only"
            if why is not None:
                raise AddressRefused(written, f"its host leads to {one}: {why}")
        return found

    async def _connect(self, parts: WebAddress, addresses: Sequence[str]) -> Streams:
        trust = (self._trust or _system_trust()) if parts.scheme == "https" else None
        failure: OSError | None = None
        for address in addresses[:_FOLD]:
            try:
                return await self._dial(address, parts.port, trust, parts.host if trust else None)
            except ssl.SSLError:
                raise
            except OSError as problem:
                failure = problem
        raise failure or OSError("no connection")

    @asynccontextmanager
    async def _turn(self, host: str) -> AsyncIterator[None]:
        gate = self._gates.setdefault(host, asyncio.Semaphore(PER_HOST))
        self._users[host] += 1
        try:
            async with gate, self._room:
                yield
        finally:
            self._users[host] -= 1
            if not self._users[host]:
                del self._users[host], self._gates[host]


def _request(method: str, parts: WebAddress, headers: Mapping[str, str], body: bytes) -> bytes:
    lines = {
        "Host": parts.place,
        "User-Agent": "perdure",
        "Accept": "*/*",
        "Accept-Encoding": "identity",
        "Connection": "close",
        "Content-Length": str(len(body)),
        **headers,
    }
    for name, value in lines.items():
        if any(char in "\r\n\0" for char in name + value):
            raise AddressRefused(parts.host, f"the header {name!r} has a line end in it")
    head = [f"{method} {parts.target} HTTP/1.1", *(f"{name}: {value}" for name, value in lines.items())]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


def _words(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {problem}"[:300]


def _system_trust() -> ssl.SSLContext:
    global _trusted
    if _trusted is None:
        _trusted = ssl.create_default_context()
        _trusted.minimum_version = ssl.TLSVersion.TLSv1_2
    return _trusted


_trusted: ssl.SSLContext | None = None


async def _dial(address: str, port: int, trust: ssl.SSLContext | None, name: str | None) -> Streams:
    return await asyncio.open_connection(address, port, ssl=trust, server_hostname=name)


async def _resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a name. A resolver that hangs keeps a thread of its own and nothing else."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[str]] = loop.create_future()

    def tell(found: list[str], problem: OSError | None) -> None:
        if answer.done():
            return
        if problem is not None:
            answer.set_exception(problem)
        else:
            answer.set_result(found)

    def look() -> None:
        found: list[str] = []
        wrong: OSError | None = None
        try:
            answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found = list(dict.fromkeys(str(place[0]) for *_, place in answers))
        except OSError as problem:
            wrong = problem
        except UnicodeError as problem:
            wrong = OSError(str(problem))
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(tell, found, wrong)

    threading.Thread(target=look, name="perdure resolver", daemon=True).start()
    return await answer
