"""Measure how much later a piece of an answer is read through the keeper's spool than from the socket itself."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from statistics import median

from perdure._runtime import Runtime
from perdure.bench.figures import Figure, figure_of
from perdure.bench.rounds import take_turns

_PAUSE_SECONDS = 0.01
_HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"


async def spool(rt: Runtime, quick: bool) -> Figure:
    number = 0
    with _dribbling(20 if quick else 60) as port:

        async def ours() -> float:
            nonlocal number
            number += 1
            request = await rt.request(f"spool-{number}", "GET", f"http://127.0.0.1:{port}/")
            return median([age async for chunk in request.chunks() for age in _ages(chunk)])

        def floor() -> float:
            return median(_read_directly(port))

        rounds = await take_turns(1 if quick else 3, {"floor": floor, "ours": ours})
    return figure_of("shell", "a piece of an answer through the spool", "ms", rounds, floor_is="a bare socket")


@contextlib.contextmanager
def _dribbling(pieces: int) -> Iterator[int]:
    """A server that sends the time, again and again."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_serve, args=(listener, pieces), daemon=True).start()
        yield int(listener.getsockname()[1])


def _serve(listener: socket.socket, pieces: int) -> None:
    with contextlib.suppress(OSError):  # the other side has closed the connection
        while True:
            visitor, _ = listener.accept()
            with visitor:
                visitor.recv(65536)
                visitor.sendall(_HEAD)
                for _ in range(pieces):
                    time.sleep(_PAUSE_SECONDS)
                    visitor.sendall(f"{time.perf_counter()}\n".encode())


def _read_directly(port: int) -> list[float]:
    found: list[float] = []
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        while data := sock.recv(65536):
            found += _ages(data.rpartition(b"\r\n")[2])
    return found


def _ages(data: bytes) -> list[float]:
    """Milliseconds since each line was written; the clock is the machine's own."""
    now = time.perf_counter()
    return [(now - float(line)) * 1000 for line in data.split()]
