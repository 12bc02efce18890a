"""A receiver of webhooks: a real HTTPS server on this machine, with an authority that only the test trusts."""

from __future__ import annotations

import asyncio
import datetime
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from perdure._ground.reach import Rules, Sender

PUBLIC = "93.184.215.14"  # stands for a receiver on the internet; nothing is ever sent there
OK = b"HTTP/1.1 204 No Content\r\n\r\n"


@dataclass
class Got:
    """One request that came in."""

    line: str
    headers: Mapping[str, str]
    body: bytes
    name: str | None  # that the client asked for in its TLS greeting


@dataclass
class Receiver:
    """Answers each request with what `answer` says: bytes, or a function that writes them itself."""

    names: tuple[str, ...] = ("hooks.example.com",)
    answers: list[bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]] = field(default_factory=list)
    got: list[Got] = field(default_factory=list)
    is_trusted: bool = True
    came: asyncio.Event = field(default_factory=asyncio.Event)
    connections: int = 0

    async def __aenter__(self) -> Receiver:
        self._context = server_context(self.names, self.is_trusted)
        self._seen: str | None = None
        self._context.sni_callback = self._remember
        self._tasks: set[asyncio.Task[Any]] = set()
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        self.port: int = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _remember(self, _socket: object, name: str | None, _context: object) -> None:
        self._seen = name

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self.got.append(Got(head[0], headers, body, self._seen))
            self.came.set()
            answer = self.answers.pop(0) if self.answers else OK
            if callable(answer):
                await answer(writer)
            else:
                writer.write(answer)
                await writer.drain()
        except (OSError, EOFError):
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    def sender(self, rules: Rules | None = None, *, addresses: Mapping[str, list[str]] | None = None) -> Catching:
        """A sender whose names resolve to PUBLIC, and whose connections all end here."""
        return Catching(self, rules or Rules(), addresses or {})


class Catching(Sender):
    """Remembers where it was asked to connect to, and connects to the receiver instead."""

    def __init__(self, receiver: Receiver, rules: Rules, addresses: Mapping[str, list[str]]) -> None:
        self.dialled: list[str] = []
        self.looked_up: list[str] = []

        async def resolve(host: str, port: int) -> list[str]:
            self.looked_up.append(host)
            return addresses.get(host, [PUBLIC])

        async def dial(address: str, port: int, trust: ssl.SSLContext | None, name: str | None) -> Any:
            self.dialled.append(address)
            return await asyncio.open_connection("127.0.0.1", receiver.port, ssl=trust, server_hostname=name)

        super().__init__(rules, resolve=resolve, dial=dial, trust=client_context())


def answer(status: int, body: bytes = b"", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} -", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


# ── certificates ─────────────────────────────────────────────────────────────────────────────────


class Authority:
    """Signs certificates for any name; made anew in each process."""

    def __init__(self, name: str) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        self.certificate = (
            self._draft(self.name, self.key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), critical=False)
            .sign(self.key, hashes.SHA256())
        )

    def _draft(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=2))
        )

    def issue(self, names: tuple[str, ...]) -> bytes:
        """A certificate and its key, as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        others = [x509.IPAddress(ip_address(n)) if n[-1].isdigit() else x509.DNSName(n) for n in names]
        made = (
            self._draft(subject, key)
            .add_extension(x509.SubjectAlternativeName(others), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()),
                critical=False,
            )
            .sign(self.key, hashes.SHA256())
        )
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return made.public_bytes(serialization.Encoding.PEM) + private

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()


@lru_cache(maxsize=2)
def authority(is_trusted: bool) -> Authority:
    return Authority("a throwaway authority" if is_trusted else "a stranger")


def server_context(names: tuple[str, ...], is_trusted: bool = True) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "both.pem")
        file.write_bytes(authority(is_trusted).issue(names))
        context.load_cert_chain(file)
    return context


def client_context() -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority(True).pem)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
