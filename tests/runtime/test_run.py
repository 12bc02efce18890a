"""`perdure run`: any command as a task that outlives its terminal."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from perdure import Perdure
from perdure._runtime import command_runs as running
from tests.runtime.kit import PATIENCE, Place, is_alive, until

LONG = timedelta(seconds=PATIENCE)
COUNT = "import sys\nfor number in range(2000): print('line', number, flush=True)\nsys.stdin.readline(); print('over')"
CLI = [sys.executable, "-c", "import sys; from perdure.cli import main; sys.exit(main())"]


README = (Path(__file__).resolve().parents[2] / "README.md").read_text()


def environment(place: Place) -> dict[str, str]:
    return {**os.environ, "PERDURE_URL": place.url, "TERM": "xterm"}


class Terminal:
    """A terminal of a person, with a command on it."""

    def __init__(self, place: Place, *args: str, cwd: Path | None = None) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [*CLI, *args],
            cwd=cwd,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment(place),
            start_new_session=True,
            preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0),
        )
        os.close(slave)
        self.seen = b""

    def read_until(self, wanted: bytes) -> bytes:
        while wanted not in self.seen:
            data = b""
            if select.select([self.master], [], [], PATIENCE)[0]:
                with contextlib.suppress(OSError):
                    data = os.read(self.master, 65536)
            assert data, self.seen[-2000:]
            self.seen += data
        return self.seen

    def close(self) -> None:
        """As if its window was closed: the kernel hangs up on whoever is there."""
        os.close(self.master)
        self.process.wait()


async def status_of(place: Place, id: str) -> str:
    async with Perdure(place.url) as app:
        return (await (await app.tasks.handle(id)).record()).status


@pytest.mark.req("R148")
def test_output_errors_input_and_exit_code_are_the_commands_own(place: Place) -> None:
    script = "import sys; print('out', sys.stdin.read()); print('err', file=sys.stderr); sys.exit(7)"
    done = subprocess.run(
        [*CLI, "run", "piped", "--", sys.executable, "-c", script],
        input=b"given",
        capture_output=True,
        env=environment(place),
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (7, b"out given\n", b"err\n")


@pytest.mark.parametrize(
    "words, given",
    [
        (["once", "--detach", "--"], ["one", "--detach"]),
        (["--detach", "once", "--restart", "never", "--"], ["one"]),
        (["--detach", "once"], ["one", "--", "--again"]),
    ],
)
async def test_options_may_stand_between_the_id_and_the_command(
    place: Place, tmp_path: Path, words: list[str], given: list[str]
) -> None:
    script = f"import pathlib, sys; pathlib.Path({str(tmp_path / 'given')!r}).write_text(repr(sys.argv[1:]))"
    command = [*CLI, "run", *words, sys.executable, "-c", script, *given]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(place), timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "") and "`perdure attach once` shows it" in done.stdout
    async with Perdure(place.url) as app:
        await app.tasks.wait_for("once", timeout=LONG)
    assert (tmp_path / "given").read_text() == repr(given)


@pytest.mark.req("R117")
def test_a_closed_terminal_ends_nothing_and_attaching_shows_no_gap_and_no_repeat(place: Place) -> None:
    first = Terminal(place, "run", "demo", "--", sys.executable, "-c", COUNT)
    first.read_until(b"line 5\r\n")
    first.close()
    second = Terminal(place, "attach", "demo")
    second.read_until(b"line 1999\r\n")
    os.write(second.master, b"now\r")
    shown = second.read_until(b"over\r\n")
    assert second.process.wait() == 0
    lines = [line for line in shown.split(b"\r\n") if line.startswith(b"line")]
    assert lines == [b"line %d" % number for number in range(2000)]


@pytest.mark.req("R117")
def test_the_readme_works_as_it_is_pasted(place: Place, tmp_path: Path) -> None:
    pasted = next(line for line in README.splitlines() if line.startswith("$ printf") and "count.py" in line)
    subprocess.run(pasted.removeprefix("$ ").replace("sleep(1)", "sleep(0.01)"), shell=True, cwd=tmp_path, check=True)
    assert "$ perdure run demo -- python count.py\n" in README and "$ perdure attach demo " in README
    first = Terminal(place, "run", "demo", "--", sys.executable, "count.py", cwd=tmp_path)
    first.read_until(b"1\r\n2\r\n3\r\n")
    first.close()
    second = Terminal(place, "attach", "demo")
    seen = second.read_until(b"\n500\r\n").split()
    assert seen == [str(number).encode() for number in range(1, len(seen) + 1)]
    os.write(second.master, b"\x1d")
    second.read_until(b"`perdure attach demo` shows the terminal again")
    assert second.process.wait() == 0


async def test_a_command_that_cannot_be_started_fails_its_task_and_says_why(place: Place) -> None:
    done = subprocess.run(
        [*CLI, "run", "nope", "--", "no-such-program"], env=environment(place), capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.startswith("perdure: the command could not be started: No such file or directory: no-such-")
    async with Perdure(place.url) as app:
        record = await app.tasks.get("nope")
        assert record is not None and (record.status, record.error["kind"]) == ("failed", "not started")
    again = [*CLI, "run", "--again", "nope", "--", "echo", "this time"]
    assert subprocess.run(again, env=environment(place), capture_output=True, text=True).stdout == "this time\n"


@pytest.mark.req("R117")
async def test_a_detached_person_comes_back(place: Place) -> None:
    first = Terminal(place, "run", "demo", "--", "cat")
    os.write(first.master, b"hello\r")
    first.read_until(b"hello\r\nhello\r\n")
    os.write(first.master, b"\x1d")
    first.read_until(b"detached")
    assert first.process.wait() == 0
    async with Perdure(place.url) as app:
        [unit] = await running.terminals(await app.runtime("demo"))
        assert unit.record.is_alive
        await unit.end()


async def begun(app: Perdure, id: str, *argv: str, policy: running.Policy = "never") -> running.Command:
    await app.tasks.open(id, state={})
    return await running.begin(await app.runtime(id), argv, policy=policy, size=None, stdin=None)


@pytest.mark.req("R13")
async def test_a_command_that_is_killed_is_interrupted_and_resumed_as_a_new_attempt(place: Place) -> None:
    async with Perdure(place.url) as app:
        unit = await begun(app, "killed", "sleep", "1000")
        os.kill(unit.record.pid, signal.SIGKILL)
        record = await app.tasks.wait_for("killed", status="failed", timeout=LONG)
        assert record.error["kind"] == "interrupted" and record.error["signal"] == signal.SIGKILL
        await (await app.tasks.handle("killed")).resume()
        rt = await app.runtime("killed")
        again = await running.begin_again(rt)
        assert again is not None and again.is_alive and again.pid != unit.record.pid
        os.kill(again.pid, signal.SIGTERM)
        record = await app.tasks.wait_for("killed", status="failed", timeout=LONG)
        assert len(record.attempts) == 2


async def test_pause_stops_a_command_resume_lets_it_go_on_and_cancel_ends_it(place: Place) -> None:
    async with Perdure(place.url) as app:
        unit = await begun(app, "steered", "sleep", "1000")
        task = await app.tasks.handle("steered")
        await task.pause("wait", reason="checkpoint")
        until(lambda: state_of(unit.record.pid) == "T")
        await task.resume()
        until(lambda: state_of(unit.record.pid) == "S")
        await task.cancel()
        until(lambda: not is_alive(unit.record.pid))
        assert (await task.record()).status == "cancelled"


def state_of(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


async def test_a_command_starts_again_by_itself_if_it_was_so_asked(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "tries"
    script = f"echo x >> {file}; [ $(wc -l < {file}) -ge 2 ] || kill -9 $$"
    async with Perdure(place.url) as app:
        await begun(app, "again", "sh", "-c", script, policy="on-kill")
        record = await app.tasks.wait_for("again", status="completed", timeout=LONG)
        assert file.read_text() == "x\nx\n" and len(record.attempts) == 2


async def test_a_recorder_that_dies_is_replaced_and_the_end_is_still_recorded(place: Place, tmp_path: Path) -> None:
    async with Perdure(place.url) as app:
        os.mkfifo(tmp_path / "go")
        await begun(app, "recorded", "sh", "-c", "read x < $0", str(tmp_path / "go"))
        recorder = await running.found(await app.runtime("recorded"), running.RECORDER)
        assert recorder is not None
        os.kill(recorder.pid, signal.SIGKILL)
        until(lambda: not is_alive(recorder.pid))
        (tmp_path / "go").write_text("now\n")
        record = await app.tasks.wait_for("recorded", status="completed", timeout=LONG)
        assert record.result == {"exit_code": 0}


AGENT = """
import asyncio, os
from perdure import Perdure, durable, runtime, step

