"""Files, connections, pipes, queues and spools are looked at before they are called kept or whole."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure._runtime.keeper_client import client
from perdure.errors import NotFound, RequestFailed, UnitEnded
from perdure.runtime import log_line
from tests.runtime.kit import Place, is_alive, until
from tests.runtime.test_files import agent, kill
from tests.runtime.test_requests import Target, target
from tests.runtime.test_run import CLI, environment
from tests.support.ports import free_port

__all__ = ["target"]

READ = """
async def act(rt, path, marks):
    f = await rt.file(path, "rb")
    f.read(8)
    if marks:
        await f.mark()
"""


def _change(path: Path, how: str) -> None:
    with path.open("r+b") as file:
        if how == "rewritten":
            file.write(b"ONE\nTWO\n")
        elif how == "cut short":
            file.truncate(3)
        else:
            file.seek(0, os.SEEK_END)
            file.write(b"four\n")


@pytest.mark.req("R75", "R89")
@pytest.mark.parametrize("how", ["rewritten", "cut short", "grown"])
@pytest.mark.parametrize("marks", ["", "yes"], ids=["unmarked", "marked"])
@pytest.mark.parametrize("is_keeper_killed", [False, True], ids=["", "keeper killed"])
async def test_a_file_that_was_changed_behind_what_was_read_is_not_called_kept(
    place: Place, tmp_path: Path, how: str, marks: str, is_keeper_killed: bool
) -> None:
    text = tmp_path / "lines"
    text.write_bytes(b"one\ntwo\nthree\n")
    kill(agent(place, READ, str(text), marks))
    if is_keeper_killed:
        place.kill_keeper()
    _change(text, how)

    async with place.runtime() as rt:
        await rt.save()
        assert (await rt.plan()).units[-1].level == ("kept" if how == "grown" else "lost")
        file = await rt.file(text, "rb")
        if how == "grown":
            assert file.level == "kept" and file.read() == b"three\nfour\n"
        else:
            assert file.level == "lost"
            with pytest.raises(UnitEnded):
                file.read()


WRITE = """
async def act(rt, path):
    (await rt.file(path, "wb")).write(b"one\\ntwo\\n")
"""


@pytest.mark.req("R76", "R89")
@pytest.mark.parametrize("is_changed", [True, False], ids=["changed", "left alone"])
async def test_a_written_file_without_marks_is_kept_only_if_nobody_else_has_changed_it(
    place: Place, tmp_path: Path, is_changed: bool
) -> None:
    out = tmp_path / "out"
    kill(agent(place, WRITE, str(out)))
    until(lambda: "left" in place.ask("units")["units"][0]["facts"])  # the keeper has seen its process end
    if is_changed:
        _change(out, "rewritten")
    async with place.runtime() as rt:
        file = await rt.file(out, "wb")
        assert file.level == ("lost" if is_changed else "kept")
        if not is_changed:
            assert "it changed as its last process ended" in file.verdict.do_not_assume[0]  # nobody knows by whom
            file.write(b"three\n")
    assert out.read_bytes() == (b"ONE\nTWO\n" if is_changed else b"one\ntwo\nthree\n")


@pytest.mark.req("R89")
async def test_of_a_written_file_whose_end_nobody_saw_the_contents_are_not_vouched_for(
    place: Place, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    child = agent(place, WRITE, str(out))
    keeper = place.keeper
    os.kill(keeper, signal.SIGSTOP)  # it must not see the process end
    kill(child)
    os.kill(keeper, signal.SIGKILL)
    async with place.runtime() as rt:
        file = await rt.file(out, "wb")
        assert (file.level, file.verdict.same) == ("kept", ("place",))
        assert "never marked" in file.verdict.do_not_assume[0]


@pytest.mark.req("R75")
async def test_a_lost_file_can_be_released_and_opened_anew_and_is_not_emptied(place: Place, tmp_path: Path) -> None:
    out = tmp_path / "out"
    async with place.runtime() as rt:
        file = await rt.file(out, "wb")
        file.write(b"one\ntwo\n")
        await file.mark()
        _change(out, "rewritten")
        assert (await rt.file(out, "wb")).level == "lost"
        await rt.release(str(out))
        again = await rt.file(out, "wb")
        assert (again.level, out.read_bytes()) == ("rebuilt", b"ONE\nTWO\n")
        assert again.write(b"new") == 3 and out.read_bytes() == b"new\nTWO\n"
        with pytest.raises(NotFound):
            await rt.release("nothing of this name")


# ── connections ──────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def other_end() -> Iterator[tuple[socket.socket, int]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server, server.getsockname()[1]


CONNECT = """
async def act(rt, port):
    await rt.socket("feed", "127.0.0.1", int(port))
