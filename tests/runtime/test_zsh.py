"""A real zsh: in the place of a kept shell, inside it, and as a program on a terminal of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perdure import errors
from perdure._runtime.keeper_client import client
from tests.runtime.kit import Place, until_text
from tests.runtime.test_shells import waits_for
from tests.support import packages


@pytest.fixture
def zsh(tmp_path: Path) -> dict[str, str]:
    """The environment of a user without start files, who has zsh."""
    packages.need("zsh")
    return {"HOME": str(tmp_path), "PS1": "$ ", "PATH": os.environ["PATH"]}


async def test_a_shell_that_became_zsh_is_kept_and_takes_no_commands_for_bash(
    place: Place, zsh: dict[str, str]
) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=zsh)
        await shell.run("export BEFORE=bash; cd /usr")
        await shell.send("PS1='zsh> ' exec zsh -f\n")
        await until_text(shell, r"zsh> \Z")
        with pytest.raises(errors.ShellBusy):
            await shell.run("echo no")
        await shell.send("typeset -A after; after[k]=zsh\n")
        client.client_for(place.home).close()
        pid = shell.record.pid
    place.kill_keeper()
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=zsh)
        assert (shell.level, shell.record.pid) == ("kept", pid)
        await shell.send("print -r -- said:$BEFORE:${after[k]}:$PWD:${ZSH_VERSION%%.*}\n")
        assert "said:bash:zsh:/usr:5" in await shell.expect(r"\nsaid:\S+")
        with pytest.raises(errors.ShellBusy):
            await shell.run("echo still no")
        await shell.send("exit 3\n")
        assert await shell.ended() == 3


async def test_a_zsh_inside_a_shell_keeps_it_busy_until_it_ends(place: Place, zsh: dict[str, str]) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=zsh)
        await waits_for(shell, "prompt")
        await shell.send("PS1='zsh> ' zsh -f\n")
        await until_text(shell, r"zsh> \Z")
        await shell.send("print -n '\\e]133;D;0\\a'; (exit 4)\n")  # a mark, and an end, of its own
        with pytest.raises(errors.ShellBusy):
            await shell.run("echo no")
        place.kill_keeper()
        with pytest.raises(errors.ShellBusy):
            await shell.run("echo no")
        await shell.send("exit 6\n")
        while True:
            try:
                assert (await shell.run("echo ${0##*/} after $?")).output == "bash after 6\n"
                break
            except errors.ShellBusy:
                await waits_for(shell, "prompt")
        assert [one.exit_code for one in await shell.commands()] == [6, 0]


async def test_zsh_by_itself_is_a_program_on_a_terminal_and_run_says_so(place: Place, zsh: dict[str, str]) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("z", ["zsh", "-f"], env=zsh)
        await until_text(shell, r"\$ ")
        assert await shell.waiting() == "prompt"
        await shell.send("print -r -- ${(U):-said} $ZSH_NAME\n")
        await shell.expect("SAID zsh")
        with pytest.raises(errors.InvalidInput, match=r"bash only, and this is zsh: use send\(\) and expect\(\)"):
            await shell.run("echo no")
