"""The way to the server: sockets, TLS, credentials. Blocking; it is over before the first client comes.

The password is used here and nowhere else: a session that is logged in forgets it. Options are those of libpq, by
the same names; what cannot be honoured is refused, never left out silently.
"""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from perdure.keeper.pgproxy import scram, wire

_PATIENCE = 45.0  # seconds: a server that restarts, or a network that is away for a moment
_PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0)
_NOT_YET = frozenset({"57P03", "57P01", "57P02", "53300"})  # starting, stopping, crashed a moment ago, full
_SETTINGS = ("client_encoding", "application_name", "options")
_REFUSED = {"channel_binding": "require", "gssencmode": "require", "requirepeer": ""}


class LoginFailed(Exception):
    """No session; `code` is the server's, if it was the server who refused."""

    def __init__(self, why: str, code: str = "") -> None:
        self.code = code
        super().__init__(why)


class Upstream(NamedTuple):
    """A session that is ready."""

    socket: socket.socket
    parameters: dict[str, str]
    pid: int
    key: bytes
    route: dict[str, str]  # how to reach the same server again, to cancel; no credentials

    @property
    def is_encrypted(self) -> bool:
        return isinstance(self.socket, ssl.SSLSocket)


def log_in(options: Mapping[str, str]) -> Upstream:
    """A new session; a server that is away for a moment is waited for.

    Raises:
        LoginFailed: the server refuses us, or stays away.
    """
    _check(options)
    began, tries = time.monotonic(), 0
    while True:
        try:
            return _first_that_answers(options)
        except LoginFailed as problem:
            if problem.code or time.monotonic() - began > float(options.get("patience", _PATIENCE)):
                raise
        time.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])
        tries += 1


def _check(options: Mapping[str, str]) -> None:
    for name, bad in _REFUSED.items():
        if options.get(name) and (not bad or options[name] == bad):
            raise LoginFailed(f"{name}={options[name]} cannot be honoured by a kept session", "option")
    if options.get("sslmode", "prefer") not in _MODES:
        raise LoginFailed(f"sslmode={options['sslmode']} is not known", "option")
    if not options.get("user"):
        raise LoginFailed("no user is named", "option")


def _first_that_answers(options: Mapping[str, str]) -> Upstream:
    problem: LoginFailed | None = None
    for route in _routes(options):
        try:
            return _try(route, options)
        except LoginFailed as error:
            problem = problem or error
            if error.code and error.code not in ("role",):
                raise
        except (OSError, wire.Broken) as error:
            problem = problem or LoginFailed(f"{route['host']}:{route['port']}: {error}")
    assert problem is not None
    raise LoginFailed(str(problem), "" if problem.code == "role" else problem.code)


def _routes(options: Mapping[str, str]) -> Iterator[dict[str, str]]:
    hosts = (options.get("host") or options.get("hostaddr") or _local()).split(",")
    addresses = (options.get("hostaddr") or "").split(",")
    ports = (options.get("port") or "5432").split(",")
    for number, host in enumerate(hosts):
        port = ports[number] if len(ports) > 1 else ports[0]
        address = addresses[number] if number < len(addresses) else ""
        yield {"host": host or "localhost", "address": address or host or "localhost", "port": port or "5432"}


def _local() -> str:
    places = ("/var/run/postgresql", "/run/postgresql", "/tmp")  # noqa: S108
    return next((place for place in places if os.path.isdir(place)), "localhost")


def _try(route: dict[str, str], options: Mapping[str, str]) -> Upstream:
    modes = _MODES[options.get("sslmode", "prefer")] if not route["address"].startswith("/") else (False,)
    problem: LoginFailed | None = None
    for encrypted in modes:
        try:
            upstream = _log_in(connect(route, options, encrypted=encrypted), options, route)
        except _NoTls:
            if encrypted and len(modes) == 1:
                raise LoginFailed("the server does not offer TLS", "tls") from None
            continue
        except LoginFailed as error:
            problem = error
            if error.code != "28000":  # the server may want it the other way
                raise
            continue
        _check_role(upstream, options.get("target_session_attrs", "any"))
        return upstream
    raise problem or LoginFailed("the server does not offer TLS", "tls")


