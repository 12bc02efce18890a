"""Only the shell says how its commands end: what it runs finds nothing to say it with."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from perdure import errors
from tests.runtime.kit import Place, until_text
from tests.runtime.test_shells import waits_for

# What a program can get at, looked through for anything that was ever in a mark, and then used to forge one.
THIEF = r"""
import os, re, sys
shell = os.getppid()
found = set()
def look(data):
    found.update(re.findall(rb"p=([0-9A-Za-z]{8,})", data))
look(repr(dict(os.environ)).encode())
for path in [f"/proc/{shell}/environ", f"/proc/{shell}/cmdline", sys.argv[2]]:
    try:
        look(open(path, "rb").read())
    except OSError:
        pass
for root, _, files in os.walk(sys.argv[3]):
    for path in (os.path.join(root, name) for name in files):
        if os.path.isfile(path):
            look(open(path, "rb").read())
found.add(b"1234567890")
marks = b"".join(b"\x1b]133;D;0;s=0;p=" + one + b"\x07\x1b]133;A;k=1;p=" + one + b"\x07" for one in found)
marks += b"\x1b]133;D;0;s=0\x07\x1b]133;D;0;p=;s=0\x07"
for fd in os.listdir("/proc/self/fd"):
    try:
        os.write(int(fd), b"D;0;s=0;p=forged00\n" if int(fd) > 2 else b"")
    except OSError:
        pass
for fd in os.listdir(f"/proc/{shell}/fd"):
    try:
        if int(fd) > 2 and "socket" in os.readlink(f"/proc/{shell}/fd/{fd}"):
            with open(f"/proc/{shell}/fd/{fd}", "wb", buffering=0) as line:
                line.write(b"D;0;s=0;p=forged00\n")
    except OSError:
        pass
os.write(1, marks + b"\x1b]133;D;0;s=0;p=forged00\x07\x1b]133;A;k=1;p=forged00\x07")
print("tried", len(found), flush=True)
open(sys.argv[1]).read()
sys.exit(7)
"""


@pytest.mark.req("R143")
async def test_a_program_cannot_say_that_a_command_has_ended(place: Place, env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "thief.py").write_text(THIEF)
    go, said = tmp_path / "go", tmp_path / "said"
    os.mkfifo(go)
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        # All that a shell tells of itself, where a program finds it.
        tell = f"exec 9>{said}; BASH_XTRACEFD=9; set -x; trap 'echo \"$BASH_COMMAND $_\" >&9' DEBUG"
        await shell.run(tell)
        await shell.run('set >&9; declare -p >&9; declare -f >&9; history >&9; export -p >&9; echo "$PS0" >&9')
        await waits_for(shell, "prompt")
        await shell.send("true by hand\n")
        await until_text(shell, "true by hand")
        await waits_for(shell, "prompt")
        while True:
            try:
                await shell.run("set +x; trap - DEBUG; (exit 4)")
                break
            except errors.ShellBusy:
                await asyncio.sleep(0)
        command = f"python3 {tmp_path}/thief.py {go} {said} {Path(place.socket).parent}"
        running = asyncio.create_task(shell.run(command, key="work"))
        await until_text(shell, "tried [0-9]+")
        with pytest.raises(errors.ShellBusy):
            await shell.run("echo no")
        place.kill_keeper()
        with pytest.raises(errors.ShellBusy):
            await shell.run("echo no")
        await asyncio.to_thread(go.write_text, "")
        assert (await running).exit_code == 7
        assert [one.exit_code for one in await shell.commands()][-1] == 7


async def test_no_program_inherits_the_shells_line(place: Place, env: dict[str, str]) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        shown = await shell.run("ls -l /proc/self/fd; bash -c 'ls -l /proc/$$/fd' | cat")
        assert "socket:" not in shown.output and shown.exit_code == 0
        [line] = [
            fd
            for fd in os.listdir(f"/proc/{shell.record.pid}/fd")
            if "socket" in os.readlink(f"/proc/{shell.record.pid}/fd/{fd}")
        ]
        flags = Path(f"/proc/{shell.record.pid}/fdinfo/{line}").read_text().split("flags:")[1].split()[0]
        assert int(flags, 8) & os.O_CLOEXEC


async def test_a_mark_that_was_seen_is_worth_nothing(place: Place, env: dict[str, str], tmp_path: Path) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        await shell.run("(exit 0)")
        raw = (await shell.read()).text
        (tmp_path / "seen").write_text(raw)
        go = tmp_path / "go"
        os.mkfifo(go)
        running = asyncio.create_task(shell.run(f"cat {tmp_path}/seen; cat {go}; (exit 9)"))
        await until_text(shell, "exit 9")
        await waits_for(shell, None)
        with pytest.raises(errors.ShellBusy):
            await shell.run("echo no")
        await asyncio.to_thread(go.write_text, "")
        assert (await running).exit_code == 9


async def test_a_shell_that_closes_its_line_is_busy_and_says_why(place: Place, env: dict[str, str]) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        await shell.run("true")
        await waits_for(shell, "prompt")
        await shell.send(
            'for fd in /proc/$$/fd/*; do n=${fd##*/}; ((n < 3 || n == 255)) || eval "exec $n>&-"; done; echo shut\n'
        )
        await until_text(shell, "\nshut")
        with pytest.raises(errors.ShellBusy, match="closed its line"):
            await shell.run("echo no")
