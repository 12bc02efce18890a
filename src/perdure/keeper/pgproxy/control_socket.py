"""The control questions of a session's owner, beside the database protocol: one line of JSON, one line back.

{"ask": "state"}                 the facts, and the present state
{"ask": "wait", "for": "quiet"}  the same, when nothing is under way; "none": when no transaction is open;
                                 "gone": when the server is lost
{"ask": "fence", "why"}          nothing more is read from the present client
{"ask": "cancel"}                the running statement is cancelled
{"ask": "commit" | "rollback"}   of the open transaction
{"ask": "number"}                the state, with the number of the open transaction and the server that gave it
{"ask": "hold", "seconds"}       from now on
{"ask": "recipe"}                what it takes to build the session anew
{"ask": "end"}                   rolls back, closes the session, ends the process
"""

from __future__ import annotations

import json
import os
import selectors
import socket
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from perdure.keeper.pgproxy.loop import Proxy
from perdure.keeper.pgproxy.protocol import TRANSACTION, Outcome, wire
from perdure.keeper.pgproxy.session_start import as_text

_LONGEST, _LONGEST_ERROR = 1 << 16, 1000
_MOST_LINKS = 256
_MOST_UNREAD = 4 << 20  # bytes of answers to a client that does not read them
_LONGEST_HOLD = 30 * 86400.0  # seconds


class Control:
    """Answers for one proxy."""

    def __init__(self, proxy: Proxy, listener: socket.socket, how: dict[str, Any]) -> None:
        self._proxy, self._how = proxy, how
        self._data: dict[int, bytearray] = {}  # by descriptor: what was said, up to a whole line
        self._out: dict[int, bytearray] = {}  # what has not been taken yet
        self._waiting: list[tuple[socket.socket, Callable[[], bool]]] = []
        self._ended: dict[int, Outcome] = {}  # by connection: of the transaction that it has asked to end
        self.listen(listener)
        proxy.on_change = self._tell_those_who_wait

    def listen(self, listener: socket.socket) -> None:
        self._proxy.poller.listen(listener, self._arrived)

    def _arrived(self, link: socket.socket) -> None:
        if len(self._data) >= _MOST_LINKS:
            link.close()
            return
        self._data[link.fileno()], self._out[link.fileno()] = bytearray(), bytearray()
        self._proxy.poller.watch(link, 1, lambda: self._event(link))

    def _event(self, link: socket.socket) -> None:
        self._flush(link)
        if link.fileno() < 0:
            return
        try:
            data = link.recv(_LONGEST)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        said = self._data[link.fileno()]
        said += data
        if not data or len(said) > _LONGEST:
            self._hang_up(link)
            return
        while b"\n" in said and link.fileno() in self._data:
            line, _, rest = said.partition(b"\n")
            said[:] = rest
            self._answer(link, line)

    def _answer(self, link: socket.socket, line: bytes | bytearray) -> None:
        try:
            asked = json.loads(line)
            if not isinstance(asked, dict):
                raise TypeError("a question is an object")
            self._do(link, asked)
        except (ValueError, KeyError, TypeError, RecursionError) as problem:
            self._tell(link, {"error": f"{type(problem).__name__}: {problem}"[:_LONGEST_ERROR]})

    def _hang_up(self, link: socket.socket) -> None:
        if link.fileno() < 0:
            return
        self._waiting = [(other, until) for other, until in self._waiting if other is not link]
        self._data.pop(link.fileno(), None)
        self._ended.pop(link.fileno(), None)
        self._out.pop(link.fileno(), None)
        self._proxy.poller.forget(link)

    def _do(self, link: socket.socket, asked: dict[str, Any]) -> None:
        proxy, session = self._proxy, self._proxy.session
        match asked["ask"]:
            case "state":
                self._tell(link, self.state())
            case "wait":
                self._waiting.append((link, self._condition(asked["for"])))
            case "fence":
                proxy.fence(str(asked.get("why") or "this client is not heard any more"))
                self._tell(link, self.state())
            case "cancel":
                proxy.cancel()
                self._tell(link, self.state())
            case "commit" | "rollback" as what:
                if not session.is_quiet:
                    self._tell(link, {"error": "a statement is under way"})
                    return
                outcome = session.commit() if what == "commit" else session.ask(wire.query("ROLLBACK"))
                self._waiting.append((link, lambda: session.is_quiet))
                self._ended[link.fileno()] = outcome
            case "number":
                proxy.ask_number()
                self._waiting.append((link, lambda: not proxy.is_asking_number))
            case "recipe":
                self._tell(link, {"recipe": as_text(getattr(session, "recipe", None))})
            case "hold":
                proxy.hold.limit = _seconds(asked["seconds"])
                proxy.write_facts()
                self._tell(link, self.state())
            case "end":
                self._tell(link, {"ended": True})
                proxy.is_ending = True
            case other:
                self._tell(link, {"error": f"{other!r} is not known"})

    def _condition(self, what: str) -> Callable[[], bool]:
        session = self._proxy.session
        conditions: dict[str, Callable[[], bool]] = {
            "quiet": lambda: session.is_quiet and not session.to_server,
            "none": lambda: session.is_quiet and session.status == b"I",
            "gone": lambda: session.gone is not None,
            "alone": lambda: self._proxy.client is None and session.is_quiet,
        }
        return conditions[what]

    def _tell_those_who_wait(self) -> None:
        if not self._waiting:
            return
        ready = [link for link, until in self._waiting if until() or self._proxy.session.gone is not None]
        self._waiting = [(link, until) for link, until in self._waiting if link not in ready]
        for link in ready:
            ended = self._ended.pop(link.fileno(), None)
            self._tell(link, self.state() | ({"ended": ended.facts()} if ended else {}))

    def _tell(self, link: socket.socket, what: dict[str, Any]) -> None:
        """As soon as the other end takes it; the session does not wait for a client that asks and does not read."""
        if (out := self._out.get(link.fileno())) is None:
            return
        out += json.dumps(what).encode() + b"\n"
        self._flush(link)
        if len(out) > _MOST_UNREAD:
            self._hang_up(link)

    def _flush(self, link: socket.socket) -> None:
        out = self._out[link.fileno()]
        try:
            while out:
                del out[: link.send(out)]
        except BlockingIOError:
            pass
        except OSError:
            self._hang_up(link)
            return
        self._proxy.poller.watch(link, selectors.EVENT_READ | (selectors.EVENT_WRITE if out else 0))

    def state(self) -> dict[str, Any]:
        proxy, session = self._proxy, self._proxy.session
        facts = proxy.facts()
        del facts["key"]
        limit, whose = proxy.hold.capped()
        return {
            **facts,
            **self._how,
            "proxy": os.getpid(),
            "number": proxy.witness.number,
            "number_refused": proxy.witness.failure.get("M", ""),
            "server": asdict(proxy.witness.server),
            "transaction": TRANSACTION[session.status],
            "attached": proxy.client is not None,
            "busy": not session.is_quiet,
            "discarded": session.discarded,
            "dropped": session.dropped,
            "encrypted": proxy.upstream.is_encrypted,
            "hold_seconds": limit,
            "hold_by": whose,
        }


def _seconds(given: Any) -> float:
    seconds = float(given)
    if not 0 < seconds <= _LONGEST_HOLD:  # also what is not a number
        raise ValueError(f"{given!r} is not between nothing and 30 days")
    return seconds
