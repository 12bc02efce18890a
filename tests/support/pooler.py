"""A pooler in transaction mode in front of PostgreSQL: every transaction of a client is served by another connection.

    engine ── pooler ═╦═ server
                      ╚═ server

It greets with a number of its own, as PgBouncer does, and changes the connection whenever the server says that no
transaction is open: what a session kept on one of them is not there on the other.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Iterator
from itertools import cycle

from psycopg.conninfo import conninfo_to_dict

_READY_AND_IDLE = b"Z\0\0\0\5I"


class Pooler:
    def __init__(self, url: str) -> None:
        self._server = conninfo_to_dict(url)
        self._listener = socket.create_server(("127.0.0.1", 0))
        host, port = self._listener.getsockname()
        user, database = self._server["user"], self._server["dbname"]
        self.url = f"postgresql://{user}@{host}:{port}/{database}?sslmode=disable&gssencmode=disable"
        self.turns = 0
        self._threads = [threading.Thread(target=self._accept, name="pooler", daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(client,), name="pooler-client", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.ExitStack() as ends, contextlib.suppress(OSError):
            ends.enter_context(client)
            hello = client.recv(65536)
            servers = [ends.enter_context(self._connect()) for _ in range(2)]
            greetings = [_greeting(server, hello) for server in servers]
            client.sendall(_of_our_own(greetings[0]))
            turns = cycle(servers)
            server = next(turns)
            while True:
                readable, _, _ = select.select([client, server], [], [])
                if client in readable:
                    if not (data := client.recv(65536)):
                        return
                    server.sendall(data)
                if server in readable:
                    if not (data := server.recv(65536)):
                        return
                    client.sendall(data)
                    if data.endswith(_READY_AND_IDLE):
                        server = next(turns)
                        self.turns += 1

    def _connect(self) -> socket.socket:
        host, port = str(self._server.get("host") or "localhost"), int(self._server.get("port") or 5432)
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.{port}")
        return server

    def close(self) -> None:
        # accept() is not ended by close() alone.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()


def _greeting(server: socket.socket, hello: bytes) -> bytes:
    server.sendall(hello)
    said = b""
    while not said.endswith(_READY_AND_IDLE):
        said += server.recv(65536)
    return said


def _of_our_own(greeting: bytes) -> bytes:
    """The same, from another process number."""
    head = greeting.index(b"K\0\0\0") + 5
    (pid,) = struct.unpack_from("!I", greeting, head)
    return greeting[:head] + struct.pack("!I", pid + 1_000_000) + greeting[head + 4 :]


@contextlib.contextmanager
def pooler_to(url: str) -> Iterator[Pooler]:
    """Whoever connected through it has to be closed before its end."""
    pooler = Pooler(url)
    try:
        yield pooler
    finally:
        pooler.close()