"""


@pytest.mark.req("R77", "R89")
@pytest.mark.parametrize("how", ["reset", "closed", "closed after more", "open"])
async def test_a_connection_is_kept_only_while_its_other_end_is_there(place: Place, how: str) -> None:
    with other_end() as (server, number):
        child = agent(place, CONNECT, str(number))
        feed, _ = server.accept()
        kill(child)
        if how == "reset":
            feed.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if how == "closed after more":
            feed.sendall(b"the last words")
        if how != "open":
            feed.close()
        async with place.runtime() as rt:
            kept = await rt.socket("feed", "127.0.0.1", number)
            if how in ("reset", "closed"):
                assert kept.level == "lost" and [unit.level for unit in await rt.units()] == ["lost"]
                with pytest.raises(UnitEnded):
                    kept.socket()
            else:
                assert kept.level == "kept"
                if how == "closed after more":
                    assert "14 bytes" in kept.verdict.since_you_left[0] and "closed" in kept.verdict.since_you_left[1]
                    with kept.socket() as sock:
                        assert sock.recv(100) == b"the last words"
        feed.close()


@pytest.mark.req("R77")
@pytest.mark.parametrize("by", ["rebuild", "release"])
async def test_a_lost_connection_can_be_made_anew(place: Place, by: str) -> None:
    with other_end() as (server, number):
        async with place.runtime() as rt:
            first = await rt.socket("feed", "127.0.0.1", number)
            feed, _ = server.accept()
            if by == "release":
                await rt.release("feed")
                again = await rt.socket("feed", "127.0.0.1", number)
            else:
                feed.close()
                assert (await rt.socket("feed", "127.0.0.1", number)).level == "lost"
                again = await rt.socket("feed", "127.0.0.1", number, rebuild="auto")
            other, _ = server.accept()
            other.sendall(b"hello")
            assert again.level == "rebuilt" and again.uid != first.uid
            with again.socket() as sock:
                assert sock.recv(10) == b"hello"
            if by == "release":
                first.close()
                assert feed.recv(10) == b""  # nobody holds the former one
            feed.close()
            other.close()


FILL = """
async def act(rt, port):
    import os
    os.write((await rt.pipe("queue")).writer(), b"not read yet")
    await rt.listener(int(port))
