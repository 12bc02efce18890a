"""The keeper outlives agents, and its units outlive the keeper."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from perdure import errors, keeper
from perdure._runtime.keeper_client import client
from perdure.keeper import Channel
from tests.runtime.kit import Place, is_alive, until, until_text

ROOT = Path(__file__).parents[2]


@pytest.mark.req("R83")
async def test_a_shell_outlives_the_agent_the_keeper_and_both(place: Place) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", ["bash", "--norc"])
        await shell.send("X=4$((1+1)); cd /usr/lib\n")
        pid = shell.record.pid
    client.client_for(place.home).close()  # as if the agent had died
    place.kill_keeper()
    async with place.runtime() as rt:
        again = await rt.shell("main", ["bash", "--norc"])
        await again.send("echo $X in $PWD\n")
        assert again.level == "kept" and again.record.pid == pid
        await until_text(again, "42 in /usr/lib")


@pytest.mark.req("R83")
async def test_replacing_the_keeper_touches_no_unit(place: Place) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", ["cat"])
        before = place.keeper
        place.ask("replace")
        await shell.send("still here\n")
        await until_text(shell, "still here\nstill here")
        assert place.keeper == before  # the same process, another program


async def test_a_keeper_that_would_not_start_is_not_gone_over_to(place: Place) -> None:
    with pytest.raises(errors.PerdureError, match="does not start"):
        place.ask("replace", argv=[sys.executable, "-c", "raise SystemExit(1)"])
    assert is_alive(place.keeper)


@pytest.mark.req("R83")
async def test_bytes_that_flow_while_the_keeper_is_killed_come_once(place: Place) -> None:
    counting = "i=0; while [ $i -lt 4000 ]; do i=$((i+1)); echo line-$i; done; echo the-end; exec cat"
    async with place.runtime() as rt:
        shell = await rt.shell("count", ["bash", "-c", counting])
        for _ in range(3):
            place.kill_keeper()
        await until_text(shell, "the-end")
        found = await shell.read()
        assert found.gap == 0
        lines = [line for line in found.text.split("\r\n") if line]
        assert lines == [*(f"line-{number}" for number in range(1, 4001)), "the-end"]


async def test_an_exit_while_there_is_no_keeper_is_not_missed(place: Place) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("short", ["bash", "-c", "read line; exit 7"])
        pid = place.keeper
        os.kill(pid, signal.SIGSTOP)  # it hears nothing any more
        os.kill(shell.record.pid, signal.SIGTERM)
        until(lambda: not is_alive(shell.record.pid))
        os.kill(pid, signal.SIGKILL)
        until(lambda: place.keeper != pid)
        assert (await shell.refresh()).ended == signal.SIGTERM


# ── one writer ───────────────────────────────────────────────────────────────────────────────────


async def test_two_agents_cannot_write_to_one_unit(place: Place) -> None:
    async with place.runtime() as rt:
        mine = await rt.shell("main", ["cat"])
        await mine.send("mine\n")
        rt._client = other = client.Client(place.home)
        theirs = await rt.shell("main", ["cat"])
        with pytest.raises(errors.UnitHeld) as held:
            await theirs.send("theirs\n")
        assert held.value.pid == os.getpid()
        await until_text(theirs, "mine\nmine")  # reading is free
        await theirs.take()
        await theirs.send("theirs\n")
        with pytest.raises(errors.UnitHeld):
            await mine.send("mine again\n")
        other.close()


async def test_a_writer_that_has_just_died_holds_nobody_up(place: Place) -> None:
    """The keeper hears of its end after the next one has asked."""
    async with place.runtime() as rt:
        mine = await rt.shell("main", ["cat"])
        await mine.send("mine\n")
        former, rt._client = rt._client, client.Client(place.home)
        theirs = await rt.shell("main", ["cat"])
        keeper = place.keeper
        os.kill(keeper, signal.SIGSTOP)
        asking = asyncio.create_task(theirs.send("theirs\n"))
        for _ in range(5):
            await asyncio.sleep(0)
        former.close()
        os.kill(keeper, signal.SIGCONT)
        await asking
        rt._client.close()


async def test_the_right_to_write_comes_back_after_a_new_connection(place: Place) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", ["cat"])
        await shell.send("one\n")
        epoch = (await shell.refresh()).epoch
        place.kill_keeper()
        await shell.send("two\n")
        await until_text(shell, "two\ntwo")
        assert (await shell.refresh()).epoch == epoch


async def test_a_name_stands_for_one_command(place: Place) -> None:
    async with place.runtime() as rt:
        await rt.shell("main", ["cat"])
        with pytest.raises(errors.Conflict, match="cat"):
            await rt.shell("main", ["bash"])


async def test_what_cannot_start_leaves_nothing(place: Place) -> None:
    async with place.runtime() as rt:
        with pytest.raises(errors.UnitEnded, match="No such file"):
            await rt.shell("main", ["/no/such/program"])
        with pytest.raises(errors.UnitEnded, match="No such file"):
            await rt.shell("main", ["cat"], cwd="/no/such/folder")
        assert await rt.units() == []


# ── who may speak ────────────────────────────────────────────────────────────────────────────────

SPEAK = """
import socket, sys
sys.path.insert(0, {src!r})
from perdure import keeper
sock = socket.socket(socket.AF_UNIX)
sock.connect({path!r})
token = (int(sys.argv[1]),) if len(sys.argv) > 1 else ()
keeper.send(sock, keeper.Request(1, "hello", {{"versions": [1]}}, fds=token))
[answer] = keeper.Decoder().feed(*keeper.receive(sock))
print("said", getattr(answer, "error", "welcome"), answer.args.get("what", ""), flush=True)
"""


@pytest.mark.req("R143")
async def test_what_a_unit_starts_may_not_speak_to_the_keeper(place: Place, tmp_path: Path) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", ["bash", "--norc"])
        script = tmp_path / "speak.py"
        script.write_text(SPEAK.format(src=str(ROOT / "src"), path=place.socket))
        await shell.send(f"{sys.executable} {script}\n")
        await until_text(shell, "said stranger process .* was started by a unit")
        # … nor after a double fork and in a session of its own
        await shell.send(f"clear; (setsid {sys.executable} {script} &) ; echo\n")
        await until_text(shell, "echo(.|\n)*said stranger process")
        outside = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
        assert outside.stdout.startswith("said welcome")


@pytest.mark.req("R143")
def test_another_user_may_not_speak_to_the_keeper(place: Place) -> None:
    place.ask("status")
    if os.getuid() != 0:
        pytest.skip("needs root to become another user")
    path = place.socket
    folder = Path(path).parent
    assert folder.stat().st_mode & 0o777 == 0o700 and Path(path).stat().st_mode & 0o777 == 0o600
    Path(path).chmod(0o666)
    folder.chmod(0o755)  # even if somebody opens the doors, the keeper looks who it is
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setuid(65534)
            with socket.socket(socket.AF_UNIX) as sock:
                sock.connect(path)
                keeper.send(sock, keeper.Request(1, "hello", {"versions": [1]}))
                [answer] = keeper.Decoder().feed(*keeper.receive(sock))
            code = 0 if isinstance(answer, keeper.Refusal) and answer.error == "stranger" else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def test_another_version_is_refused_clearly(place: Place) -> None:
    place.ask("status")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(place.socket)
        keeper.send(sock, keeper.Request(1, "hello", {"versions": [99]}))
        [answer] = keeper.Decoder().feed(*keeper.receive(sock))
    assert isinstance(answer, keeper.Refusal)
    assert answer.error == "version" and answer.args["speaks"] == list(keeper.VERSIONS)


def test_nothing_is_answered_before_hello_and_rubbish_ends_the_connection(place: Place) -> None:
    place.ask("status")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(place.socket)
        keeper.send(sock, keeper.Request(1, "units"))
        [answer] = keeper.Decoder().feed(*keeper.receive(sock))
        assert isinstance(answer, keeper.Refusal)
        sock.sendall(b"\xff" * 64)
        assert sock.recv(1) == b""
    assert place.ask("status")["alive"] == 0


# ── descriptors ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R77")
def test_a_descriptor_outlives_its_process_and_the_keeper(place: Place) -> None:
    place.ask("status")
    with socket.create_server(("127.0.0.1", 0)) as listener, Channel(place.socket) as channel:
        port = listener.getsockname()[1]
        channel.put("web", listener.fileno(), {"port": port})
    waiting = socket.create_connection(("127.0.0.1", port))  # while no process listens
    place.kill_keeper()
    with Channel(place.socket) as channel:
        fd, about = channel.get("web")
        assert about == {"port": port} and channel.names() == [("web", about)]
        with socket.socket(fileno=fd) as again:
            taken, _ = again.accept()
            taken.sendall(b"hello")
            assert waiting.recv(5) == b"hello"
            taken.close()
        channel.drop("web")
        with pytest.raises(KeyError):
            channel.get("web")
    waiting.close()


# ── what it is made of ───────────────────────────────────────────────────────────────────────────


def test_the_anchor_is_small_and_stands_alone() -> None:
    lines = Path(keeper.ANCHOR).read_text().splitlines()
    assert len(lines) <= 250
    assert not [line for line in lines if line.startswith(("import perdure", "from perdure"))]


def test_anchor_and_keeper_are_light(place: Place) -> None:
    memory = place.ask("status")["memory"]
    assert memory["anchor"] + memory["keeper"] <= 45_000_000


async def test_two_hundred_units_at_once(place: Place) -> None:
    async with place.runtime() as rt:
        shells = [await rt.shell(f"unit-{number}", ["cat"]) for number in range(200)]
        place.kill_keeper()
        await shells[0].send("first\n")
        await shells[-1].send("last\n")
        await until_text(shells[0], "first\nfirst")
        await until_text(shells[-1], "last\nlast")
        assert all(unit.level == "kept" for unit in await rt.units())


# ── stopped ──────────────────────────────────────────────────────────────────────────────────────


async def test_a_keeper_that_was_stopped_is_replaced_by_itself(place: Place) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env={"HOME": "/"})
        await shell.run("x=1")
        pid, keeper = shell.record.pid, place.keeper
        os.kill(keeper, signal.SIGSTOP)
        assert (await shell.run("echo $x")).output == "1\n"  # nobody else has done anything about it
        assert place.keeper != keeper and not is_alive(keeper)
        assert (shell.record.pid, is_alive(pid)) == (pid, True)
        children = Path(f"/proc/{place.anchor}/task/{place.anchor}/children").read_text().split()
        names = [Path(f"/proc/{child}/cmdline").read_bytes() for child in children]
        assert sum(b"perdure.keeper.daemon" in name for name in names) == 1


@pytest.mark.parametrize("also", ["", "anchor"])
async def test_who_waits_for_a_keeper_that_is_stopped_is_answered_by_the_next(
    place: Place, monkeypatch: pytest.MonkeyPatch, also: str
) -> None:
    monkeypatch.setattr(client, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(client, "PATIENCE_SECONDS", 6.0)
    async with place.runtime() as rt:
        shell = await rt.shell("main", env={"HOME": "/"})
        keeper, anchor = place.keeper, place.anchor
        os.kill(keeper, signal.SIGSTOP)
        until(lambda: state_of(keeper) == "T")
        if also:
            os.kill(anchor, signal.SIGKILL)  # nobody is left who would replace it
            until(lambda: not is_alive(anchor))
        assert (await shell.refresh()).uid == shell.record.uid
        assert place.keeper != keeper
        with contextlib.suppress(ProcessLookupError):
            os.kill(keeper, signal.SIGKILL)


async def test_who_waits_for_a_keeper_and_an_anchor_that_are_both_stopped_is_told(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", ["cat"])
        both = (place.anchor, place.keeper)
        monkeypatch.setattr(client, "LOOK_SECONDS", 0.05)
        monkeypatch.setattr(client, "PATIENCE_SECONDS", 0.3)
        for pid in both:
            os.kill(pid, signal.SIGSTOP)
            until(lambda pid=pid: state_of(pid) == "T")
        try:
            with pytest.raises(errors.KeeperUnavailable, match="does not answer"):
                await shell.refresh()
        finally:
            for pid in both:
                os.kill(pid, signal.SIGCONT)
        monkeypatch.setattr(client, "PATIENCE_SECONDS", 30.0)
        assert (await shell.refresh()).is_alive


async def test_a_keeper_that_was_continued_and_a_unit_that_is_stopped_are_left_alone(place: Place) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", ["cat"])
        keeper, pid = place.keeper, shell.record.pid
        os.kill(pid, signal.SIGSTOP)
        until(lambda: state_of(pid) == "T")
        os.kill(keeper, signal.SIGSTOP)
        until(lambda: state_of(keeper) == "T")
        os.kill(keeper, signal.SIGCONT)
        stopped = await rt.shell("stopped", ["cat"])
        os.kill(stopped.record.pid, signal.SIGSTOP)
        until(lambda: state_of(stopped.record.pid) == "T")
        os.kill(keeper, signal.SIGSTOP)  # stopped anew: the time begins anew
        until(lambda: state_of(keeper) == "T")
        os.kill(keeper, signal.SIGCONT)
        os.kill(pid, signal.SIGCONT)
        await shell.send("still\n")
        await until_text(shell, "still\nstill")
        assert (place.keeper, state_of(stopped.record.pid)) == (keeper, "T")
        os.kill(stopped.record.pid, signal.SIGKILL)
        assert await stopped.ended() == -signal.SIGKILL


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