# Which ways are tried, in their order: True is encrypted.
_MODES: dict[str, tuple[bool, ...]] = {
    "disable": (False,),
    "allow": (False, True),
    "prefer": (True, False),
    "require": (True,),
    "verify-ca": (True,),
    "verify-full": (True,),
}


class _NoTls(Exception):
    pass


def connect(route: Mapping[str, str], options: Mapping[str, str], *, encrypted: bool) -> socket.socket:
    """A connection to the server, encrypted if asked for, before anything is said."""
    limit = float(options.get("connect_timeout") or 0) or 15.0
    if route["address"].startswith("/"):
        link = socket.socket(socket.AF_UNIX)
        link.settimeout(limit)
        link.connect(f"{route['address']}/.s.PGSQL.{route['port']}")
        return link
    link = socket.create_connection((route["address"], int(route["port"])), limit)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _keep_alive(link, options)
    if not encrypted:
        return link
    link.sendall(wire.ask_for_tls())
    if link.recv(1) != b"S":
        link.close()
        raise _NoTls
    try:
        return _context(options).wrap_socket(link, server_hostname=route["host"])
    except ssl.SSLError as error:
        link.close()
        raise LoginFailed(f"TLS: {error.reason or error}", "tls") from None


def _keep_alive(link: socket.socket, options: Mapping[str, str]) -> None:
    if options.get("keepalives", "1") == "0":
        return
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # A network that is away for a minute is ridden out; a peer that is gone for good is noticed.
    wanted = {"TCP_KEEPIDLE": "60", "TCP_KEEPINTVL": "20", "TCP_KEEPCNT": "6", "TCP_USER_TIMEOUT": ""}
    names = ("keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout")
    for option, (constant, default) in zip(names, wanted.items(), strict=True):
        value = options.get(option) or default
        if value and hasattr(socket, constant):
            with contextlib.suppress(OSError, ValueError):
                link.setsockopt(socket.IPPROTO_TCP, getattr(socket, constant), int(value))


def _context(options: Mapping[str, str]) -> ssl.SSLContext:
    mode, root = options.get("sslmode", "prefer"), options.get("sslrootcert", "")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # As libpq: without a root certificate, `require` encrypts and trusts whoever answers.
    verifies = mode.startswith("verify") or bool(root)
    context.check_hostname = mode == "verify-full" or root == "system"
    context.verify_mode = ssl.CERT_REQUIRED if verifies else ssl.CERT_NONE
    if root == "system":
        context.load_default_certs()
    elif verifies:
        _load(lambda: context.load_verify_locations(root or os.path.expanduser("~/.postgresql/root.crt")), root)
    if certificate := options.get("sslcert"):
        secret = options.get("sslpassword") or None
        _load(lambda: context.load_cert_chain(certificate, options.get("sslkey") or None, secret), certificate)
    return context


def _load(load: object, what: str) -> None:
    assert callable(load)
    try:
        load()
    except (OSError, ssl.SSLError) as error:
        raise LoginFailed(f"the certificate {what or 'root.crt'} cannot be used: {error}", "tls") from None


def cancel(upstream: Upstream, options: Mapping[str, str], *, encrypted: bool) -> None:
    """Ask the server to cancel what a session is running, on a connection of its own and in the background."""

    def ask() -> None:
        with contextlib.suppress(Exception), connect(upstream.route, options, encrypted=encrypted) as link:
            link.sendall(wire.cancel_message(upstream.pid, upstream.key))
            link.recv(1)

    threading.Thread(target=ask, daemon=True).start()


def timeouts(link: socket.socket) -> tuple[float, float]:
    """The server's limits on an open transaction, in seconds: while idle, and in all."""
    names = ("idle_in_transaction_session_timeout", "transaction_timeout")
    found = dict.fromkeys(names, 0.0)
    asked = f"SELECT name, setting FROM pg_catalog.pg_settings WHERE name IN {names!r}"  # noqa: S608
    link.sendall(wire.query(asked))
    for kind, body in messages(link):
        if kind == 0x44:  # D: two columns, each a length and its bytes
            size = wire.LENGTH.unpack_from(body, 2)[0]
            found[body[6 : 6 + size].decode()] = int(body[10 + size :]) / 1000
        elif kind == 0x5A:  # Z
            break
    return found[names[0]], found[names[1]]


