"""The way to the server: sockets, TLS, credentials. Blocking; it is finished before the first client arrives.

The password is used here and nowhere else: a session that is logged in forgets it. Options are those of libpq, by
the same names (options.py). A server is not trusted before it has been checked: what it says until then is bounded in
size and time (authentication.py, tls.py).
"""

from __future__ import annotations

import contextlib
import os
import pwd
import random
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from perdure.keeper.core import peer_of
from perdure.keeper.pgproxy.login import authentication, tls
from perdure.keeper.pgproxy.login import options as known
from perdure.keeper.pgproxy.protocol import wire

_PATIENCE = 45.0  # seconds: a server that restarts, or a network that is away for a moment
_PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0)
_NOT_YET = frozenset({"57P03", "57P01", "57P02", "53300"})  # starting, stopping, crashed a moment ago, full
_SETTINGS = ("client_encoding", "application_name", "options")
_CONNECT_SECONDS = 15.0
# The most a server may send before the login is finished: per message, and in all.
_LONGEST_AT_LOGIN, _MOST_AT_LOGIN = 1 << 16, 1 << 20
_PARAMETER_STATUS, _KEY, _ERROR, _READY, _DEMAND, _NOTICE = b"SKEZRN"


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
    try:
        known.check(options)
    except known.OptionRefused as problem:
        raise LoginFailed(str(problem), "option") from None
    began, tries = time.monotonic(), 0
    while True:
        try:
            return _first_that_answers(options)
        except LoginFailed as problem:
            if problem.code or time.monotonic() - began > float(options.get("patience", _PATIENCE)):
                raise
        time.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])
        tries += 1


def _first_that_answers(options: Mapping[str, str]) -> Upstream:
    routes = list(_routes(options))
    if options.get("load_balance_hosts") == "random":
        random.shuffle(routes)
    wanted = options.get("target_session_attrs") or "any"
    if wanted == "prefer-standby":
        with contextlib.suppress(LoginFailed):
            return _first_of(routes, options, "standby")
        wanted = "any"
    return _first_of(routes, options, wanted)


def _first_of(routes: list[dict[str, str]], options: Mapping[str, str], wanted: str) -> Upstream:
    problem: LoginFailed | None = None
    for route in routes:
        try:
            return _try(route, options, wanted)
        except LoginFailed as error:
            problem = problem or error
            if error.code and error.code not in ("role",):
                raise
        except wire.Broken as error:
            raise LoginFailed(
                f"{route['host']}:{route['port']} is not a PostgreSQL server: {error}", "protocol"
            ) from None
        except OSError as error:
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


def _try(route: dict[str, str], options: Mapping[str, str], wanted: str) -> Upstream:
    modes = known.SSL_MODES[options.get("sslmode") or "prefer"] if not _is_local(route) else (False,)
    problem: LoginFailed | None = None
    for encrypted in modes:
        try:
            upstream = _log_in(connect(route, options, encrypted=encrypted), options, route)
        except tls.NotOffered:
            if encrypted and len(modes) == 1:
                raise LoginFailed("the server does not offer TLS", "tls") from None
            continue
        except LoginFailed as error:
            problem = error
            if error.code != "28000":  # the server may require the other way
                raise
            continue
        _check_role(upstream, wanted)
        return upstream
    raise problem or LoginFailed("the server does not offer TLS", "tls")


def _is_local(route: Mapping[str, str]) -> bool:
    return route["address"].startswith(("/", "@"))


def connect(route: Mapping[str, str], options: Mapping[str, str], *, encrypted: bool) -> socket.socket:
    """A connection to the server, encrypted if asked for, before anything is said."""
    limit = _seconds_to_connect(options)
    if _is_local(route):
        return _connect_locally(route, options, limit)
    link = socket.create_connection((route["address"], int(route["port"])), limit)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _keep_alive(link, options)
    if not encrypted:
        return link
    try:
        return tls.encrypt(link, options, route["host"])
    except tls.TlsFailed as problem:
        raise LoginFailed(str(problem), "tls") from None


def _seconds_to_connect(options: Mapping[str, str]) -> float:
    return float(options.get("connect_timeout") or 0) or _CONNECT_SECONDS


