"""A connection to the keeper that mends itself.

Questions are sent by whoever asks and answered through a reader thread, so neither an event loop nor another
thread is held up. The keeper may be replaced or killed at any time: the connection is then made again, and what was
not answered is asked again. That is harmless for every question, as the keeper knows commands and inputs by id.

Owns the way to the keeper. What is asked is in the file of each kind.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, TypeVar

from perdure import keeper
from perdure._ground.hop import Call, Hop
from perdure._runtime import places, refusals, starting
from perdure.errors import KeeperUnavailable

T = TypeVar("T")
Listener = Callable[[keeper.News], None]
# How long a keeper may be away before we say so; the anchor starts a new one within a fraction of a second.
PATIENCE_SECONDS = 15.0
_RETRY_SECONDS = 0.01


class Ask(Hop[keeper.Reply]):
    """A question on its way; await it for the answer.

    Raises:
        PerdureError: the keeper has refused, or cannot be reached.
    """

    __slots__ = ("_client", "request", "_done", "_reply", "_error", "_wake")

    def __init__(self, client: Client, request: keeper.Request) -> None:
        self._client, self.request = client, request
        self._done = threading.Event()
        self._reply: keeper.Reply | None = None
        self._error: BaseException | None = None
        self._wake: Callable[[], None] | None = None

    def block(self) -> keeper.Reply:
        self._client.submit(self)
        self._done.wait()
        return self._result()

    def on_loop(self) -> Generator[Any, None, keeper.Reply]:
        return (yield from self._wait().__await__())

    async def _wait(self) -> keeper.Reply:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def ring() -> None:
            if not future.done():
                future.set_result(None)

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(ring)

        self._wake = wake
        try:
            if self._client.is_connected:
                self._client.submit(self)
            else:
                await Call(lambda: self._client.submit(self))
            await future
        finally:
            self._client.give_up(self)
        return self._result()

    def _result(self) -> keeper.Reply:
        if self._error is not None:
            raise self._error
        assert self._reply is not None
        return self._reply

    def settle(self, answer: keeper.Reply | keeper.Refusal | BaseException) -> None:
        if isinstance(answer, keeper.Reply):
            self._reply = answer
        elif isinstance(answer, keeper.Refusal):
            self._error = refusals.error_of(answer, self.request)
        else:
            self._error = answer
        self._done.set()
        if self._wake is not None:
            self._wake()


class Client:
    """The keeper of one store, as this process speaks to it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.about: dict[str, Any] = {}
        self.times_connected = 0
        self._ids = itertools.count(1)
        self._asked: dict[int, Ask] = {}
        self._listeners: dict[str, list[Listener]] = {}
        self._mutex = threading.RLock()
        self._sock: socket.socket | None = None
        self._is_closed = False
        self._pid = os.getpid()

    @property
    def is_connected(self) -> bool:
        return self._sock is not None

    def ask(self, verb: str, body: bytes = b"", fds: tuple[int, ...] = (), **args: Any) -> Ask:
        return Ask(self, keeper.Request(next(self._ids), verb, args, body, fds))

    def do(self, unit: str, verb: str, body: bytes = b"", **args: Any) -> Ask:
        """Ask a unit."""
        return self.ask("do", body, unit=unit, do=verb, **args)

    def listen(self, unit: str, listener: Listener) -> Callable[[], None]:
        """Hear all news about a unit, in the reader's thread; call what is given to hear no more."""
        with self._mutex:
            self._listeners.setdefault(unit, []).append(listener)

        def stop() -> None:
            with self._mutex, contextlib.suppress(ValueError, KeyError):
                self._listeners[unit].remove(listener)

        return stop

    # ── asking ──────────────────────────────────────────────────────────────────────────────────

    def submit(self, ask: Ask) -> None:
        """Send a question, connecting first if need be; blocks only while connecting."""
        with self._mutex:
            if self._pid != os.getpid():
                raise KeeperUnavailable(
                    "this connection to the keeper was made before os.fork()", do="open the runtime in the child"
                )
            self._asked[ask.request.id] = ask
            try:
                if self._sock is None:
                    self._connect()  # sends all that was asked
                else:
                    self._send(ask)
            except BaseException:
                self._asked.pop(ask.request.id, None)
                raise

    def give_up(self, ask: Ask) -> None:
        self._asked.pop(ask.request.id, None)

    def _send(self, ask: Ask) -> None:
        assert self._sock is not None
        try:
            keeper.send(self._sock, ask.request)
        except OSError:
            self._sock.shutdown(socket.SHUT_RDWR) if _is_alive(self._sock) else None  # the reader connects again

    def _connect(self) -> None:
        if self._is_closed:
            raise KeeperUnavailable("the runtime was closed", do="open it again")
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                self._sock = self._say_hello(_connected(self.home))
                break
            except (OSError, EOFError, keeper.BadFrame) as error:
                if time.monotonic() > end:
                    raise KeeperUnavailable(
                        f"the keeper in {self.home} does not answer: {error}",
                        kept="its units, as far as they live",
                        do="`perdure keep status` says more; `perdure keep restart` replaces a keeper that hangs",
                    ) from error
                time.sleep(_RETRY_SECONDS)
        self.times_connected += 1
        threading.Thread(target=self._read, args=(self._sock,), name="perdure-keeper", daemon=True).start()
        for ask in list(self._asked.values()):
            self._send(ask)

    def _say_hello(self, sock: socket.socket) -> socket.socket:
        try:
            token = _token()
            args = {"versions": list(keeper.VERSIONS)}
            keeper.send(sock, keeper.Request(0, "hello", args, fds=() if token is None else (token,)))
            decoder = keeper.Decoder()
            while True:
                data, fds = keeper.receive(sock)
                if not data:
                    raise EOFError("it hung up")
                for answer in decoder.feed(data, fds):
                    if isinstance(answer, keeper.Refusal):
                        raise refusals.error_of(answer, None)
                    self.about = answer.args
                    sock.settimeout(None)
                    return sock
        except BaseException:
            sock.close()
            raise

    # ── hearing ─────────────────────────────────────────────────────────────────────────────────

    def _read(self, sock: socket.socket) -> None:
        decoder = keeper.Decoder()
        try:
            while True:
                data, fds = keeper.receive(sock)
                if not data:
                    break
                for message in decoder.feed(data, fds):
                    self._hear(message)
        except (OSError, keeper.BadFrame):
            pass
        finally:
            decoder.close()
            self._lost(sock)

    def _hear(self, message: keeper.Reply | keeper.Refusal | keeper.News | keeper.Request) -> None:
        if isinstance(message, keeper.News):
            with self._mutex:
                listeners = list(self._listeners.get(message.args.get("unit", ""), ()))
            for listener in listeners:
                listener(message)
        elif not isinstance(message, keeper.Request):
            ask = self._asked.pop(message.id, None)
            if ask is not None:
                ask.settle(message)
            else:
                for fd in message.fds:
                    os.close(fd)

    def _lost(self, sock: socket.socket) -> None:
        """The keeper has gone, or we have: connect anew if anybody waits for something."""
        with self._mutex:
            sock.close()
            if self._sock is sock:
                self._sock = None
            waits = bool(self._asked) or any(self._listeners.values())
            if self._is_closed or self._sock is not None:
                return
            try:
                if waits:
                    self._connect()
                error: BaseException | None = None
            except Exception as trouble:
                error = trouble
            if error is not None:
                asked, self._asked = list(self._asked.values()), {}
                for ask in asked:
                    ask.settle(error)
                return
        if waits:
            for listeners in list(self._listeners.values()):
                for listener in list(listeners):
                    listener(keeper.News("connected anew"))

    def close(self) -> None:
        with self._mutex:
            self._is_closed = True
            sock, self._sock = self._sock, None
            if sock is not None:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
            asked, self._asked = list(self._asked.values()), {}
        for ask in asked:
            ask.settle(KeeperUnavailable("the runtime was closed"))


