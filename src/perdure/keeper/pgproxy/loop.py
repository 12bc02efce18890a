"""The loop that moves the bytes between the client, the session and the server.

One thread. A client that does not read stops the server, as on a direct connection; a client that is gone stops
nothing. The server's messages are looked at before they are taken out of the socket, and facts are written in between:
so a successor finds either the answer or what was made of it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import socket
import ssl
import struct
from collections.abc import Callable
from typing import Any

from perdure.keeper.pgproxy.client_link import Visitor
from perdure.keeper.pgproxy.hold import Hold
from perdure.keeper.pgproxy.login import Upstream
from perdure.keeper.pgproxy.login import upstream as login
from perdure.keeper.pgproxy.poller import Poller
from perdure.keeper.pgproxy.protocol import FENCED, wire
from perdure.keeper.pgproxy.read_size import Gulp
from perdure.keeper.pgproxy.recovery import IDLE, LARGE, ONLY_NUMBER, SENDING, SENT, CommitWitness, Notebook, to_json
from perdure.keeper.pgproxy.session import Session
from perdure.keeper.session import hold_clock as clock

_MOST_AT_ONCE = 1 << 18
_FIRST_WORDS = 1 << 14
_HIGH = 1 << 20  # bytes waiting for a reader, at which the other side is not read any more
_ONE_PIECE = 4096  # bytes that a socket with nothing waiting takes whole
_MOST_VISITORS = 64
_UNSENT = 0x5411  # TIOCOUTQ: bytes that were sent and not yet taken


class Proxy:
    """One session, its server and its client of the moment."""

    def __init__(
        self,
        session: Session,
        upstream: Upstream,
        notes: Notebook,
        hold: Hold,
        witness: CommitWitness,
        options: dict[str, str],
    ) -> None:
        self.session, self.upstream, self.notes, self.hold = session, upstream, notes, hold
        self.witness = witness
        self.options = {name: value for name, value in options.items() if "password" not in name}
        self.user, self.database = options["user"], options.get("dbname") or options["user"]
        self.secret = ""
        self.lost_parts: list[str] = []  # what the next client has to be told
        self.client: socket.socket | None = None
        self.waiting: Visitor | None = None
        self.is_ending = False
        self.is_cut = False  # from the server
        self.idle_limit = 0.0  # seconds without client and transaction, after which it ends; 0 is never
        self.on_change: Callable[[], None] = lambda: None
        self.on_rest: Callable[[], None] = lambda: None  # nothing is under way any more
        self._key = b""
        self._question = bytearray()  # of the witness, on its way to the server
        self._lasting, self._lasting_of = b"", -1
        self._visitors: dict[int, Visitor] = {}
        self._from_server, self._from_client = Gulp(_MOST_AT_ONCE), Gulp(_MOST_AT_ONCE)
        self._server = upstream.socket
        self._server.setblocking(False)
        self.poller = Poller()
        self._watch, self._forget = self.poller.watch, self.poller.forget
        self._watch(self._server, selectors.EVENT_READ, self._server_event)

    def run(self) -> None:
        """Until the session is ended on purpose."""
        while not self.is_ending:
            self.poller.poll(self._patience())
            self._move()

    def _patience(self) -> float:
        longest = clock.longest_wait()
        if self.is_orphan:
            return max(0.0, min(self.hold.deadline()[0] - clock.seconds(), longest))
        if self.idle_limit and self.client is None:
            return max(0.0, min(self.hold.left + self.idle_limit - clock.seconds(), longest))
        return longest

    def _move(self) -> None:
        """Everything that follows from what was heard."""
        self._hand_to_server()
        self._hand_to_client()
        self._let_in()
        self._look_at_the_time()
        self._hand_to_server()
        self._set_interests()
        self.on_change()

    def _set_interests(self) -> None:
        session = self.session
        if session.gone is None:
            reads = selectors.EVENT_READ if len(session.to_client) < _HIGH else 0
            self._watch(self._server, reads | (selectors.EVENT_WRITE if self._has_to_send else 0))
        if self.client is not None:
            reads = selectors.EVENT_READ if len(session.to_server) < _HIGH else 0
            self._watch(self.client, reads | (selectors.EVENT_WRITE if session.to_client else 0))

    # ── the server ──────────────────────────────────────────────────────────────────────────────

    def _server_event(self) -> None:
        """Read what is there. Nothing is read while the client has not taken what was read before."""
        while self.session.gone is None and len(self.session.to_client) < _HIGH:
            try:
                data = self._peek()
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return
            except (OSError, ssl.SSLError) as problem:
                self.server_lost(f"the connection to the server broke: {problem}")
                return
            if not data:
                self.server_lost("the server closed the connection")
                return
            is_of_witness = self.witness.is_asking and self.session.is_quiet
            try:
                self.session.server_said(self._heard_by_witness(data) if self.witness.is_asking else data)
            except wire.Broken as problem:
                self.server_lost(f"the server cannot be understood any more: {problem}")
                return
            is_at_rest = self.session.is_quiet and not is_of_witness
            if is_at_rest:
                self.on_rest()  # before the client learns of it: everything it knows can then be built anew
            self._hand_to_client()
            if is_at_rest and self.session.is_quiet:
                self._came_to_rest()
            elif self.notes.phase != IDLE:
                self.notes.taken = True
            self._take(len(data))
            self._see_whether_lost()
            if not self._from_server.took(len(data)) and not isinstance(self._server, ssl.SSLSocket):
                return

    def _heard_by_witness(self, data: bytes) -> bytes:
        rest = self.witness.hear(data)
        if not self.witness.is_asking:
            if self.witness.failure:
                self.session.fail_waiting(self.witness.failure)
            self.write_facts()
            self.notes.phase, self.notes.taken = IDLE, False
        return rest

    def _see_whether_lost(self) -> None:
        if self.session.gone is not None:
            self.server_lost(self.session.gone)

    def _peek(self) -> bytes:
        if isinstance(self._server, ssl.SSLSocket):
            return self._server.recv(self._from_server.size)
        return self._server.recv(self._from_server.size, socket.MSG_PEEK)

    def _take(self, size: int) -> None:
        """Take out of the socket what was looked at."""
        if isinstance(self._server, ssl.SSLSocket):
            return
        while size > 0:
            size -= len(self._server.recv(size))

    def _came_to_rest(self) -> None:
        self.hold.spoke = clock.seconds()
        if self.session.status == b"I":
            self.hold.began = self.hold.spoke
        self.write_facts(anew=False)
        self.notes.phase, self.notes.unsynced, self.notes.taken = IDLE, False, False
        self.witness.rest(self.session)

    def _hand_to_server(self) -> None:
        notes = self.notes
        if not self._has_to_send or self.session.gone is not None:
            return
        if not self._question and self.witness.must_ask(self.session, is_idle=notes.phase == IDLE):
            self._question += self.witness.question()
            self.write_facts()
        if not self._question:
            self.witness.note(self.session, is_idle=notes.phase == IDLE)
        out = self._question or self.session.to_server
        if self._lasting_of != self.session.changes:
            self.write_facts()  # names that are about to be made: a successor has to close them
        if self.session.unsynced:
            notes.unsynced = True
        if notes.phase != LARGE:
            unsent = self._unsent() if notes.phase != IDLE else 0  # all that was sent has been answered
            notes.phase = SENDING if len(out) + unsent <= _ONE_PIECE else LARGE
        try:
            sent = self._server.send(out)
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            return
        except (OSError, ssl.SSLError):
            self._server_event()  # the reason for closing may still be readable
            self.server_lost("the connection to the server broke")
            return
        if sent == len(out):
            notes.phase, notes.unsynced = SENT, self.session.unsynced
        else:
            notes.phase = LARGE
        del out[:sent]

    def ask_number(self) -> None:
        """Ask for the number of the open transaction. A COMMIT after that is sent at once."""
        if self.notes.phase == IDLE and self.session.gone is None and self.witness.may_ask(self.session):
            self._question += self.witness.question()
            self.write_facts()

    @property
    def is_asking_number(self) -> bool:
        return bool(self._question) or self.witness.is_asking

    @property
    def _has_to_send(self) -> bool:
        return bool(self._question or (self.session.to_server and not self.witness.is_asking))

    def _unsent(self) -> int:
        if isinstance(self._server, ssl.SSLSocket):
            return 0
        with contextlib.suppress(OSError):
            waiting: int = struct.unpack("i", fcntl.ioctl(self._server, _UNSENT, b"\0\0\0\0"))[0]
            return waiting
        return 0

    def server_lost(self, why: str) -> None:
        if self.is_cut:
            return
        self.is_cut = True
        self.session.lost(why)
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # the parked copy of it too: a lost connection must not stay open
        self._forget(self._server)
        self.write_facts()
        if self.client is not None:
            self.session.to_client += wire.fatal(f"the kept session is lost: {self.session.gone}")
            self._hand_to_client()
            self._client_gone()

    # ── the client ──────────────────────────────────────────────────────────────────────────────

    def arrived(self, link: socket.socket) -> None:
        if len(self._visitors) >= _MOST_VISITORS:
            self._send_away(next(iter(self._visitors.values())), "too many others are waiting")
        visitor = Visitor(link, self.user, self.database, self.secret)
        self._visitors[link.fileno()] = visitor
        self._watch(link, selectors.EVENT_READ, lambda: self._visitor_event(visitor))

    def _visitor_event(self, visitor: Visitor) -> None:
        try:
            data = visitor.link.recv(_FIRST_WORDS)
            if not data:
                raise ConnectionError
            visitor.said(data)
            if visitor.reply:
                visitor.link.send(visitor.reply)
                visitor.reply = b""
        except BlockingIOError:
            return
        except (OSError, wire.Broken):
            self._send_away(visitor)
            return
        if visitor.wants is not None and visitor.wants.kind == "cancel":
            if visitor.wants.pid == self.upstream.pid and visitor.wants.key == self._key and self._key:
                self.cancel()
            self._send_away(visitor)
        elif visitor.is_over:
            self._send_away(visitor)
        elif visitor.is_in and self.waiting is not visitor:
            self._wait(visitor)

    def _send_away(self, visitor: Visitor, why: str = "") -> None:
        if why:
            with contextlib.suppress(OSError):
                visitor.link.send(wire.fatal(why))
        self._visitors.pop(visitor.link.fileno(), None)
        if self.waiting is visitor:
            self.waiting = None
        self._forget(visitor.link)

    def _wait(self, visitor: Visitor) -> None:
        """The newest client wins: the one before is fenced, and so is one that still waits."""
        if self.waiting is not None:
            self._send_away(self.waiting, "a newer client has taken this session over")
        self.waiting = visitor
        self.fence("a newer client has taken this session over")

    def fence(self, why: str) -> None:
        """Nothing of the present client is heard any more."""
        if self.client is not None:
            with contextlib.suppress(OSError):
                self.client.send(wire.fatal(why, hint=FENCED))
            self._client_gone()

    def _let_in(self) -> None:
        visitor = self.waiting
        if visitor is None:
            return
        session = self.session
        if session.gone is not None:
            self._send_away(visitor, f"the kept session is lost: {session.gone}")
            return
        if not session.is_quiet or session.to_server:
            return
        self.waiting = None
        del self._visitors[visitor.link.fileno()]
        self.poller.release(visitor.link)
        self.client, self._key = visitor.link, os.urandom(4)
        session.attach(guarded=visitor.is_guarded)
        session.to_client += self._greeting(visitor)
        self._watch(visitor.link, selectors.EVENT_READ, self._client_event)
        self.write_facts()
        if visitor.rest:
            self._client_said(visitor.rest)
        self._hand_to_client()

    def _greeting(self, visitor: Visitor) -> bytes:
        session, unknown = self.session, visitor.unknown_options
        parts = []
        if visitor.minor or unknown:
            names = b"".join(name.encode() + b"\0" for name in unknown)
            parts.append(wire.message(b"v", struct.pack("!II", 0, len(unknown)) + names))
        parts.append(wire.message(b"R", wire.LENGTH.pack(0)))
        parts += [wire.parameter(name, value) for name, value in session.parameters.items()]
        parts.append(wire.message(b"K", wire.LENGTH.pack(self.upstream.pid) + self._key))
        if visitor.ignored:
            told = f"a session that goes on keeps its settings; not taken: {', '.join(visitor.ignored)}"
            parts.append(wire.complaint(b"N", "NOTICE", "00000", told))
        parts += [wire.complaint(b"N", "WARNING", "01000", told) for told in self.lost_parts]
        self.lost_parts = []
        return b"".join(parts) + wire.ready(session.status)

    def _client_event(self) -> None:
        client = self.client
        if client is None or len(self.session.to_server) >= _HIGH:
            self._hand_to_client()
            return
        try:
            data = client.recv(self._from_client.size)
        except BlockingIOError:
            self._hand_to_client()
            return
        except OSError:
            data = b""
        if data:
            self._from_client.took(len(data))
            self._client_said(data)
        else:
            self._client_gone()

    def _client_said(self, data: bytes) -> None:
        try:
            stays = self.session.client_said(data)
        except wire.Broken as problem:
            self.fence(f"this cannot be understood: {problem}")
            return
        self._hand_to_server()
        if not stays:
            self._client_gone()

    def _hand_to_client(self) -> None:
        out = self.session.to_client
        if self.client is None or not out:
            return
        try:
            sent = self.client.send(out)
        except BlockingIOError:
            return
        except OSError:
            self._client_gone()
            return
        del out[:sent]

    def _client_gone(self) -> None:
        if self.client is not None:
            self._forget(self.client)
            self.client, self._key = None, b""
            self.session.detach()
            self.hold.left = clock.seconds()
            self.write_facts()

    # ── limits ──────────────────────────────────────────────────────────────────────────────────

    @property
    def is_orphan(self) -> bool:
        """True if an open transaction has no client."""
        session = self.session
        return self.client is None and session.status != b"I" and session.is_quiet and session.gone is None

    def _look_at_the_time(self) -> None:
        if self.is_orphan and self.waiting is None:
            end, whose = self.hold.deadline()
            if clock.seconds() >= end:
                told = f"the open transaction was rolled back: no client came back to it within {whose}"
                self.lost_parts.append(told)
                self.session.rolled_back(told)
        elif self.idle_limit and self.client is None and self.waiting is None and self.session.is_quiet:
            self.is_ending = clock.seconds() >= self.hold.left + self.idle_limit or self.is_ending

    def cancel(self) -> None:
        """Ask the server to cancel what is running, without waiting for it."""
        encrypted = isinstance(self._server, ssl.SSLSocket)
        login.cancel(self.upstream, self.options, encrypted=encrypted)

    # ── facts ───────────────────────────────────────────────────────────────────────────────────

    def facts(self) -> dict[str, Any]:
        """All that a successor or a client has to know."""
        return {**self._changing_facts(), **self._lasting_facts()}

    def _changing_facts(self) -> dict[str, Any]:
        session = self.session
        return {
            "status": session.status.decode(),
            "outcome": session.outcome.facts() if session.outcome else None,
            "began": self.hold.began,
            "asking": (self.session.asked_last or ONLY_NUMBER) if self.witness.is_asking else "",
        }

    def _lasting_facts(self) -> dict[str, Any]:
        session = self.session
        return {
            "parameters": session.parameters,
            **session.names.facts(),
            "blocks": session.blocks.facts(),
            "ledger": session.ledger.identity,
            "missed": [outcome.facts() for outcome in session.missed],
            "gone": session.gone,
            "lost_parts": self.lost_parts,
            "pid": self.upstream.pid,
            "key": self.upstream.key.hex(),
            "route": self.upstream.route,
            "user": self.user,
            "database": self.database,
            "hold": [self.hold.limit, self.hold.idle_timeout, self.hold.transaction_timeout],
            "left": self.hold.left,
        }

    def write_facts(self, *, anew: bool = True) -> None:
        """Write down the facts; with `anew=False` the rarely changing ones are only written if they changed."""
        if anew or self._lasting_of != self.session.changes:
            self._lasting_of = self.session.changes
            self._lasting = to_json(self._lasting_facts())
        if not self.notes.write(to_json(self._changing_facts())[:-1] + b"," + self._lasting[1:]):
            short = self.facts() | {"statements": None, "portals": None, "missed": []}
            self.notes.write(to_json(short))
