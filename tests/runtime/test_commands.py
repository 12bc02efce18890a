"""Commands with pipes that outlive the agent, and the output of a shell's command by its key."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, durable, errors, runtime, sync
from perdure._runtime.units import terminal_screen as screens
from tests.runtime.kit import Place, is_alive, until

BOTH = [sys.executable, "-c", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"]
WAITS = ["sh", "-c", 'echo $$ > "$1"; while [ ! -e "$2" ]; do sleep 0.01; done; echo done', "sh"]


async def test_output_and_errors_come_apart_with_the_exit_code(place: Place) -> None:
    async with place.runtime() as rt:
        end = await (await rt.command(BOTH, key="both")).result()
        assert (end.exit_code, end.stdout, end.stderr) == (3, b"out\n", b"err\n")


async def test_input_is_given_to_its_end_and_is_empty_by_default(place: Place) -> None:
    async with place.runtime() as rt:
        assert (await (await rt.command(["cat"], key="none")).result()).stdout == b""
        assert (await (await rt.command(["cat"], key="some", stdin="é\0x")).result()).stdout == "é\0x".encode()


async def test_a_command_runs_once_per_key(place: Place, tmp_path: Path) -> None:
    append = ["sh", "-c", f"echo x >> {tmp_path}/count; wc -l < {tmp_path}/count"]
    async with place.runtime() as rt:
        first = await (await rt.command(append, key="once")).result()
        place.kill_keeper()
        assert await (await rt.command(append, key="once")).result() == first
        with pytest.raises(errors.Conflict):
            await rt.command(["echo"], key="once")
        with pytest.raises(errors.Conflict):
            await rt.command(append, key="once", stdin="other")
    assert (tmp_path / "count").read_text() == "x\n"


async def test_a_command_survives_its_agent_and_the_keeper(place: Place, tmp_path: Path) -> None:
    pid, go = tmp_path / "pid", tmp_path / "go"
    argv = [*WAITS, str(pid), str(go)]
    async with place.runtime() as rt:
        await rt.command(argv, key="long")
        until(pid.exists)
    place.kill_keeper()
    async with place.runtime() as rt:
        command = await rt.command(argv, key="long")
        with pytest.raises(errors.TimedOut):
            await command.result(timeout="50ms")
        go.touch()
        assert (await command.result()).stdout == b"done\n"


async def test_a_command_is_killed_with_all_it_has_started(place: Place, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    async with place.runtime() as rt:
        command = await rt.command([*WAITS, str(pid), "/nowhere/never"], key="stuck")
        until(lambda: pid.exists() and pid.read_text().strip() != "")
        await command.kill()
        assert (await command.result()).exit_code == -9
        until(lambda: not is_alive(int(pid.read_text())))


async def test_of_a_long_output_the_last_part_is_given(place: Place) -> None:
    many = [sys.executable, "-c", "print('x' * 3_000_000, end='y')"]
    async with place.runtime() as rt:
        end = await (await rt.command(many, key="many")).result(most=10)
        assert (end.stdout, end.stdout_gap) == (b"xxxxxxxxxy", 3_000_001 - 10)


async def test_a_command_that_cannot_be_started_says_so(place: Place) -> None:
    async with place.runtime() as rt:
        with pytest.raises(errors.UnitEnded):
            await rt.command(["/nowhere/at-all"], key="none")


async def test_inside_a_durable_function_its_result_is_recorded(place: Place, tmp_path: Path) -> None:
    append = ["sh", "-c", f"echo x >> {tmp_path}/count; wc -l < {tmp_path}/count"]

    @durable
    async def agent() -> list[Any]:
        rt = await runtime.open()
        end = await (await rt.command(append, key="count")).result()
        return [end.exit_code, end.stdout.strip()]

    async with Perdure(place.url) as app:
        assert await app.run("agent", agent) == [0, b"1"]


def test_blocking_code_runs_commands_too(place: Place) -> None:
    with sync.Perdure(place.url) as app:
        app.tasks.open("plain")
        assert app.runtime("plain").command(BOTH, key="both").result().exit_code == 3


# ── the output of a shell's command ──────────────────────────────────────────────────────────────


async def test_the_output_of_a_running_command_is_read_by_key_without_marks(place: Place, tmp_path: Path) -> None:
    go = tmp_path / "go"
    command = f"printf 'on\\e[31mé\\e[0m\\n'; while [ ! -e {go} ]; do sleep 0.01; done; echo two"
    async with place.runtime() as rt:
        shell = await rt.shell("main")
        with pytest.raises(errors.TimedOut):
            await shell.run(command, key="k", timeout="1ms")
        await until_output(shell, "oné\n")
        seen = await shell.output("k")
        assert (seen.state, seen.text, seen.exit_code) == ("running", "oné\n", None)
        go.touch()
        rest = await shell.output("k", seen.next_offset, wait="30s")
        assert (rest.state, rest.text, rest.exit_code) == ("ended", "two\n", 0)
        whole = await shell.output("k")
        assert (whole.text, whole.command) == ("oné\ntwo\n", command)
        with pytest.raises(errors.NotFound):
            await shell.output("other")


async def until_output(shell: Any, text: str) -> None:
    while (await shell.output("k")).text != text:
        await asyncio.sleep(0)


async def test_the_output_of_a_command_is_there_for_the_next_process_and_keeper(place: Place) -> None:
    async with place.runtime() as rt:
        await (await rt.shell("main")).run("cd /usr; echo kept; false", key="k")
    place.kill_keeper()
    async with place.runtime() as rt:
        found = await (await rt.shell("main")).output("k")
        assert (found.state, found.text, found.exit_code, found.cwd) == ("ended", "kept\n", 1, "/usr")


async def test_a_command_that_asks_for_a_password_says_so(place: Place) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main")
        with pytest.raises(errors.TimedOut):
            await shell.run("read -s -p 'Password: ' P; echo got ${#P}", key="k", timeout="1ms")
        while (await shell.output("k")).waiting != "secret":
            await asyncio.sleep(0)
        await shell.answer("hunter2")
        assert (await shell.output("k", wait="30s")).text.endswith("got 7\n")


@pytest.mark.parametrize(
    "data, whole",
    [
        (b"abc", 3),
        (b"abc\x1b", 3),
        (b"abc\x1b]133;D;0;p=secret", 3),
        (b"abc\x1b]133;D;0;p=x\x07", 17),
        (b"abc\x1b]0;title\x1b", 3),
        (b"abc\x1b[3", 3),
        (b"abc\x1b[31m", 8),
        (b"abc\x1b(", 3),
        (b"abc\x1bM", 5),
        ("é".encode()[:1], 0),
        (b"a\xe2\x82", 1),
        ("a€".encode(), 4),
        (b"\x80\x80\x80\x80\x80", 5),
        (b"", 0),
    ],
)
def test_no_half_code_and_no_half_character_is_given_out(data: bytes, whole: int) -> None:
    assert screens.whole_length(data) == whole
