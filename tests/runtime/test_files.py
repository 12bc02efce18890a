"""Files, listeners and pipes go on where the former process left them."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from perdure import Perdure
from perdure.errors import InvalidInput, UnitEnded, UnitHeld
from tests.runtime.kit import Place, is_alive, until
from tests.support.ports import free_port
from tests.support.processes import Link, nursery, say

# Opens what it is told in the way of an agent, does something with it, says so, and waits to be killed.
AGENT = """
import asyncio, sys
from perdure import Perdure
async def main():
    async with Perdure(sys.argv[1]) as app:
        await app.tasks.open("work", state={})
        rt = await app.runtime("work")
        await act(rt, *sys.argv[2:])
        print("done", flush=True)
        await asyncio.Event().wait()
"""


def agent(place: Place, act: str, *args: str) -> subprocess.Popen[str]:
    """A process that has done what `act` says, and lives."""
    child = subprocess.Popen(
        [sys.executable, "-c", f"{AGENT}\n{act}\nasyncio.run(main())", place.url, *args],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "done\n"
    return child


def kill(child: subprocess.Popen[str]) -> None:
    child.kill()
    child.wait()
    assert child.stdout is not None
    child.stdout.close()


READ_40 = """
async def act(rt, path):
    f = await rt.file(path, "rb")
    f.read(400_000)
"""


@pytest.mark.req("R75")
@pytest.mark.parametrize("is_keeper_killed", [False, True])
async def test_reading_goes_on_at_the_byte_where_the_dead_process_was(
    place: Place, tmp_path: Path, is_keeper_killed: bool
) -> None:
    big = tmp_path / "big.csv"
    big.write_bytes(os.urandom(1_000_000))
    kill(agent(place, READ_40, str(big)))
    if is_keeper_killed:
        place.kill_keeper()

    async with place.runtime() as rt:
        file = await rt.file(big, "rb")
        assert file.level == "kept"
        rest = file.read()
    whole = hashlib.sha256(big.read_bytes()[:400_000] + rest).digest()
    assert whole == hashlib.sha256(big.read_bytes()).digest()


READ_AND_MARK = """
async def act(rt, path):
    f = await rt.file(path, "rb")
    lines = f.lines()
    next(lines), next(lines)
    await f.mark()
    next(lines)
"""


@pytest.mark.req("R75")
async def test_reading_goes_on_at_the_mark(place: Place, tmp_path: Path) -> None:
    text = tmp_path / "lines"
    text.write_bytes(b"one\ntwo\nthree\nfour\n")
    kill(agent(place, READ_AND_MARK, str(text)))

    async with place.runtime() as rt:
        file = await rt.file(text, "rb")
        assert list(file.lines()) == [b"three\n", b"four\n"]


WRITE_AND_TEAR = """
async def act(rt, path):
    f = await rt.file(path, "ab")
    f.write(b"one\\ntwo\\n")
    await f.mark()
    f.write(b"thr")
"""


@pytest.mark.req("R76")
async def test_a_torn_tail_is_cut_and_appending_goes_on(place: Place, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    kill(agent(place, WRITE_AND_TEAR, str(out)))
    assert out.read_bytes() == b"one\ntwo\nthr"

    async with place.runtime() as rt:
        file = await rt.file(out, "ab")
        assert "3 bytes" in file.verdict.since_you_left[0]
        file.write(b"three\n")
        await file.mark()
    assert out.read_bytes() == b"one\ntwo\nthree\n"


@pytest.mark.req("R75", "R89")
@pytest.mark.parametrize("how", ["replaced", "shortened", "changed", "gone"])
async def test_a_file_that_is_another_one_is_lost_and_left_alone(place: Place, tmp_path: Path, how: str) -> None:
    out = tmp_path / "out.csv"
    kill(agent(place, WRITE_AND_TEAR, str(out)))
    if how == "replaced":
        other = tmp_path / "other"
        other.write_bytes(b"one\ntwo\nthr")
        other.replace(out)
    elif how == "shortened":
        os.truncate(out, 3)
    elif how == "changed":
        with out.open("r+b") as same:
            same.write(b"ONE")
    else:
        out.unlink()
    before = out.read_bytes() if out.exists() else None

    async with place.runtime() as rt:
        file = await rt.file(out, "ab")
        assert file.level == "lost"
        with pytest.raises(UnitEnded):
            file.write(b"more")
    assert (out.read_bytes() if out.exists() else None) == before


@pytest.mark.req("R75")
async def test_a_file_is_one_living_process_s_and_taking_it_ends_that_one(place: Place, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    child = agent(place, WRITE_AND_TEAR, str(out))
    async with place.runtime() as rt:
        with pytest.raises(UnitHeld):
            await rt.file(out, "ab")
        assert is_alive(child.pid)
        file = await rt.file(out, "ab", take=True)
        assert not is_alive(child.pid)
        file.write(b"three\n")
    kill(child)
    assert out.read_bytes() == b"one\ntwo\nthree\n"


@pytest.mark.parametrize("mode", ["r", "a", "rw", "b", "zb", "rbb", ""])
async def test_a_mode_that_is_none_is_refused(place: Place, tmp_path: Path, mode: str) -> None:
    async with place.runtime() as rt:
        with pytest.raises(InvalidInput):
            await rt.file(tmp_path / "x", mode)


async def test_a_device_is_refused(place: Place) -> None:
    async with place.runtime() as rt:
        with pytest.raises(InvalidInput, match="plain file"):
            await rt.file("/dev/zero", "rb")


LISTEN = """
async def act(rt, port):
    lis = await rt.listener(int(port))