def _connected(home: Path) -> socket.socket:
    anchor = places.anchor_of(home)
    if anchor is None or not starting.is_anchored(home):
        starting.start(home)
        anchor = places.anchor_of(home) or {}
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.settimeout(PATIENCE_SECONDS)
        sock.connect(os.path.join(anchor["live"], "sock"))
    except BaseException:
        sock.close()
        raise
    return sock


def _is_alive(sock: socket.socket) -> bool:
    return sock.fileno() >= 0


def _token() -> int | None:
    """The token that a keeper gave this process at its start; its own children will not have it."""
    if "PERDURE_TASK" not in os.environ:
        return None
    try:
        if not stat.S_ISSOCK(os.fstat(keeper.TOKEN_FD).st_mode):
            return None
        os.set_inheritable(keeper.TOKEN_FD, False)
    except OSError:
        return None
    return keeper.TOKEN_FD


_clients: dict[Path, Client] = {}
_mutex = threading.Lock()


def client_for(home: Path) -> Client:
    """This process's one connection to a keeper; a new one after a fork."""
    with _mutex:
        found = _clients.get(home)
        if found is None or found._pid != os.getpid() or found._is_closed:
            found = _clients[home] = Client(home)
        return found


def find(home: Path) -> Client | None:
    """The keeper that lives there, if one does; none is started."""
    return client_for(home) if home.is_dir() and starting.is_anchored(home) else None
