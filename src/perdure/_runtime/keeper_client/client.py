"""A connection to the keeper that mends itself.

The caller sends its question; link.py says who reads the answers. The keeper may be replaced or killed at any time.
The client then connects again and repeats every question without an answer. That is harmless, because the keeper
knows commands and inputs by id.

Owns the connection to the keeper. The questions themselves are in the module of each kind of unit.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import stat
import threading
import time
from pathlib import Path
from typing import Any

from perdure import keeper
from perdure._ground.record_sealer import derived
from perdure._ground.secrets.crypto import KeyRing
from perdure._runtime.keeper_client import keeper_place as places
from perdure._runtime.keeper_client import keeper_start as starting
from perdure._runtime.keeper_client import refusals
from perdure._runtime.keeper_client.link import Link
from perdure._runtime.keeper_client.pending_call import Ask
from perdure.errors import KeeperUnavailable

# How long a keeper may be away before callers get an error. The anchor starts a new one within a fraction of a second.
PATIENCE_SECONDS = 15.0
# Some answers take hours: until a command has ended. While a question waits, this is how often the client checks
# that the keeper still answers.
LOOK_SECONDS = 5.0
_RETRY_SECONDS = 0.01
_HELLO = 0  # the id of the first question
_NO_ANSWERS = (keeper.Request, keeper.News)


class Client:
    """This process's connection to the keeper of one store."""

    home: Path
    keys: str

    def __init__(self, home: Path, keys: str = "") -> None:
        self.home, self.keys = home, keys  # by which the keeper seals its records
        self.about: dict[str, Any] = {}
        self._ids = itertools.count(1)
        self._asked: dict[int, Ask] = {}
        self._looks: dict[int, threading.Event] = {}
        self._mutex = threading.RLock()
        self._link: Link | None = None
        self._patience: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._pid = os.getpid()

    @property
    def keeper_identity(self) -> str:
        """Of the keeper's folder, once it has answered; "" if it does not tell."""
        return str(self.about.get("identity") or "")

    def ask(self, verb: str, body: bytes = b"", fds: tuple[int, ...] = (), **args: Any) -> Ask:
        return Ask(self, keeper.Request(next(self._ids), verb, args, body, fds))

    def do(self, unit: str, verb: str, body: bytes = b"", **args: Any) -> Ask:
        """Ask a unit."""
        args["unit"], args["do"] = unit, verb
        return Ask(self, keeper.Request(next(self._ids), "do", args, body))

    # ── asking ──────────────────────────────────────────────────────────────────────────────────

    def submit(self, ask: Ask) -> None:
        """Send a question. Connects first where there is no connection, which can take a while."""
        with self._mutex:
            self._check()
            self._asked[ask.request.id] = ask
            try:
                if self._link is None:
                    self._connect()  # sends all that was asked
                else:
                    self._send(self._link, ask)
            except BaseException:
                self._asked.pop(ask.request.id, None)
                raise

    def submit_at_once(self, ask: Ask, loop: asyncio.AbstractEventLoop) -> bool:
        """Send a question from the running loop. Returns False when that would block the loop."""
        if not self._mutex.acquire(blocking=False):
            return False
        try:
            self._check()
            if self._link is None:
                return self._connect_at_once(ask, loop)
            self._asked[ask.request.id] = ask
            self._send(self._link, ask, at_once=True)
            return True
        finally:
            self._mutex.release()

    def give_up(self, ask: Ask) -> None:
        self._asked.pop(ask.request.id, None)

    def _check(self) -> None:
        if self._pid != os.getpid():
            raise KeeperUnavailable(
                "this connection to the keeper was made before os.fork()", do="open the runtime in the child"
            )
        if self._is_closed:
            raise KeeperUnavailable("the runtime was closed", do="open it again")

    def _send(self, link: Link, ask: Ask, *, at_once: bool = False) -> None:
        link.read_for(ask.loop)
        data = keeper.encode(ask.request)
        if at_once and ask.loop is not None and link.loop is ask.loop and not ask.request.fds:
            link.send_soon(data, ask.loop)
        else:
            link.send(data, ask.request.fds)
        if link.is_over:  # it ended before this question, perhaps unnoticed
            self._lost(link)

    # ── connecting ──────────────────────────────────────────────────────────────────────────────

    def _connect_at_once(self, ask: Ask, loop: asyncio.AbstractEventLoop) -> bool:
        """Connect to a listening keeper and send the question with the hello. False when more is needed."""
        sock = _connected_at_once(self.home)
        if sock is None:
            return False
        link = self._link = self._watched(Link(sock, self._hear, self._lost))
        link.read_for(loop)
        self._patience = loop.call_later(PATIENCE_SECONDS, self._waited_in_vain, link)
        self._asked[ask.request.id] = ask
        hello = _hello(self.keys)
        if ask.request.fds:
            link.send(keeper.encode(hello), hello.fds)
            link.send(keeper.encode(ask.request), ask.request.fds)
        else:
            link.send(keeper.encode(hello) + keeper.encode(ask.request), hello.fds)
        return True

    def _connect(self) -> None:
        link = self._link = self._watched(Link(self._reached(), self._hear, self._lost))
        for ask in list(self._asked.values()):
            self._send(link, ask)

    def _reached(self) -> socket.socket:
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            self._check()
            try:
                return self._say_hello(_connected(self.home))
            except (OSError, EOFError, keeper.BadFrame) as error:
                if time.monotonic() > end:
                    raise self._no_answer(error) from error
                time.sleep(_RETRY_SECONDS)

    def _say_hello(self, sock: socket.socket) -> socket.socket:
        try:
            keeper.send(sock, _hello(self.keys))
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

    def _no_answer(self, why: object) -> KeeperUnavailable:
        return KeeperUnavailable(
            f"the keeper in {self.home} does not answer: {why}",
            kept="its units, as far as they live",
            do="`perdure keep status` says more; `perdure keep restart` replaces a keeper that hangs",
        )

    def _waited_in_vain(self, link: Link) -> None:
        self._refused(link, self._no_answer(f"it has said nothing for {PATIENCE_SECONDS:g} s"))

    # ── watching ────────────────────────────────────────────────────────────────────────────────

    def _watched(self, link: Link) -> Link:
        threading.Thread(target=self._watch, args=(link,), name="perdure-keeper-watch", daemon=True).start()
        return link

    def _watch(self, link: Link) -> None:
        """End a link whose keeper hangs and whose anchor has died, so that nothing replaces the keeper. The client
        then connects again, as a new client would."""
        seen: int | None = None
        while not link.over.wait(LOOK_SECONDS):
            oldest = next(iter(self._asked.copy()), None)
            if oldest is not None and oldest == seen and not self._answers(link):
                link.shut()
            seen = oldest

    def _answers(self, link: Link) -> bool:
        answered = threading.Event()
        id = next(self._ids)
        self._looks[id] = answered
        try:
            link.send_if_there_is_room(keeper.encode(keeper.Request(id, "status", {})))
            return answered.wait(PATIENCE_SECONDS) or link.over.is_set()
        finally:
            del self._looks[id]

    # ── hearing ─────────────────────────────────────────────────────────────────────────────────

    def _hear(self, link: Link, message: keeper.Message) -> None:
        if isinstance(message, _NO_ANSWERS):
            return
        if message.id == _HELLO:
            self._greeted(link, message)
        elif (ask := self._asked.pop(message.id, None)) is not None:
            ask.settle(message, on=link.loop)
        elif (look := self._looks.get(message.id)) is not None:
            look.set()
        else:
            for fd in message.fds:
                os.close(fd)

    def _greeted(self, link: Link, answer: keeper.Reply | keeper.Refusal) -> None:
        if self._patience is not None:
            self._patience.cancel()
        if isinstance(answer, keeper.Refusal):
            self._refused(link, refusals.error_of(answer, None))
        else:
            self.about = answer.args

    def _refused(self, link: Link, error: BaseException) -> None:
        """This keeper is of no use to us."""
        if self._link is link:
            self._link = None
        asked, self._asked = list(self._asked.values()), {}
        for ask in asked:
            ask.settle(error, on=link.loop)
        link.loop.call_soon(link.close) if link.loop is not None else link.close()

    def _lost(self, link: Link) -> None:
        """The link has ended: connect again if a question still waits."""
        if self._link is link:
            self._link = None
        if self._patience is not None:
            self._patience.cancel()
        if self._asked and not self._is_closed:
            threading.Thread(target=self._connect_anew, name="perdure-keeper", daemon=True).start()

    def _connect_anew(self) -> None:
        with self._mutex:
            if self._link is not None or self._is_closed:
                return
            try:
                self._connect()
            except Exception as error:
                asked, self._asked = list(self._asked.values()), {}
                for ask in asked:
                    ask.settle(error)

    def close(self) -> None:
        with self._mutex:
            self._is_closed = True
            link, self._link = self._link, None
            asked, self._asked = list(self._asked.values()), {}
        if link is not None:
            link.close()
        for ask in asked:
            ask.settle(KeeperUnavailable("the runtime was closed"))