"""


@pytest.mark.req("R77")
async def test_connections_made_while_nobody_is_there_are_answered_by_the_next(place: Place) -> None:
    number = free_port()
    kill(agent(place, LISTEN, str(number)))
    place.kill_keeper()
    with socket.create_connection(("127.0.0.1", number), timeout=120) as caller:
        caller.sendall(b"hello\n")
        async with place.runtime() as rt:
            listener = await rt.listener(number)
            assert listener.level == "kept"

            async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                writer.write(b"re: " + await reader.readline())
                writer.close()

            async with await asyncio.start_server(greet, sock=listener.socket()):
                answer = await asyncio.to_thread(caller.recv, 100)
        assert answer == b"re: hello\n"


FILL = """
async def act(rt):
    import os
    pipe = await rt.pipe("queue")
    os.write(pipe.writer(), b"not read yet")
"""


LOCK = """
async def act(rt, path):
    import fcntl
    fcntl.flock((await rt.file(path, "r+b")).fileno(), fcntl.LOCK_EX)
    fcntl.lockf((await rt.file(path + "2", "r+b")).fileno(), fcntl.LOCK_EX)
"""


async def test_a_lock_of_the_open_file_is_kept_and_one_of_the_process_is_not(place: Place, tmp_path: Path) -> None:
    paths = tmp_path / "locked", tmp_path / "locked2"
    for path in paths:
        path.write_bytes(b"data")
    kill(agent(place, LOCK, str(paths[0])))
    place.kill_keeper()
    with paths[0].open("r+b") as stranger, pytest.raises(BlockingIOError):
        fcntl.flock(stranger, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with paths[1].open("r+b") as stranger:  # as docs/guide/units.md says
        fcntl.lockf(stranger, fcntl.LOCK_EX | fcntl.LOCK_NB)
    async with place.runtime() as rt:
        file = await rt.file(str(paths[0]), "r+b")
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)  # it is ours still


def reader(link: Link, url: str, port: int) -> None:
    """A process that has read one line of a connection, marked it, and read half of the next one."""

    async def work() -> None:
        async with Perdure(url) as app:
            await app.tasks.open("work", state={})
            kept = await (await app.runtime("work")).socket("feed", "127.0.0.1", port)
            with kept.socket() as sock:
                assert sock.recv(4) == b"one\n"
            await kept.mark({"lines": 1})
            say(link, "read")
            await asyncio.Event().wait()

    asyncio.run(work())


async def test_a_connection_goes_on_in_the_next_process(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, nursery() as children:
        port = server.getsockname()[1]
        child = children.start(reader, place.url, port)
        feed, _ = server.accept()
        feed.sendall(b"one\n")
        assert child.heard() == "read"
        child.kill()
        place.kill_keeper()
        feed.sendall(b"two\n")  # while no process is there
        async with place.runtime() as rt:
            kept = await rt.socket("feed", "127.0.0.1", port)
            assert (kept.level, kept.marked) == ("kept", {"lines": 1})
            with kept.socket() as sock:
                assert sock.recv(10) == b"two\n"
                sock.sendall(b"thanks")
        assert feed.recv(10) == b"thanks"
        feed.close()


async def test_a_connection_to_nobody_leaves_nothing(place: Place) -> None:
    port = free_port()
    async with place.runtime() as rt:
        with pytest.raises(ConnectionRefusedError):
            await rt.socket("feed", "127.0.0.1", port)
        assert await rt.units() == []


async def test_what_was_in_a_pipe_is_still_in_it(place: Place) -> None:
    kill(agent(place, FILL))
    place.kill_keeper()
    async with place.runtime() as rt:
        pipe = await rt.pipe("queue")
        reader = pipe.reader()
        assert os.read(reader, 100) == b"not read yet"
        os.close(reader)


@pytest.mark.req("R75", "R89")
async def test_after_a_restart_of_everything_a_marked_file_is_rebuilt_at_its_mark(place: Place, tmp_path: Path) -> None:
    text = tmp_path / "lines"
    text.write_bytes(b"one\ntwo\nthree\nfour\n")
    kill(agent(place, READ_AND_MARK, str(text)))
    keeper, anchor = place.keeper, place.anchor
    os.kill(anchor, signal.SIGKILL)
    until(lambda: not is_alive(anchor) and not is_alive(keeper))

    async with place.runtime() as rt:
        file = await rt.file(text, "rb")
        assert file.level == "rebuilt"
        assert file.read() == b"three\nfour\n"
