"""Isolated units: they see nothing of the keeper, of the store beside it, or of other processes."""

from __future__ import annotations

import asyncio
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure import errors, keeper
from perdure._runtime.keeper_client import client
from perdure._runtime.keeper_client import keeper_start as starting
from perdure.keeper.process.isolation import Isolation, NotAllowed, leave, settle
from perdure.keeper.process.spawner import CannotStart, Program, spawn
from perdure.runtime import Shell
from tests.runtime.kit import Place, is_alive, until
from tests.support.ports import free_port

pytestmark = [pytest.mark.req("R143"), pytest.mark.skipif(sys.platform != "linux", reason="Linux only")]
ENV = {"HOME": "/", "PS1": "$ "}


def can_isolate() -> bool:
    """Tried out: containers and kernels differ."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            leave()
            if inside := os.fork():
                code = os.waitstatus_to_exitcode(os.waitpid(inside, 0)[1])
            else:
                settle(Isolation([]))
                code = 0
        except NotAllowed:
            pass
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


needs_namespaces = pytest.mark.skipif(not can_isolate(), reason="this system makes no namespaces for us")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Where a store usually is: in .perdure."""
    place = Place(tmp_path / ".perdure" / "perdure.db")
    try:
        yield place
    finally:
        place.clear()


async def said(shell: Shell, command: str) -> str:
    return (await shell.run(command)).output


@needs_namespaces
async def test_an_isolated_shell_sees_only_itself(place: Place, tmp_path: Path) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=ENV, isolate=True, cwd=tmp_path)
        assert await said(shell, "echo $$") == "2\n"
        assert int(await said(shell, "ls -d /proc/[0-9]* | wc -l")) <= 5
        assert await said(shell, f"ls -A {place.home.parent}") == ""
        assert await said(shell, f"ls {place.socket} 2>&1") != f"{place.socket}\n"
        assert (await shell.run(f"kill -0 {os.getpid()}")).exit_code != 0
        assert (await shell.run(f"umount {place.home.parent}")).exit_code != 0
        assert (await shell.run(f"unshare -m umount {place.home.parent}")).exit_code != 0
        assert "CapBnd:\t0000000000000000" in await said(shell, "cat /proc/self/status")
        assert (await shell.run("cd /usr; pwd")).cwd == "/usr"


@needs_namespaces
async def test_a_store_inside_a_covered_folder_is_covered_with_it(folder: Path) -> None:
    """`folder` is in /dev/shm, where that is."""
    place = Place(folder / ".perdure" / "perdure.db")
    try:
        async with place.runtime() as rt:
            shell = await rt.shell("main", env=ENV, isolate=True, cwd="/")
            assert await said(shell, f"ls -A {place.home.parent} 2>/dev/null") == ""
    finally:
        place.clear()


@needs_namespaces
async def test_it_is_kept_like_any_other_shell(place: Place) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=ENV, isolate=True)
        await shell.run("FOO=kept")
        await asyncio.to_thread(place.kill_keeper)
        client.client_for(place.home).close()
    async with place.runtime() as rt:
        shell = await rt.shell("main", isolate=True)
        assert (shell.level, await said(shell, "echo $FOO")) == ("kept", "kept\n")
        await shell.send("sleep 1000\n")
        await shell.expect("sleep")
        until(lambda: place.ask("do", unit=shell.uid, do="state")["is_own"] is False)
        with pytest.raises(errors.ShellBusy):
            await shell.run("true")
        await shell.signal(signal.SIGINT)
        until(lambda: place.ask("do", unit=shell.uid, do="state")["waiting"] == "prompt")
        assert await said(shell, "echo $FOO") == "kept\n"


@needs_namespaces
async def test_with_an_isolated_service_all_it_has_started_ends(place: Place) -> None:
    script = "import subprocess; subprocess.Popen(['setsid', 'env', '-i', 'sleep', '4321'])\nwhile True: input()"
    async with place.runtime() as rt:
        number = free_port()
        web = await rt.service("web", [sys.executable, "-m", "http.server", str(number)], isolate=True)
        until(lambda: _answers(number))  # the network is as outside
        await web.end()
        until(lambda: not is_alive(web.record.pid))
        left = await rt.shell("forks", [sys.executable, "-c", script], isolate=True)
        until(lambda: _sleeping())
        await left.end()
        until(lambda: not _sleeping(), "what has left its session and its environment lives on")


def _answers(number: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", number), timeout=1).close()
    except OSError:
        return False
    return True


def _sleeping() -> bool:
    return subprocess.run(["pgrep", "-f", "^sleep 4321$"], capture_output=True, check=False).returncode == 0


@needs_namespaces
async def test_a_unit_that_lives_without_isolation_is_not_given_for_an_isolated_one(place: Place) -> None:
    async with place.runtime() as rt:
        await rt.shell("main", env=ENV)
        with pytest.raises(errors.Conflict):
            await rt.shell("main", env=ENV, isolate=True)


async def test_where_it_is_not_allowed_nothing_is_started(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    *python, start, src = keeper.keeper_argv(sys.executable)
    refuses = "type('C', (), {'unshare': staticmethod(lambda flags: -1)})"
    broken = f"from perdure.keeper.process import isolation; isolation._libc = lambda: {refuses}; "
    monkeypatch.setattr(
        starting, "keeper_argv", lambda _: [*python, start.replace("from perdure", f"{broken}from perdure", 1), src]
    )
    async with place.runtime() as rt:
        with pytest.raises(errors.UnitEnded, match="does not let user"):
            await rt.shell("main", env=ENV, isolate=True)
        assert place.ask("units")["units"] == []
        assert (await (await rt.shell("main", env=ENV)).run("echo without")).output == "without\n"


@needs_namespaces
def test_a_plain_user_can_isolate_too(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root to become a plain user; without root the tests above are of one")
    hidden = Path(tempfile.mkdtemp(prefix="perdure-hidden-"))
    (hidden / "secret").write_text("here")
    os.chown(hidden, 65534, 65534)
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgid(65534)
            os.setuid(65534)
            ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # undumpable, as the keeper is
            undoing = f"umount {hidden} 2>/dev/null || echo stays; grep CapBnd /proc/self/status"
            script = f"id -u; echo $$; ls -A {hidden}; {undoing}"
            command = Program(
                ["sh", "-c", script], "/", {"PATH": os.environ["PATH"]}, isolation=Isolation([str(hidden)])
            )
            try:
                spawn(command, (os.open(os.devnull, os.O_RDONLY), into, into), is_terminal=False).go()
            except CannotStart as error:
                os.write(into, f"refused: {error}".encode())
        finally:
            os._exit(0)
    os.close(into)
    os.waitpid(child, 0)
    with os.fdopen(out) as told:
        said = told.read()
    shutil.rmtree(hidden)
    if said.startswith("refused: this system"):
        pytest.skip(said)
    assert said.split() == ["65534", "2", "stays", "CapBnd:", "0000000000000000"]
