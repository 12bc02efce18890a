"""A shell whose user has habits of their own: what is run in it ends, and its output is the command's alone."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from perdure import Shell
from tests.runtime.kit import PATIENCE, Place


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "PS1": "$ ", "PATH": os.environ["PATH"]}


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
    ],
)
async def test_a_command_ends_whatever_the_one_before_has_set(place: Place, env: dict[str, str], habit: str) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        assert await said(shell, habit) == (0, "")
        assert await said(shell, "echo out; (exit 7)") == (7, "out\n")
        assert await said(shell, "echo $?") == (0, "7\n")


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
        assert await said(shell, "env | grep -c 133") == (1, "0\n")
        await said(shell, "export PS0 PROMPT_COMMAND")
        assert await said(shell, "env | grep -c 133") == (1, "0\n")


async def test_a_variable_called_as_one_of_the_keepers_was_comes_back(place: Place, env: dict[str, str]) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        await said(shell, "code=mine part=too others=(a b)")
        await shell.end()
        again = await rt.shell("main", env=env, rebuild="auto")
        assert again.level == "rebuilt"
        assert await said(again, 'echo "$code $part ${others[*]}"') == (0, "mine too a b\n")