# ── saying who we are ────────────────────────────────────────────────────────────────────────────


def _log_in(link: socket.socket, options: Mapping[str, str], route: dict[str, str]) -> Upstream:
    try:
        return _exchange(link, options, route)
    except BaseException:
        link.close()
        raise


def _exchange(link: socket.socket, options: Mapping[str, str], route: dict[str, str]) -> Upstream:
    wanted = {"user": options["user"], "database": options.get("dbname") or options["user"]}
    wanted |= {name: options[name] for name in _SETTINGS if options.get(name)}
    wanted.setdefault("client_encoding", "UTF8")
    link.sendall(wire.startup_message(wanted))
    parameters: dict[str, str] = {}
    pid, key = 0, b""
    proof: list[scram.Scram] = []
    for kind, body in messages(link):
        if kind == 0x52:  # R
            answer = _authenticate(body, options, proof)
            if answer:
                link.sendall(wire.message(b"p", answer))
        elif kind == 0x53:  # S
            name, at = wire.text(body)
            parameters[name.decode()] = wire.text(body, at)[0].decode("utf-8", "replace")
        elif kind == 0x4B:  # K
            pid, key = wire.LENGTH.unpack_from(body)[0], body[4:]
        elif kind == 0x45:  # E
            said = wire.fields(body)
            code = said.get("C", "")
            raise LoginFailed(said.get("M", "the server refused"), "" if code in _NOT_YET else code)
        elif kind == 0x5A:  # Z
            break
    return Upstream(link, parameters, pid, key, route)


def messages(link: socket.socket) -> Iterator[tuple[int, bytes]]:
    """One by one, and not a byte more than that: what comes after the login is not ours to read."""
    while True:
        head = _read(link, 5)
        yield head[0], _read(link, min(wire.LENGTH.unpack_from(head, 1)[0] - 4, wire.LONGEST_MESSAGE))


def _read(link: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        part = link.recv(min(size - len(found), 1 << 20))
        if not part:
            raise ConnectionError("the server closed the connection")
        found += part
    return bytes(found)


def _authenticate(body: bytes, options: Mapping[str, str], proof: list[scram.Scram]) -> bytes:
    """What to answer to a demand; nothing when it is satisfied."""
    demand, rest = wire.LENGTH.unpack_from(body)[0], body[4:]
    password = options.get("password")
    if demand in (3, 5, 10) and password is None:
        raise LoginFailed("the server asks for a password and none was given", "28P01")
    try:
        if demand == 3:
            return str(password).encode() + b"\0"
        if demand == 5:
            return scram.md5(options["user"], str(password), rest[:4])
        if demand == 10 and b"SCRAM-SHA-256\0" in rest:
            proof.append(scram.Scram(str(password), os.urandom(18)))
            first = proof[0].first()
            return b"SCRAM-SHA-256\0" + wire.LENGTH.pack(len(first)) + first
        if demand == 11 and proof:
            return proof[0].final(rest)
        if demand == 12 and proof:
            proof[0].check(rest)
            return b""
    except scram.Refused as problem:
        raise LoginFailed(str(problem), "28000-scram") from None
    if demand == 0:
        return b""
    raise LoginFailed(f"the server asks for authentication of kind {demand}, which is not supported", "auth")


def _check_role(upstream: Upstream, wanted: str) -> None:
    standby = upstream.parameters.get("in_hot_standby") == "on"
    writable = not standby and upstream.parameters.get("default_transaction_read_only") != "on"
    fits = {"any": True, "read-write": writable, "read-only": not writable, "primary": not standby, "standby": standby}
    if not fits.get(wanted, True):
        upstream.socket.close()
        raise LoginFailed(f"{upstream.route['host']} is not {wanted}", "role")
