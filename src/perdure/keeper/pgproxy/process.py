"""The life of a proxy: one for a session, with a connection that is new or was parked, until it is told to end."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import selectors
import signal
import socket
from collections.abc import Callable, Mapping
from typing import Any

from perdure.keeper.pgproxy.control_socket import Control
from perdure.keeper.pgproxy.hold import Hold
from perdure.keeper.pgproxy.login import LoginFailed, Upstream
from perdure.keeper.pgproxy.loop import Proxy
from perdure.keeper.pgproxy.protocol import wire
from perdure.keeper.pgproxy.recovery import (
    NAME,
    Adopted,
    CommitWitness,
    Finding,
    Notebook,
    Parking,
    Server,
    Trace,
    Unusable,
    adopt,
    examine,
    parking_of,
)
from perdure.keeper.pgproxy.session import Blocks
from perdure.keeper.pgproxy.session_start import LEDGER, as_text, keep_recipe, kept_ledger, kept_recipe, make, take_over
from perdure.keeper.session import Ledger, forget_passwords, hold_lock, listen, tell_starter
from perdure.keeper.session import hold_clock as clock

_UNDUMPABLE = 4  # PR_SET_DUMPABLE
_DOOR = ".s.PGSQL.5432"


Answer = Callable[[dict[str, Any]], None]


def main(config: dict[str, Any], answer: Answer | None = None) -> None:
    """Be the proxy of one session; returns when it has been ended."""
    tell = answer or tell_starter
    for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(ignored, signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_UNDUMPABLE, 0)
    folder = config["folder"]
    lock = os.open(os.path.join(folder, "lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        tell({"error": "the session has a proxy already", "kind": "twice"})
        return
    parking = parking_of(config)
    try:
        proxy, how = _begin(config, parking)
    except LoginFailed as problem:
        tell({"error": str(problem), "kind": "login", "code": problem.code})
        return
    except Unusable as problem:
        recipe, _ = kept_recipe(config, parking)
        tell({"error": str(problem), "kind": "lost", "recipe": as_text(recipe)})
        return
    forget_passwords(config.get("options") or {})
    proxy.secret = config.get("secret") or ""
    if "channel" not in config:  # no other process would ever end it
        proxy.idle_limit = float(config["hold"]) + 3600
    control = Control(proxy, listen(os.path.join(folder, "control")), how)
    proxy.poller.listen(listen(os.path.join(folder, _DOOR)), proxy.arrived)
    _put_back_when_told(proxy, control, folder)
    proxy.write_facts()
    tell(how)
    # Not SIGTERM: its sender only ends the process, and the next one continues with its connection.
    signal.signal(signal.SIGUSR1, _told_to_end)
    with contextlib.suppress(_Told):
        proxy.run()
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    _end(proxy, parking, config["name"])


def _put_back_when_told(proxy: Proxy, control: Control, folder: str) -> None:
    """SIGUSR2, from the keeper: the folder was removed, and is there again, empty."""
    heard, bell = socket.socketpair()
    bell.setblocking(False)

    def put_back() -> None:
        heard.recv(64)
        hold_lock(folder)
        proxy.witness.put_back(os.path.join(folder, NAME))
        proxy.session.ledger.put_back()
        for name, listens in (
            (_DOOR, lambda door: proxy.poller.listen(door, proxy.arrived)),
            ("control", control.listen),
        ):
            if not os.path.exists(path := os.path.join(folder, name)):
                listens(listen(path))

    def ring(*_: object) -> None:
        with contextlib.suppress(BlockingIOError):
            bell.send(b"!")

    proxy.poller.watch(heard, selectors.EVENT_READ, put_back)
    signal.signal(signal.SIGUSR2, ring)


class _Told(BaseException):
    """SIGUSR1, from the keeper: end as if asked to."""


def _told_to_end(*_: object) -> None:
    raise _Told


def _begin(config: Mapping[str, Any], parking: Parking) -> tuple[Proxy, dict[str, Any]]:
    name, options = config["name"], dict(config.get("options") or {})
    lost, ledger = "", kept_ledger(config, parking)
    try:
        adopted = adopt(name, parking, ledger)
    except Unusable as problem:
        lost, adopted = str(problem), None
        for part in (name, f"{name}.notes"):
            parking.drop(part)
    if adopted is not None:
        return _proxy_of(adopted, config), {"how": "kept", "lost": ""}
    if not options:
        raise Unusable(lost or "no connection is parked")
    return _new(config, options, parking, lost, ledger)


def _new(
    config: Mapping[str, Any], options: dict[str, str], parking: Parking, lost: str, ledger: Ledger
) -> tuple[Proxy, dict[str, Any]]:
    name, trace = config["name"], _trace_of(config)
    recipe, page = kept_recipe(config, parking)
    finding = None
    if (left := trace.read()) is not None:
        try:
            finding = examine(options, left)
        except OSError as problem:
            raise LoginFailed(f"the connection to the server broke: {problem}", "") from None
        finding.amend(recipe, left)
    elif recipe is not None and recipe.open:
        recipe.spoil("whether it was committed is uncertain: the session's notes are gone")
    made = make(options, recipe)
    take_over(ledger, made, finding)
    upstream = made.upstream
    hold = Hold(float(config["hold"]), *made.timeouts, left=clock.seconds(), began=clock.seconds())
    proxy = Proxy(made.session, upstream, Notebook.new(), hold, CommitWitness(trace, made.server), options)
    if finding is not None:
        _tell_next(proxy, finding)
    proxy.write_facts()
    keep_recipe(proxy, page)
    proxy.witness.begin(proxy.session)
    parking.put(f"{name}.notes", proxy.notes.fd)
    if not upstream.is_encrypted:
        parking.put(name, upstream.socket.fileno())
    found = finding.facts() if finding is not None else None
    return proxy, {"how": made.how, "lost": lost, "refused": made.refused, "applied": made.applied, "found": found}


def _trace_of(config: Mapping[str, Any]) -> Trace:
    return Trace(os.path.join(config["folder"], NAME))


def _tell_next(proxy: Proxy, finding: Finding) -> None:
    """The next client is told the outcome of the session before."""
    session = proxy.session
    if finding.outcome is not None:
        session.outcome = finding.outcome
        session.missed.append(finding.outcome)
    if session.status == b"I" and finding.blocks:
        session.blocks = Blocks.of(finding.blocks)


def _proxy_of(adopted: Adopted, config: Mapping[str, Any]) -> Proxy:
    facts = adopted.facts
    _, idle, transaction = facts["hold"]
    left = facts["left"] or clock.seconds()
    hold = Hold(float(config["hold"]), idle, transaction, facts["began"], clock.seconds(), left)
    upstream = Upstream(
        adopted.link, adopted.session.parameters, facts["pid"], bytes.fromhex(facts["key"]), facts["route"]
    )
    options = {"user": facts["user"], "dbname": facts["database"]}
    trace = _trace_of(config)
    noted = trace.read()
    witness = CommitWitness(trace, noted.server if noted is not None else Server())
    if noted is not None and noted.has_committed:
        adopted.session.has_committed = True
    proxy = Proxy(adopted.session, upstream, adopted.notes, hold, witness, options)
    witness.begin(proxy.session)
    proxy.lost_parts = list(facts["lost_parts"])
    keep_recipe(proxy, adopted.page)
    return proxy


def _end(proxy: Proxy, parking: Parking, name: str) -> None:
    """Leave nothing: a parked copy would hold the connection open. Of a lost session, its trace."""
    if proxy.session.gone is None:
        proxy.witness.forget()
    link = proxy.upstream.socket
    with contextlib.suppress(OSError, ValueError):
        link.setblocking(True)
        link.settimeout(2)
        link.sendall(wire.TERMINATE)
        link.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(OSError, ConnectionError):
        for part in (name, f"{name}.notes", f"{name}.recipe", f"{name}.{LEDGER}"):
            parking.drop(part)
