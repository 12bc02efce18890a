"""What comes over a socket is not believed: messages that lie, nest too deeply or stand in the wrong place."""

from __future__ import annotations

import array
import json
import os
import signal
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from perdure._runtime.sessions.session_processes import ask
from perdure.keeper.core import wire as keeper_wire
from perdure.keeper.pgproxy.protocol import wire
from perdure.keeper.pgproxy.session.recipe import SessionRecipe
from perdure.keeper.pgproxy.session.recording_session import RecordingSession
from perdure.keeper.pgproxy.session.session import Session
from tests.runtime.kit import PATIENCE, Place, until
from tests.sessions.acts import IDENTITY, one
from tests.sessions.conftest import stage  # noqa: F401
from tests.sessions.kit import Stage
from tests.torture import __main__ as torture
from tests.torture import keeper_fuzz, proxy_fuzz
from tests.torture.mutation import message
from tests.torture.proxy_fuzz import Liar


@pytest.mark.parametrize("part", ["proxy-fuzz", "keeper-fuzz"])
def test_a_few_seeds_of_nonsense_are_outlived(part: str) -> None:
    try:
        assert torture.main(["--part", part, "--seeds", "100000-100002"]) == 0
    finally:
        proxy_fuzz.end()
        keeper_fuzz.end()


# ── clients of a kept session ────────────────────────────────────────────────────────────────────

PARSE, BIND, EXECUTE = message(b"P", b"\0SELECT 1/0\0\0\0"), message(b"B", b"\0\0\0\0\0\0\0\0"), message(b"E", bytes(5))
NONSENSE = {
    "an unknown kind": message(b"?", b"x"),
    "a password": message(b"p", b"secret\0"),
    "a Sync of a megabyte": message(b"S", bytes(1 << 20)),
    "a message without a length": b"Q\0\0\0\0",
    "a query and half a message": wire.query("SELECT 1") + message(b"?"),
    "COPY data in a batch that fails": PARSE + BIND + EXECUTE + message(b"d", b"1\n"),
    "a query in a batch that fails": PARSE + BIND + EXECUTE + wire.FLUSH + wire.query("SELECT 1"),
    "a text without an end": message(b"P", b"name"),
}


@pytest.mark.parametrize("said", NONSENSE.values(), ids=NONSENSE.keys())
async def test_a_client_that_says_nonsense_leaves_the_session_usable(stage: Stage, said: bytes) -> None:  # noqa: F811
    session = await stage.open()
    con = await session.connect()
    before = await one(con, IDENTITY)
    await con.close()
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(session.folder / ".s.PGSQL.5432"))
        link.sendall(wire.startup_message({"user": session._user, "database": session._database}))
        heard = b""
        while not heard.endswith(wire.ready(b"T")):
            heard += link.recv(65536)
        link.sendall(said)
        link.shutdown(socket.SHUT_WR)
        while link.recv(65536):
            pass
    state = stage.wait("alone")
    assert (state["gone"], state["pid"]) == (None, session.backend_pid)
    if state["transaction"] == "failed":
        await session.rollback()
        con = await stage.connect()
        assert (await one(con, "SELECT pg_backend_pid()")) == (session.backend_pid,)
    else:
        con = await stage.connect()
        assert await one(con, IDENTITY) == before
    await con.close()


# ── servers ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("make", [Session, lambda status: RecordingSession(status, {}, SessionRecipe())])
def test_a_length_that_lies_makes_nobody_wait_for_it_or_keep_it(make: type[Session]) -> None:
    for kind in b"ZCSA":
        for size in (0, 3, 1 << 20, 0xFFFFFFFF):
            session = make(b"T")
            with pytest.raises(wire.Broken):
                session.server_said(bytes([kind]) + struct.pack("!I", size) + bytes(10))
    session = make(b"T")
    session.server_said(b"D" + struct.pack("!I", 0x3FFFFFFF))
    for _ in range(50):
        session.server_said(bytes(100_000))
    assert len(session._rest) < 100
    with pytest.raises(wire.Broken):
        make(b"I").server_said(message(b"Z", b"?"))


def test_parameters_without_end_are_refused() -> None:
    session = Session(b"I")
    reports = b"".join(message(b"S", f"p{number}\0x\0".encode()) for number in range(1000))
    with pytest.raises(wire.Broken, match="without end"):
        session.server_said(reports)


async def test_a_server_that_cannot_be_understood_is_told_and_its_connection_closed(stage: Stage) -> None:  # noqa: F811
    """Also the copy of it that is parked: or the server would keep the transaction for nobody."""
    with Liar().serving() as liar:
        session = await stage.open(url=f"host=127.0.0.1 port={liar.port} user=u dbname=d sslmode=disable")
        liar.says = [message(b"S", b"name without a value")]
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(str(session.folder / ".s.PGSQL.5432"))
            link.sendall(wire.startup_message({"user": "u", "database": "d"}) + wire.query("SELECT 1"))
            heard = b""
            while part := link.recv(65536):
                heard += part
        assert b"cannot be understood" in heard
        assert "cannot be understood" in stage.wait("gone")["gone"]
        until(lambda: liar.left, "the connection is still open")


def send_for_ever(link: socket.socket, data: bytes, descriptors: int = 0) -> None:
    fds = array.array("i", [0] * descriptors)
    while True:
        link.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)] if descriptors else [])


