"""Who may speak to the keeper: no descendant of a unit, by whatever detour."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import perdure
from perdure.keeper.core import access
from perdure.keeper.process import ancestry, processes
from tests.runtime.kit import Place, until

pytestmark = [pytest.mark.req("R143"), pytest.mark.skipif(sys.platform != "linux", reason="Linux only")]
SOURCE = str(Path(perdure.__file__).parents[1])
ENV = {"HOME": "/", "PS1": "$ "}

# One process connects, hands its connection to another one and ends; the other one says hello.
HANDED_ON = """
import os, socket, sys
sys.path.insert(0, sys.argv[1])
from perdure.keeper.core import wire
left, right = socket.socketpair()
child = os.fork()
if not child:
    link = socket.socket(socket.AF_UNIX)
    link.connect(sys.argv[2])
    socket.send_fds(right, [b"x"], [link.fileno()])
    os._exit(0)
_, fds, _, _ = socket.recv_fds(left, 1, 1)
if sys.argv[3] == "reaped":
    os.waitpid(child, 0)
else:
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
link = socket.socket(fileno=fds[0])
wire.send(link, wire.Request(1, "hello", {"versions": [1]}))
for message in wire.Decoder().feed(wire.receive(link)[0]):
    print("ANSWER", type(message).__name__, getattr(message, "error", ""), message.args.get("what", ""), flush=True)
"""


@pytest.mark.parametrize("how", ["reaped", "zombie"])
async def test_a_connection_of_a_dead_descendant_of_a_unit_is_refused(place: Place, tmp_path: Path, how: str) -> None:
    script = tmp_path / "handed_on.py"
    script.write_text(HANDED_ON)
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=ENV)
        ran = await shell.run(f"{sys.executable} {script} {SOURCE} {place.socket} {how}")
        assert "ANSWER Refusal stranger" in ran.output, ran.output
        assert "has ended" in ran.output


async def test_a_descendant_that_has_left_its_parents_is_refused(place: Place, tmp_path: Path) -> None:
    """A double fork, and out of the session: its parent is the anchor itself."""
    script, answer = tmp_path / "daemon.py", tmp_path / "answer"
    script.write_text(
        f"import os, sys\nsys.path.insert(0, {SOURCE!r})\n"
        "if os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\n"
        "import socket\nfrom perdure.keeper.core import wire\n"
        f"link = socket.socket(socket.AF_UNIX)\nlink.connect(sys.argv[1])\n"
        "wire.send(link, wire.Request(1, 'hello', {'versions': [1]}))\n"
        "told = [getattr(m, 'error', 'admitted') for m in wire.Decoder().feed(wire.receive(link)[0])]\n"
        f"open({str(answer)!r} + '.new', 'w').write(told[0])\n"
        f"os.rename({str(answer)!r} + '.new', {str(answer)!r})\n"
    )
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=ENV)
        await shell.run(f"{sys.executable} {script} {place.socket}")
        until(answer.exists)
        assert answer.read_text() == "stranger"


def test_a_process_that_cannot_be_placed_is_no_friend(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        access.check_descent(ours, os.getpid(), 2**30)
        with pytest.raises(access.Stranger, match="pid namespace"):
            access.check_descent(ours, 0, 2**30)
        monkeypatch.setattr(ancestry, "_stat", lambda pid: [])
        with pytest.raises(access.Stranger, match="cannot be seen"):
            access.check_descent(ours, os.getpid(), 2**30)


def test_a_pid_that_another_process_has_got_since_is_not_taken_for_the_one_that_connected() -> None:
    """By a connection whose maker has ended, and the pid of one that lives."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("")
    listener.listen(1)
    child = os.fork()
    if not child:
        link = socket.socket(socket.AF_UNIX)
        link.connect(listener.getsockname())
        signal.pause()
    with listener, listener.accept()[0] as link:
        assert access.peer_of(link)[0] == child
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with pytest.raises(access.Stranger, match="has ended"):
            access.check_descent(link, os.getpid(), 2**30)


def test_without_a_pidfd_of_the_peer_a_dead_one_is_refused_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_SO_PEERPIDFD", 12345)  # an older kernel knows no such option
    done = subprocess.Popen(["true"])
    os.waitid(os.P_PID, done.pid, os.WEXITED | os.WNOWAIT)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        with pytest.raises(access.Stranger, match="has ended"):
            access.check_descent(ours, done.pid, 2**30)
        done.wait()
        with pytest.raises(access.Stranger, match="has ended"):
            access.check_descent(ours, done.pid, 2**30)
        access.check_descent(ours, os.getpid(), 2**30)


@pytest.mark.parametrize(
    "pid, start",
    [(-1, 0), (0, 0), (1, 0), (-os.getpid(), 0), (os.getpid(), 0), (True, 1)],
    ids=["everybody", "group", "init", "own group", "itself", "truth"],  # each process that collects says the same
)
def test_no_record_makes_the_keeper_signal_everybody(pid: int, start: int) -> None:
    assert not processes.is_same(pid, start)