"""


@pytest.mark.req("R77", "R89")
@pytest.mark.parametrize("is_anchor_killed", [False, True], ids=["", "anchor killed"])
async def test_what_waits_in_a_pipe_and_in_a_queue_is_told_or_its_loss_is(place: Place, is_anchor_killed: bool) -> None:
    number = free_port()
    kill(agent(place, FILL, str(number)))
    with socket.create_connection(("127.0.0.1", number), timeout=120) as caller:
        if is_anchor_killed:
            place.kill_anchor()
        async with place.runtime() as rt:
            pipe, listener = await rt.pipe("queue"), await rt.listener(number)
            if is_anchor_killed:
                assert (pipe.level, listener.level) == ("rebuilt", "rebuilt")
                assert "not read is gone" in pipe.verdict.differs[0] and "broken" in listener.verdict.differs[0]
                with contextlib.suppress(ConnectionResetError):
                    assert caller.recv(1) == b""
            else:
                assert (pipe.level, listener.level) == ("kept", "kept")
                assert "12 bytes" in pipe.verdict.since_you_left[0]
                assert "1 connections wait" in listener.verdict.since_you_left[0]


# ── spools ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R117", "R89")
@pytest.mark.parametrize("how", ["cut short", "overwritten", "removed", "left alone"])
async def test_an_answer_whose_spool_was_changed_is_not_called_whole(place: Place, target: Target, how: str) -> None:
    target.go.set()
    async with place.runtime() as rt:
        request = await rt.request("llm", "POST", target.url, json={})
        assert await request.read() == b"first second"
    body = place.home / "units" / request.uid / "body"
    if how == "cut short":
        os.truncate(body, 5)
    elif how == "overwritten":
        body.write_bytes(b"FIRST SECOND")
    elif how == "removed":
        body.unlink()
        place.kill_keeper()
    async with place.runtime() as rt:
        again = await rt.request("llm", "POST", target.url, json={})
        assert len(target.asked) == 1
        if how == "left alone":
            assert again.level == "kept" and await again.read() == b"first second"
            return
        assert again.level == "lost"
        with pytest.raises((RequestFailed, UnitEnded)):
            await again.read()


TALKS = "echo up; while read -r line; do echo $line; done < '{}'; exec sleep 1000"


@pytest.mark.req("R82", "R89")
@pytest.mark.parametrize("how", ["cut short", "removed"])
async def test_a_service_goes_on_when_its_log_was_changed_and_that_is_told(
    place: Place, tmp_path: Path, how: str
) -> None:
    says = tmp_path / "says"
    os.mkfifo(says)
    command = ["sh", "-c", TALKS.format(says)]
    async with place.runtime() as rt:
        web = await rt.service("web", command, ready=log_line("^up$"))
        read = await web.read()
        log = place.home / "units" / web.uid / "output"
        if how == "cut short":
            os.truncate(log, 0)
        else:
            log.unlink()
            place.kill_keeper()
        again = await rt.service("web", command)
        assert (again.level, again.pid) == ("kept", web.pid) and is_alive(web.pid)
        assert how in again.verdict.since_you_left[0]
        says.write_text("more\n")
        until(lambda: place.ask("do", unit=web.uid, do="state")["end"] > read.offset)
        news = await again.read(read.offset)
        assert (news.text, news.gap) == ("more\n", 0)
        whole = await again.read()
        assert (whole.text, whole.gap) == (("more\n", 3) if how == "cut short" else ("up\nmore\n", 0))


# ── held objects ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R89")
async def test_an_object_of_an_unknown_kind_is_told_as_lost_at_once_and_by_the_restore(place: Place) -> None:
    async with place.runtime() as rt:
        held = rt.hold("chat", "websocket", object())
        assert held.verdict is not None and held.verdict.level == "lost" and "websocket" in held.verdict.reason
        assert rt.hold("notes", "blob", "text").verdict is None
        await rt.save()
        levels = {line.name: line.level for line in (await rt.plan()).units}
        assert (levels["chat"], levels["notes"]) == ("lost", "rebuilt")
        await rt.release("chat")
        await rt.save()
        assert "chat" not in {line.name for line in (await rt.plan()).units}


@pytest.mark.req("R83")
async def test_a_unit_is_released_from_the_command_line(place: Place) -> None:
    async with place.runtime() as rt:
        web = await rt.service("web", ["sleep", "1000"])
        done = subprocess.run([*CLI, "units", "work", "--release", "web"], env=environment(place), check=True)
        assert done.returncode == 0 and not is_alive(web.pid)
        none = subprocess.run([*CLI, "units", "work", "--release", "shop"], env=environment(place), capture_output=True)
        assert none.returncode == 3


@pytest.mark.req("R75", "R89")
async def test_what_cannot_be_made_again_after_the_anchor_died_is_lost_with_the_reason(
    place: Place, tmp_path: Path
) -> None:
    number, text = free_port(), tmp_path / "lines"
    text.write_bytes(b"one\ntwo\n")
    async with place.runtime() as rt:
        (await rt.file(text, "rb")).close()
        (await rt.listener(number)).close()
    place.kill_anchor()
    text.unlink()
    async with place.runtime() as rt:
        with socket.create_server(("127.0.0.1", number)):
            file, listener = await rt.file(text, "rb"), await rt.listener(number)
        assert (file.level, listener.level) == ("lost", "lost")
        assert "No such file" in file.verdict.reason and "in use" in listener.verdict.reason
        with pytest.raises(UnitEnded):  # what never was there is no unit
            await rt.file(tmp_path / "none", "rb")


@pytest.mark.req("R77", "R89")
async def test_a_keeper_that_stands_still_holds_no_connection_after_its_anchor_died(place: Place) -> None:
    with other_end() as (server, number):
        async with place.runtime() as rt:
            kept = await rt.socket("feed", "127.0.0.1", number)
            feed, _ = server.accept()
            feed.settimeout(30)
            kept.close()
        keeper, anchor = place.keeper, place.anchor
        client.client_for(place.home).close()
        os.kill(keeper, signal.SIGSTOP)
        os.kill(anchor, signal.SIGKILL)
        until(lambda: not is_alive(anchor))
        with feed:
            async with place.runtime() as rt:
                assert (await rt.socket("feed", "127.0.0.1", number)).level == "lost"
                assert feed.recv(1) == b""
                until(lambda: not is_alive(keeper))