@durable(name="agent")
async def work() -> str:
    rt = await runtime.open()
    shell = await rt.shell("main", env={"HOME": "/"})
    return (await shell.run("echo from the shell")).output

async def main():
    async with Perdure() as app:
        task = await app.tasks.open(os.environ["PERDURE_TASK"])
        await task.checkpoint({"phase": "begun"})
        result = await app.run(f"{task.id}-shell", work)
        await task.complete(result)

asyncio.run(main())
"""


@pytest.mark.req("R148")
async def test_an_agent_under_run_works_on_its_own_task_with_shells_of_its_own(place: Place, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    async with Perdure(place.url) as app:
        await app.tasks.open("agent", state={})
        rt = await app.runtime("agent")
        rt.env["PERDURE_URL"] = place.url
        unit = await running.begin(
            rt, [sys.executable, str(tmp_path / "agent.py")], policy="never", size=None, stdin=None
        )
        until(lambda: not is_alive(unit.record.pid))
        said = (await unit.output(0))[0].decode() + (await unit.errors(0)).decode()
        assert said == ""
        record = await app.tasks.wait_for("agent", status="completed", timeout=LONG)
        assert record.result == "from the shell\n" and record.state == {"phase": "begun"}
        assert record.attempts[1].pid == unit.record.pid  # which took the lease over from the recorder


@pytest.mark.parametrize(
    "status, policy, what",
    [
        (0, "never", "complete"),
        (0, "on-failure", "complete"),
        (256, "never", "fail"),
        (256, "on-failure", "again"),
        (256, "on-kill", "fail"),
        (9, "never", "fail"),
        (9, "on-kill", "again"),
        (-1, "on-kill", "again"),
        (-1, "never", "fail"),
    ],
)
def test_what_an_end_means(status: int, policy: running.Policy, what: str) -> None:
    assert running.outcome(status, policy)[0] == what