def _hello(keys: str) -> keeper.Request:
    token = _token()
    told = {"versions": list(keeper.VERSIONS)} | ({"keys": keys} if keys else {})
    return keeper.Request(_HELLO, "hello", told, fds=() if token is None else (token,))


def _connected_at_once(home: Path) -> socket.socket | None:
    """A connection to a listening keeper; None if there is no keeper, or it cannot accept one more now."""
    anchor = places.anchor_of(home)
    if anchor is None or not starting.is_anchored(home):
        return None
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.setblocking(False)
        sock.connect(os.path.join(anchor["live"], "sock"))
        sock.setblocking(True)
    except OSError:
        sock.close()
        return None
    return sock


def _connected(home: Path) -> socket.socket:
    anchor = places.anchor_of(home)
    if anchor is None or not starting.is_anchored(home):
        starting.start(home)
        anchor = places.anchor_of(home)
        if anchor is None:  # its folders were removed, and it is about to make them again
            raise FileNotFoundError(f"there is no keeper in {home}")
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.settimeout(PATIENCE_SECONDS)
        sock.connect(os.path.join(anchor["live"], "sock"))
    except BaseException:
        sock.close()
        raise
    return sock


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


def client_for(home: Path, ring: KeyRing | None = None) -> Client:
    """This process's one connection to a keeper; a new one after a fork, and when there are other keys."""
    keys = "" if ring is None else derived(ring)
    with _mutex:
        found = _clients.get(home)
        is_new = found is None or found._pid != os.getpid() or found._is_closed
        if found is None or is_new or (keys and found.keys != keys):
            found = _clients[home] = Client(home, keys or ("" if found is None else found.keys))
        return found


def find(home: Path, ring: KeyRing | None = None) -> Client | None:
    """The keeper that lives there, or None. Starts no keeper."""
    return client_for(home, ring) if starting.is_anchored(home) else None
