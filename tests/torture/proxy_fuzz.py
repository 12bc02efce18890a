"""Both sides of the PostgreSQL proxy, lied to: a session's client, its server and its owner.

python -m tests.torture --part proxy-fuzz --seeds 0-99

First the parts that only think, some thousand times a seed. Then real processes: clients that say nonsense to a
session with an open transaction at a real server, which has to outlive them; questions that are none; and a server
that says nonsense, whose session may be lost, in words, while its process and every other session go on.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import random
import socket
import struct
import tempfile
import threading
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from perdure._runtime.sessions import postgres as sessions
from perdure._runtime.sessions.session_processes import ask
from perdure.keeper.pgproxy.client_link import Visitor
from perdure.keeper.pgproxy.protocol import wire
from perdure.keeper.pgproxy.protocol.guard import Guard
from perdure.keeper.pgproxy.session.recipe import SessionRecipe
from perdure.keeper.pgproxy.session.recording_session import RecordingSession
from perdure.keeper.pgproxy.session.session import Session
from tests.security.pgserver import WELCOME, Peer
from tests.sessions.kit import HOLD, Stage
from tests.support import postgres
from tests.support.processes import nursery
from tests.torture import mutation
from tests.torture.mutation import message, mutated, nested, pieces, value

THOUGHTS = 300  # rounds of what only thinks, a seed
VISITS = 12  # of clients that say nonsense, a seed
_ANSWER_SECONDS = 0.3  # a server that lies about a length may never answer; nothing is made of it
MOST_MEMORY = 200 << 20  # bytes of a proxy; whatever it is told, it keeps little of it

_FROM_CLIENT = (
    message(b"Q", b"SELECT 1\0"),
    message(b"Q", b"SELECT 1; SELECT repeat('x', 9000)\0"),
    message(b"Q", b"\0"),
    message(b"P", b"\0SELECT $1::text\0\0\1\0\0\0\x19"),
    message(b"P", b"name\0SELECT 1\0\0\0"),
    message(b"B", b"\0\0\0\0\0\1\0\0\0\1a\0\0"),
    message(b"B", b"portal\0name\0\0\0\0\0\0\0"),
    message(b"D", b"S\0"),
    message(b"D", b"Pportal\0"),
    message(b"E", b"\0\0\0\0\0"),
    message(b"C", b"Sname\0"),
    message(b"C", b"Pportal\0"),
    message(b"F", struct.pack("!IHH", 1598, 0, 0) + struct.pack("!H", 0)),
    message(b"S"),
    message(b"S"),
    message(b"H"),
    message(b"d", b"1\t2\n"),
    message(b"c"),
    message(b"f", b"why\0"),
    message(b"p", b"password\0"),
    message(b"X"),
)
_FROM_SERVER = (
    message(b"Z", b"I"),
    message(b"Z", b"T"),
    message(b"Z", b"E"),
    message(b"C", b"SELECT 1\0"),
    message(b"C", b"COMMIT\0"),
    message(b"D", struct.pack("!HI", 1, 1) + b"1"),
    message(b"D", struct.pack("!HI", 1, 9000) + b"x" * 9000),
    message(b"T", struct.pack("!H", 1) + b"c\0" + struct.pack("!IHIHIH", 0, 0, 23, 4, 0xFFFFFFFF, 0)),
    message(b"E", b"SERROR\0VERROR\0C22012\0Mdivision by zero\0\0"),
    message(b"E", b"SFATAL\0VFATAL\0C57P01\0Mterminating\0\0"),
    message(b"N", b"SNOTICE\0VNOTICE\0C00000\0Mhm\0\0"),
    message(b"S", b"application_name\0x\0"),
    message(b"A", struct.pack("!I", 7) + b"channel\0payload\0"),
    message(b"K", struct.pack("!II", 1, 2)),
    message(b"G", struct.pack("!bH", 0, 0)),
    message(b"H", struct.pack("!bH", 0, 0)),
    message(b"R", struct.pack("!I", 3)),
    *(message(kind) for kind in (b"1", b"2", b"3", b"n", b"I", b"s", b"c")),
)
_FIRST_WORDS = (
    b"\0" + wire.startup_message({"user": "u", "database": "d"}),
    b"\0" + wire.startup_message({"user": "u", "database": "d", "options": "-c perdure.guard=on"}),
    b"\0" + wire.cancel_message(1, b"key!"),
    b"\0" + wire.ask_for_tls(),
)


def run(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(THOUGHTS):
        think(draw)
    asyncio.run(_rig().round(draw))


# ── what only thinks ─────────────────────────────────────────────────────────────────────────────


def think(draw: random.Random) -> None:
    """One random conversation: nothing but Broken comes of it, and nothing is hoarded."""
    status = draw.choice([b"I", b"T", b"E"])
    session = Session(status) if draw.random() < 0.5 else RecordingSession(status, {}, SessionRecipe())
    said = 0
    with contextlib.suppress(wire.Broken):
        for _ in range(draw.randrange(1, 12)):
            said += _turn(draw, session)
    kept = len(session.to_client) + len(session.to_server) + len(session._rest) + len(session._batch)
    assert kept <= 2 * said + 100_000, f"{kept} bytes are kept of {said}"
    assert sum(map(len, session.parameters.values())) < 1 << 17
    _think_of_a_visitor(draw)
    with contextlib.suppress(wire.Broken):
        Guard().would_end(draw.choice(b"QPBEC"), mutated(draw, _FROM_CLIENT), {"client_encoding": "UTF8"})


def _turn(draw: random.Random, session: Session) -> int:
    match draw.randrange(5):
        case 0:
            if session.is_quiet:
                session.attach(guarded=draw.random() < 0.5)
            return 0
        case 1:
            session.detach()
            return 0
        case 2 if session.client:
            data = mutated(draw, _FROM_CLIENT)
            for piece in pieces(draw, data):
                session.client_said(piece)
        case _:
            data = mutated(draw, _FROM_SERVER)
            for piece in pieces(draw, data):
                session.server_said(piece)
    return len(data)


def _think_of_a_visitor(draw: random.Random) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, contextlib.suppress(wire.Broken):
        visitor = Visitor(ours, "u", "d", draw.choice(["", "secret"]))
        for _ in range(draw.randrange(1, 5)):
            data = mutated(draw, _FIRST_WORDS)[1:] if draw.random() < 0.7 else mutated(draw, _FROM_CLIENT)
            visitor.said(data)
            visitor.reply = b""


# ── real processes ───────────────────────────────────────────────────────────────────────────────


_things = contextlib.ExitStack()


def end() -> None:
    """Leave nothing of what the seeds have used."""
    _rig.cache_clear()
    _things.close()


@lru_cache(maxsize=1)
def _rig() -> Rig:
    """One real server, one that lies, and a session at each, for all seeds of this process."""
    things = _things
    folder = Path(things.enter_context(tempfile.TemporaryDirectory(prefix="pds-")))
    children = things.enter_context(nursery())
    atexit.register(end)  # after the nursery's own, so that it comes before it
    url = things.enter_context(postgres.fresh_database())
    liar = things.enter_context(Liar().serving())
    return Rig(things.enter_context(Stage(children, folder, url)), liar)


class Liar:
    """A server that logs anybody in and then says what it is told to say."""

    def __init__(self) -> None:
        self.says: list[bytes] = []
        self.port = 0
        self.left = 0  # connections that have ended

    @contextlib.contextmanager
    def serving(self) -> Iterator[Liar]:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
            threading.Thread(target=self._serve, args=(listener,), daemon=True).start()
            yield self
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)

    def _serve(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                link, _ = listener.accept()
                threading.Thread(target=self._speak, args=(link,), daemon=True).start()

    def _speak(self, link: socket.socket) -> None:
        with contextlib.suppress(OSError), link:
            self._answer(Peer(link), link)
        self.left += 1

    def _answer(self, peer: Peer, link: socket.socket) -> None:
        while struct.unpack_from("!I", peer.startup())[0] != wire.PROTOCOL:
            link.sendall(b"N")
        link.sendall(WELCOME)
        while True:
            kind = peer.read(1)
            body = peer.read(struct.unpack("!I", peer.read(4))[0] - 4)
            if b"pg_settings" in body:
                link.sendall(message(b"C", b"SELECT 0\0") + message(b"Z", b"I"))
            elif self.says:
                link.sendall(self.says.pop(0))
            elif kind in b"QS":
                link.sendall(message(b"C", b"SELECT 1\0") + message(b"Z", b"I"))


class Rig:
    def __init__(self, stage: Stage, liar: Liar) -> None:
        self.stage, self.liar = stage, liar

    async def round(self, draw: random.Random) -> None:
        good = await sessions.open_postgres(self.stage.place, "good", self.stage.url, hold=HOLD)
        con = await good.connect()
        await con.execute("SELECT 1")
        await con.close()
        pid, proxy = good.backend_pid, good.refresh()["proxy"]
        folder = good.folder
        for _ in range(VISITS):
            self._visit(draw, folder, good)
            _question(draw, folder)
        await self._be_lied_to(draw)
        state = ask(folder, {"ask": "wait", "for": "quiet"}, 60)
        assert state is not None and state["gone"] is None, state
        assert (state["pid"], state["proxy"]) == (pid, proxy), "the session is another one"
        assert state["transaction"] in ("open", "failed"), "its transaction was ended by nonsense"
        _check_memory(proxy)
        await good.rollback()
        con = await good.connect()
        assert (await (await con.execute("SELECT 17")).fetchone()) == (17,)
        await con.close()
        await good.rollback()

    def _visit(self, draw: random.Random, folder: Path, good: sessions.PostgresSession) -> None:
        """A client that says nonsense, before or after it was let in."""
        with socket.socket(socket.AF_UNIX) as link, contextlib.suppress(OSError):
            link.settimeout(10)
            link.connect(str(folder / ".s.PGSQL.5432"))
            if draw.random() < 0.3:
                link.sendall(mutated(draw, _FIRST_WORDS)[1:])
                return
            user, database = good._user, good._database
            link.sendall(wire.startup_message({"user": user, "database": database, "options": "-c perdure.guard=on"}))
            while not link.recv(65536).endswith((wire.ready(b"T"), wire.ready(b"E"), wire.ready(b"I"))):
                pass
            link.sendall(mutated(draw, _FROM_CLIENT))
            if draw.random() < 0.5:
                link.shutdown(socket.SHUT_WR)
                while link.recv(65536):
                    pass

    async def _be_lied_to(self, draw: random.Random) -> None:
        """A server that says nonsense: its session goes on or is lost, and its process ends or goes on."""
        dsn = f"host=127.0.0.1 port={self.liar.port} user=u dbname=d sslmode=disable"
        name = f"bad-{draw.randrange(1 << 30)}"
        rebuild: Any = draw.choice(["auto", "never"])
        bad = await sessions.open_postgres(self.stage.place, name, dsn, hold=HOLD, rebuild=rebuild)
        proxy = bad.refresh()["proxy"]
        self.liar.says = [mutated(draw, _FROM_SERVER) + draw.choice([b"", message(b"Z", b"I")]) for _ in range(3)]
        with socket.socket(socket.AF_UNIX) as link, contextlib.suppress(OSError):
            link.settimeout(_ANSWER_SECONDS)
            link.connect(str(bad.folder / ".s.PGSQL.5432"))
            link.sendall(wire.startup_message({"user": "u", "database": "d"}))
            link.recv(65536)
            link.sendall(wire.query("SELECT 1"))
            while link.recv(65536):
                pass
        assert ask(bad.folder, {"ask": "state"}) is not None, "its process died of it"
        _check_memory(proxy)
        self.liar.says = []
        await bad.end()


def _question(draw: random.Random, folder: Path) -> None:
    """Somebody who asks what makes no sense; the next one is answered."""
    asked = value(draw)
    if draw.random() < 0.7:
        verb = draw.choice(["state", "wait", "fence", "cancel", "hold", "recipe", "x", value(draw)])
        asked = {"ask": verb, draw.choice(["for", "seconds", "why", "x"]): value(draw)}
    line = mutation.as_json(asked) if draw.random() < 0.7 else nested(draw).encode()
    with socket.socket(socket.AF_UNIX) as link, contextlib.suppress(OSError):
        link.settimeout(5)
        link.connect(str(folder / "control"))
        link.sendall(line.replace(b"\n", b" ") + b"\n" * draw.randrange(3))
    assert ask(folder, {"ask": "state"}) is not None


def _check_memory(pid: int) -> None:
    with contextlib.suppress(OSError):
        resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        assert resident < MOST_MEMORY, f"the proxy has {resident >> 20} MiB"
