"""A shell whose user has habits of their own: what is run in it ends, and its output is the command's alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from perdure.errors import UnitEnded
from perdure.runtime import Shell
from tests.runtime.kit import PATIENCE, Place


async def said(shell: Shell, command: str) -> tuple[int | None, str]:
    result = await asyncio.wait_for(shell.run(command), PATIENCE)
    return result.exit_code, result.output


@pytest.mark.req("R83")
@pytest.mark.parametrize(
    "habit",
    [
        "PROMPT_COMMAND=true",
        "PROMPT_COMMAND=(true false)",
        "unset PROMPT_COMMAND",
        "PS0=; unset PS0",
        "set -u",
        "set -o posix",
        "IFS=:",
        "PROMPT_COMMAND='(exit 5)'; PS0='>'",
        "trap 'true' DEBUG",
        "exec 2>/dev/null",
        "set -o vi",
        "set +o emacs",
        "set -C",
        "PS2=; unset PS2; shopt -u promptvars",
        "declare -x NEVER_SET; declare -a EMPTY; declare -n ALIAS=HOME; readonly FIXED=1",
        "set -o vi; bind -r '\\C-^'",
        "unalias -a; unset -f true; FUNCNEST=50",
        "exec 3>&1 4>&1 5>&1 10>&1",
    ],
)
async def test_a_command_ends_whatever_the_one_before_has_set(place: Place, env: dict[str, str], habit: str) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        assert await said(shell, habit) == (0, "")
        assert await said(shell, "echo out; (exit 7)") == (7, "out\n")
        assert await said(shell, "echo $?") == (0, "7\n")


async def test_a_shell_whose_output_goes_elsewhere_still_says_when_a_command_ends(
    place: Place, env: dict[str, str], tmp_path: Path
) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        assert await said(shell, f"exec >{tmp_path}/out") == (0, "")
        assert await said(shell, "echo hidden; (exit 7)") == (7, "")
        assert await said(shell, "exec >/dev/tty; echo seen") == (0, "seen\n")
        assert (tmp_path / "out").read_text() == "hidden\n"


async def test_a_result_says_how_much_of_its_output_is_not_kept(place: Place, env: dict[str, str]) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        short = await shell.run("echo all of it")
        long = await shell.run("head -c 3000000 /dev/zero | tr '\\0' x; echo end", key="long")
        assert (short.gap, long.output[-4:]) == (0, "end\n")
        assert long.gap > 0 and long.gap + len(long.output) + 1 == long.end - long.start == 3_000_005
        assert await shell.run("head -c 3000000 /dev/zero | tr '\\0' x; echo end", key="long") == long


async def test_an_error_names_the_unit_as_its_task_does(place: Place, env: dict[str, str]) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        assert await said(shell, "exit 3") == (3, "")
        with pytest.raises(UnitEnded, match="unit main: the shell has ended"):
            await shell.run("echo no")


async def test_what_the_keeper_does_in_a_shell_is_not_in_a_trace_of_its_commands(
    place: Place, env: dict[str, str]
) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        assert await said(shell, "set -x") == (0, "")
        assert await said(shell, "echo hi") == (0, "++ echo hi\nhi\n")
        assert await said(shell, "set +x") == (0, "++ set +x\n")


async def test_a_shell_inside_inherits_no_marks(place: Place, env: dict[str, str]) -> None:
    """Else what ends in there would be taken for the end of what was run out here."""
    exported = {"PROMPT_COMMAND": "true", "PS0": "hook"}
    async with place.runtime() as rt:
        shell = await rt.shell("main", env={**env, **exported})
        assert await said(shell, "env | grep -c '133;'") == (1, "0\n")
        await said(shell, "export PS0 PROMPT_COMMAND")
        assert await said(shell, "env | grep -c '133;'") == (1, "0\n")


async def test_a_variable_called_as_one_of_the_keepers_was_comes_back(place: Place, env: dict[str, str]) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        await said(shell, "code=mine part=too others=(a b)")
        await shell.end()
        again = await rt.shell("main", env=env, rebuild="auto")
        assert again.level == "rebuilt"
        assert await said(again, 'echo "$code $part ${others[*]}"') == (0, "mine too a b\n")