# ── the owner of a session ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 60_000,
        b'{"a":' * 10_000,
        b"[]",
        b"null",
        b'{"ask": []}',
        b'{"ask": "wait"}',
        b'{"ask": "wait", "for": {}}',
        b'{"ask": "hold", "seconds": NaN}',
        b'{"ask": "hold", "seconds": -1}',
        b'{"ask": "hold", "seconds": 1e308}',
        b'{"ask": "hold", "seconds": "for ever"}',
    ],
    ids=lambda line: line[:20].decode(),
)
async def test_a_question_that_is_none_is_refused_and_changes_nothing(stage: Stage, line: bytes) -> None:  # noqa: F811
    session = await stage.open()
    before = session.refresh()
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(20)
        link.connect(str(session.folder / "control"))
        link.sendall(line + b'\n{"ask": "state"}\n')
        with link.makefile("rb") as answers:
            assert "error" in json.loads(answers.readline())
            assert json.loads(answers.readline())["hold_seconds"] == before["hold_seconds"]


async def test_somebody_who_asks_and_does_not_listen_keeps_nobody_waiting(stage: Stage) -> None:  # noqa: F811
    session = await stage.open()
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(session.folder / "control"))
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            send_for_ever(link, b'{"ask": "state"}\n' * 100)
        con = await stage.connect()
        assert await one(con, "SELECT 17") == (17,)
        await con.close()


# ── the keeper ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / "store" / "perdure.db")
    try:
        yield made
    finally:
        made.clear()


def test_a_header_may_not_nest_deeper_than_anything_that_reads_it() -> None:
    def fed(args: str) -> list[keeper_wire.Message]:
        header = f'{{"ask":1,"verb":"x","args":{args}}}'.encode()
        return list(keeper_wire.Decoder().feed(struct.pack(">II", len(header), 0) + header))

    assert fed('{"a":' * 50 + "1" + "}" * 50)
    assert fed(json.dumps({"a": ["[" * 5000] * 20, "b": [[]] * 5000}))
    for depth in (200, 5000, 100_000):
        with pytest.raises(keeper_wire.BadFrame):
            fed('{"a":' * depth + "1" + "}" * depth)


@pytest.mark.parametrize("number", ["1e999", "true.5", '"1"', "[1]", "1" * 4000])
def test_an_id_is_a_number(number: str) -> None:
    header = f'{{"ask":{number},"verb":"x"}}'.encode()
    with pytest.raises(keeper_wire.BadFrame):
        list(keeper_wire.Decoder().feed(struct.pack(">II", len(header), 0) + header))


@pytest.mark.parametrize("head", ['{"ask":"x","verb":"x","fds":2}', '{"ask":1,"fds":2}', '{"re":[],"fds":1}', "{"])
def test_descriptors_of_a_message_that_is_none_are_closed(head: str) -> None:
    pipe = os.pipe()
    decoder = keeper_wire.Decoder()
    with pytest.raises(keeper_wire.BadFrame):
        list(decoder.feed(struct.pack(">II", len(head), 0) + head.encode(), pipe))
    decoder.close()
    for fd in pipe:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)


@pytest.mark.parametrize("head", ['{"re":1,"fds":16}', '{"news":"x","fds":16}', '{"ask":1,"fds":16}'])
async def test_a_client_that_talks_like_a_keeper_leaves_no_descriptor_behind(place: Place, head: str) -> None:
    async with place.runtime() as rt:
        await rt.shell("work")
        folder = f"/proc/{place.keeper}/fd"
        before = len(os.listdir(folder))
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(place.socket)
            frame = struct.pack(">II", len(head), 0) + head.encode()
            socket.send_fds(link, [frame], [0] * 16)
            link.settimeout(PATIENCE)
            assert link.recv(1) == b"", "it has hung up"
        until(lambda: len(os.listdir(folder)) <= before)


async def test_descriptors_that_nobody_asked_for_are_closed(place: Place) -> None:
    async with place.runtime() as rt:
        await rt.shell("work")
        keeper = place.keeper

        def held() -> int:
            return len(os.listdir(f"/proc/{keeper}/fd"))

        before = held()
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(place.socket)
            data = keeper_wire.encode(keeper_wire.Request(1, "fd.put", {"name": "x"}))
            head = data[8:].replace(b'"args"', b'"fds":16,"args"')
            for _ in range(8):
                fds = array.array("i", [0] * 16)
                link.sendmsg([struct.pack(">II", len(head), 0) + head], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
                link.recv(65536)
            assert held() <= before + 1
            with pytest.raises((BrokenPipeError, ConnectionResetError)):
                send_for_ever(link, struct.pack(">I", 100), 16)  # a frame that never becomes whole
        until(lambda: held() <= before)
        assert place.keeper == keeper


async def test_a_session_whose_process_cannot_live_leaves_no_backend(place: Place, postgres_url: str) -> None:
    async with place.runtime() as rt:
        session = await rt.postgres("main", postgres_url, hold="10m")
        con = await session.connect()
        await con.execute("SELECT 1")
        pid = session.backend_pid
        con.pgconn.finish()
        killed: set[int] = set()

        def gone() -> bool:
            with psycopg.connect(postgres_url, autocommit=True) as outside:
                found = outside.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone()
            state = ask(session.folder, {"ask": "state"})
            if state is not None and state["proxy"] not in killed:
                killed.add(state["proxy"])
                os.kill(state["proxy"], signal.SIGKILL)
            return found == (0,)

        until(gone, "the backend is still there")
        assert len(killed) > 4
