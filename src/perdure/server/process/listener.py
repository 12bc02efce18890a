"""Listen, serve until a signal comes, and leave in good order.

A server that is asked to stop accepts nothing more, lets streams say goodbye, finishes the requests in flight within
10 s, and then ends.
"""

from __future__ import annotations

import errno
import logging
import os
import signal
import socket
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from perdure.errors import Conflict, InvalidInput, NotAllowed
from perdure.server.access import is_in, is_loopback

if TYPE_CHECKING:
    from perdure.server.pipeline import Server

_GRACE = 10  # seconds for requests in flight
_BACKLOG = 2048
_MORE_PORTS = 20


class Listener(NamedTuple):
    """A socket that listens."""

    socket: socket.socket
    host: str
    port: int

    @property
    def url(self) -> str:
        host = "127.0.0.1" if self.host in ("0.0.0.0", "localhost") else "::1" if self.host == "::" else self.host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


def require_uvicorn() -> None:
    """
    Raises:
        InvalidInput: what the server needs is not installed.
    """
    if not has_uvicorn():
        raise InvalidInput(
            "the server needs uvicorn, which is not installed",
            kept="nothing was started",
            do="pip install 'perdure[server]'",
        )


def has_uvicorn() -> bool:
    return all(find_spec(name) is not None for name in ("uvicorn", "h11"))


def bind(host: str, port: int, *, may_move: bool = False) -> Listener:
    """Listen on a port; where it is taken and the server may move, on the next free one of twenty.

    Raises:
        Conflict: the port is taken.
        NotAllowed: this user may not have it.
        InvalidInput: there is no such address here.
    """
    for tried in range(port, port + (_MORE_PORTS if may_move and port else 0) + 1):
        if tried > 65535:
            break
        try:
            return _bind(host, tried)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                continue
            if error.errno in (errno.EACCES, errno.EPERM):
                raise NotAllowed(f"this user may not listen on port {tried}", do="choose a port above 1023") from None
            raise InvalidInput(f"cannot listen on {host} port {tried}: {error.strerror or error}") from None
    last = f" to {port + _MORE_PORTS}" if may_move else ""
    do = "stop the other server, or choose another port with --port"
    raise Conflict(f"port {port}{last} of {host} is in use", kept="nothing was started", do=do)


def _bind(host: str, port: int) -> Listener:
    kind, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    # Named as TCP, so that asyncio sends small answers at once: without it each one waits 40 ms for an acknowledgement.
    made = socket.socket(kind, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(_BACKLOG)
    except BaseException:
        made.close()
        raise
    return Listener(made, host, made.getsockname()[1])


def bind_unix(path: str) -> socket.socket:
    """Listen on a Unix socket that only this user can open, in a folder that only this user can change.

    Raises:
        Conflict: a server listens there.
        NotAllowed: the folder is open to others.
        InvalidInput: the path cannot be used.
    """
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, mode=0o700, exist_ok=True)
    state = os.stat(folder)
    if state.st_uid != os.geteuid() or state.st_mode & 0o077:
        raise NotAllowed(f"others can reach into {folder}", do=f"choose a folder of your own, or `chmod 700 {folder}`")
    _remove_left_socket(path)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        before = os.umask(0o177)
        try:
            made.bind(path)
        finally:
            os.umask(before)
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        raise InvalidInput(f"cannot listen on {path}: {error.strerror or error}") from None
    return made


def _remove_left_socket(path: str) -> None:
    """Remove the socket of a server that was killed; one that answers is in use."""
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise InvalidInput(f"{path} is not a socket", do="choose another path with --socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trial:
            try:
                trial.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)
            else:
                raise Conflict(f"a server listens on {path}", kept="nothing was started", do="stop it first")


async def refuse_open_door(server: Server, *, is_insecure: bool) -> None:
    """Refuse to serve beyond this machine without keys, or in the clear without having been told to.

    Raises:
        NotAllowed: strangers could come in, or could listen.
    """
    settings = server.settings
    if is_loopback(settings.host):
        return
    if not await server.desk.keys.has_any():
        raise NotAllowed(
            f"{settings.host} can be reached from other machines, and there is no API key",
            kept="nothing was started",
            do="make one first: `perdure api-keys make NAME --scope viewer`",
        )
    if not is_insecure and not any(origin.startswith("https://") for origin in server.desk.place.origins):
        raise NotAllowed(
            f"{settings.host} can be reached from other machines, and keys would cross the network in the clear",
            kept="nothing was started",
            do="put a proxy that ends TLS before it and name it with --origin https://…, or give --insecure-http",
        )


async def serve(server: Server, sockets: Sequence[socket.socket], *, on_ready: Callable[[], Any] | None = None) -> int:
    """Serve on these sockets until SIGTERM or SIGINT; returns the signal. Call it in the main thread."""
    import uvicorn

    from perdure.server.process.wire import HEAD_BYTES, Crowd, wire_for

    crowd = Crowd(is_exempt=lambda address: is_in(address, server.proxies))
    config = uvicorn.Config(
        server,
        http=wire_for(crowd),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=_GRACE,
        h11_max_incomplete_event_size=HEAD_BYTES,
        backlog=_BACKLOG,
    )
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)

    class Uvicorn(uvicorn.Server):
        heard = 0

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if on_ready is not None:
                on_ready()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            server.stopping.set()
            await super().shutdown(sockets)

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            # uvicorn would raise the signal again when it is done; this process ends with exit code 0 instead.
            before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)}
            try:
                yield
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            self.heard = sig
            self.should_exit = True

    running = Uvicorn(config)
    await running.serve([*sockets])
    return running.heard