def _connect_locally(route: Mapping[str, str], options: Mapping[str, str], limit: float) -> socket.socket:
    link = socket.socket(socket.AF_UNIX)
    try:
        link.settimeout(limit)
        path = f"{route['address']}/.s.PGSQL.{route['port']}"
        link.connect("\0" + path[1:] if path.startswith("@") else path)
        _check_peer(link, options.get("requirepeer") or "")
    except BaseException:
        link.close()
        raise
    return link


def _check_peer(link: socket.socket, wanted: str) -> None:
    if not wanted:
        return
    uid = peer_of(link)[1]
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = f"uid {uid}"
    if name != wanted:
        raise LoginFailed(f"requirepeer={wanted}, and the server runs as {name}", "peer")


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
            size = wire.number(body, 2)
            name = body[6 : 6 + size].decode("ascii", "replace")
            if name not in found or not body[10 + size :].isdigit():
                raise wire.Broken("an answer to another question")
            found[name] = int(body[10 + size :][:18]) / 1000
        elif kind == _READY:
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
    if not wanted.get("application_name") and options.get("fallback_application_name"):
        wanted["application_name"] = options["fallback_application_name"]
    link.sendall(wire.startup_message(wanted))
    parameters: dict[str, str] = {}
    pid, key, heard = 0, b"", 0
    encrypted = isinstance(link, ssl.SSLSocket)
    login = authentication.Authentication(options, encrypted=encrypted, binding=tls.binding_of(link))
    until = time.monotonic() + _seconds_to_connect(options)
    for kind, body in messages(link, longest=_LONGEST_AT_LOGIN, until=until):
        heard += len(body) + 5
        if heard > _MOST_AT_LOGIN:
            raise wire.Broken(f"{heard} bytes before the login is over")
        if kind == _ERROR:
            said = wire.fields(body)
            code = said.get("C", "")
            raise LoginFailed(said.get("M", "the server refused")[:2000], "" if code in _NOT_YET else code)
        if kind == _DEMAND:
            _authenticate(link, login, body)
        elif not login.is_complete:
            raise wire.Broken(f"{chr(kind)!r} instead of a demand for authentication")
        elif kind == _PARAMETER_STATUS:
            wire.set_parameter(parameters, body)
        elif kind == _KEY:
            pid, key = wire.number(body), body[4:260]
        elif kind == _READY:
            break
        elif kind != _NOTICE:
            raise wire.Broken(f"{chr(kind)!r} before the login is over")
    link.settimeout(_CONNECT_SECONDS)
    return Upstream(link, parameters, pid, key, route)


def _authenticate(link: socket.socket, login: authentication.Authentication, body: bytes) -> None:
    try:
        answer = login.answer(body)
    except authentication.LoginRefused as problem:
        raise LoginFailed(str(problem), problem.code) from None
    if answer is not None:
        link.sendall(wire.message(b"p", answer))


def messages(
    link: socket.socket, *, longest: int = wire.LONGEST_MESSAGE, until: float | None = None
) -> Iterator[tuple[int, bytes]]:
    """One by one, and not a byte more: the session reads everything after the login.

    Raises:
        Broken: a message is longer than `longest`, or shorter than any.
        TimeoutError: it is `until`, by the monotonic clock.
    """
    while True:
        head = _read(link, 5, until)
        size = wire.number(head, 1)
        if not 4 <= size <= longest:
            raise wire.Broken(f"a message of {size} bytes")
        yield head[0], _read(link, size - 4, until)


def _read(link: socket.socket, size: int, until: float | None = None) -> bytes:
    found = bytearray()
    while len(found) < size:
        if until is not None:
            link.settimeout(max(until - time.monotonic(), 0.001))
        part = link.recv(min(size - len(found), 1 << 20))
        if not part:
            raise ConnectionError("the server closed the connection")
        found += part
    return bytes(found)


def _check_role(upstream: Upstream, wanted: str) -> None:
    standby = upstream.parameters.get("in_hot_standby") == "on"
    writable = not standby and upstream.parameters.get("default_transaction_read_only") != "on"
    fits = {"any": True, "read-write": writable, "read-only": not writable, "primary": not standby, "standby": standby}
    if not fits.get(wanted, True):
        upstream.socket.close()
        raise LoginFailed(f"{upstream.route['host']} is not {wanted}", "role")
