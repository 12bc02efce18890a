"""A TCP proxy in front of PostgreSQL that cuts connections at the worst moment.

    engine ── proxy ── server

It knows one thing of the protocol: a COMMIT is sent in plain letters. The next one to pass, with all that is sent
together with it, can be lost before it reaches the server, lost on its way back after the server has done it, or
held back after its sender is cut off, like a packet that arrives late. Or a connection is cut after some bytes,
whatever they are.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Literal

from psycopg.conninfo import conninfo_to_dict

Moment = Literal["before", "after", "late"]
Way = Literal["to server", "to client"]
_COMMIT = b"COMMIT\0"  # not that of READ COMMITTED


class Proxy:
    """Forwards every connection to the server of `url`; `url` of the proxy leads through it."""

    def __init__(self, url: str) -> None:
        self._server = conninfo_to_dict(url)
        self._listener = socket.create_server(("127.0.0.1", 0))
        host, port = self._listener.getsockname()
        user, database = self._server["user"], self._server["dbname"]
        self.url = f"postgresql://{user}@{host}:{port}/{database}?sslmode=disable&gssencmode=disable"
        self._mutex = threading.Lock()
        self._links: list[_Link] = []
        self._pumps: list[threading.Thread] = []
        self._moment: Moment | None = None
        self._allowed: tuple[Way, int] | None = None
        self._refusals = 0
        self._held: _Link | None = None
        self.has_cut = threading.Event()
        self._thread = threading.Thread(target=self._accept, name="proxy", daemon=True)
        self._thread.start()

    # ── what tests ask for ──────────────────────────────────────────────────────────────────────

    def cut_next_commit(self, moment: Moment) -> None:
        """Cut the connection that sends the next COMMIT."""
        with self._mutex:
            self._moment = moment
            self.has_cut.clear()

    @property
    def holds_back(self) -> bool:
        """True if a COMMIT waits to be delivered."""
        return self._held is not None

    def deliver(self) -> None:
        """Let the COMMIT that was held back reach the server, and wait for its answer.

        It never arrives when the server has ended that connection meanwhile, as it does when a new owner has the
        backend of the old one terminated.
        """
        held, self._held = self._held, None
        assert held is not None, "no COMMIT was held back"
        with contextlib.suppress(OSError):
            held.server.sendall(held.kept_back)
            held.has_answered.wait()
        held.close()

    def be_calm(self) -> None:
        """Cut nothing that was to be cut, and hold nothing back: half of a batch at the server keeps its locks."""
        with self._mutex:
            self._moment = self._allowed = None
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def cut_after(self, way: Way, count: int) -> None:
        """Cut the connection that has passed so many more bytes this way."""
        with self._mutex:
            self._allowed = (way, count)
            self.has_cut.clear()

    def cut(self) -> None:
        """Cut every connection there is."""
        with self._mutex:
            links, self._links = self._links, []
        for link in links:
            link.close()

    def refuse_next(self, count: int) -> None:
        """Hang up on that many who connect, as a server does that is not up yet."""
        with self._mutex:
            self._refusals = count

    # ── forwarding ──────────────────────────────────────────────────────────────────────────────

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._mutex:
                is_refused = self._refusals > 0
                self._refusals -= is_refused
            if is_refused:
                client.close()
                continue
            link = _Link(client, self._connect())
            with self._mutex:
                self._links.append(link)
            for pump in (self._to_server, self._to_client):
                thread = threading.Thread(target=pump, args=(link,), name="proxy-pump", daemon=True)
                self._pumps.append(thread)
                thread.start()

    def _connect(self) -> socket.socket:
        host, port = str(self._server.get("host") or "localhost"), int(self._server.get("port") or 5432)
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.{port}")
        return server

    def _to_server(self, link: _Link) -> None:
        with contextlib.suppress(OSError):
            while data := link.client.recv(65536):
                moment = self._moment_of(data)
                if moment is not None:
                    link.cut_commit(moment, data)
                    if moment == "late":
                        self._held = link
                    self.has_cut.set()
                    return
                passing = self._passing("to server", data)
                link.server.sendall(passing)
                if len(passing) < len(data):
                    break
        link.close()

    def _moment_of(self, data: bytes) -> Moment | None:
        with self._mutex:
            if self._moment is None or _COMMIT not in data:
                return None
            moment, self._moment = self._moment, None
            return moment

    def _passing(self, way: Way, data: bytes) -> bytes:
        """What of it still gets through."""
        with self._mutex:
            if self._allowed is None or self._allowed[0] != way:
                return data
            left = self._allowed[1]
            self._allowed = (way, left - len(data))
            if left < len(data):
                self._allowed = None
                self.has_cut.set()
            return data[:left]

    def _to_client(self, link: _Link) -> None:
        with contextlib.suppress(OSError):
            while data := link.server.recv(65536):
                if link.is_cut.is_set():
                    link.has_answered.set()
                    return
                passing = self._passing("to client", data)
                link.client.sendall(passing)
                if len(passing) < len(data):
                    break
        link.has_answered.set()
        if not link.is_cut.is_set():
            link.close()

    def close(self) -> None:
        # accept() is not ended by close() alone.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        if self._held is not None:
            self._held.close()
        self.cut()
        for thread in self._pumps:
            thread.join()


class _Link:
    """One connection through the proxy."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client, self.server = client, server
        self.is_cut = threading.Event()
        self.has_answered = threading.Event()
        self.kept_back = b""

    def cut_commit(self, moment: Moment, data: bytes) -> None:
        self.is_cut.set()
        if moment == "after":
            self.server.sendall(data)
            self.has_answered.wait()
        self.kept_back = data
        _end(self.client)
        if moment != "late":
            _end(self.server)

    def close(self) -> None:
        _end(self.client)
        _end(self.server)


def _end(end: socket.socket) -> None:
    # shutdown() wakes a thread that is reading from it; close() alone would not.
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


@contextlib.contextmanager
def proxy_to(url: str) -> Iterator[Proxy]:
    proxy = Proxy(url)
    try:
        yield proxy
    finally:
        proxy.close()
