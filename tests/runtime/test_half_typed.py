"""A half-typed line is its writer's: `run` never presses Enter on it, in whatever state it is, and leaves it there."""

from __future__ import annotations

import asyncio
import os
import random
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from perdure import errors
from perdure.runtime import Shell
from tests.runtime.kit import PATIENCE, Place, text_of, until, until_text
from tests.runtime.test_shells import waits_for

ROUNDS = int(os.environ.get("PERDURE_TEST_HALF_TYPED", "10"))


@dataclass(frozen=True)
class Half:
    """What is typed, what would finish it, and where it is that: in the editor of one mode, or only at its prompt, as
    the terminal itself has a meaning for some keys while another program runs."""

    typed: str
    rest: str
    only: str = ""
    at_prompt: bool = False


def halves(file: Path) -> dict[str, Half]:
    line = f"echo mark >> {file}"
    return {
        "half a line": Half(line, "\n"),
        "a line that was typed in two": Half(f"true\n{line}", "\n"),
        "a word": Half("e", f"cho mark >> {file}\n"),
        "spaces": Half("   ", f"{line}\n"),
        "an open quote": Half(f"{line}; echo 'one\n", "two'\n"),
        "an open quote with text": Half(f'{line}; echo "one\ntwo', '"\n'),
        "a backslash": Half(f"{line} \\\n", "\n"),
        "an open loop": Half("for one in 1\n", f"do {line}; done\n"),
        "an open loop with a body": Half(f"for one in 1; do\n{line}\n", "done\n"),
        "an open if": Half("if true\n", f"then {line}; fi\n"),
        "a here document": Half(f"cat >> {file} <<END\nmark\n", "END\n"),
        "a here document, half a line": Half(f"cat >> {file} <<END\nma", "rk\nEND\n"),
        "an open brace": Half("{\n", f"{line}\n}}\n"),
        "an open pipe": Half("echo mark |\n", f"cat >> {file}\n"),
        "an open and": Half("true &&\n", f"{line}\n"),
        "a quoted line break": Half(f"{line}; :\x16\n", "\n", at_prompt=True),
        "Ctrl-V": Half(f"{line}; : \x16", "a\n"),
        "Escape": Half(f"{line}\x1b", " \n", "emacs"),
        "Escape of vi": Half(f"{line}\x1b", "\n", "vi"),
        "an operator of vi": Half(f"{line}\x1bd", "\x1b\n", "vi"),
        "Ctrl-X": Half(f"{line}\x18", "q\n", "emacs"),
        "a search": Half(f"{line}\x12no such", "\x07\n", "emacs", at_prompt=True),
        "a paste": Half(f"\x1b[200~{line}\x1b[201~", "\n"),
        "an open paste": Half(f"\x1b[200~{line}", "\x1b[201~\n"),
        "a stop": Half(f"{line}\x13", "\x11\n"),
        "a number": Half(f"{line}\x1b1", "\n", "emacs"),
    }


def has_text(file: Path) -> bool:
    return file.exists() and bool(file.read_text())


async def refuses(shell: Shell, never: Path, told: str) -> None:
    try:
        await asyncio.wait_for(shell.run(f"touch {never}"), PATIENCE)
    except errors.ShellBusy:
        return
    pytest.fail(f"{told}: it was run; there is {await text_of(shell)!r}")


@pytest.mark.req("R59")
@pytest.mark.parametrize("seed", range(3))
async def test_no_enter_is_ever_pressed_on_what_somebody_has_half_typed(
    place: Place, env: dict[str, str], tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    async with place.runtime() as rt:
        for number in range(ROUNDS):
            file, never, go = (tmp_path / f"{name}-{number}" for name in ("file", "never", "go"))
            mode, when = chance.choice(["emacs", "emacs", "vi"]), chance.choice(["prompt", "ahead", "ahead", "start"])
            mode = "emacs" if when == "start" else mode
            fitting = [one for one in halves(file).items() if one[1].only in ("", mode)]
            name, half = chance.choice([one for one in fitting if when == "prompt" or not one[1].at_prompt])
            dies = chance.choice(["nobody", "keeper"])
            told = f"seed {seed}, round {number}: {name}, {mode}, {when}, {dies}"
            os.mkfifo(go)
            shell = await rt.shell(f"s{number}", env=env)
            if when != "start":
                await shell.run(f"set -o {mode}")
                await until_text(shell, r"[$#] \Z")
            if when == "ahead":  # what is typed while something runs comes to the line after its prompt
                await shell.send(f"cat {go}\n")
                await until_text(shell, f"cat {go}\r?\n")
                await waits_for(shell, None)
            await shell.send(half.typed)
            await refuses(shell, never, told)
            if dies == "keeper":
                place.kill_keeper()
            await refuses(shell, never, told)
            if when == "ahead":
                await asyncio.to_thread(go.write_text, "")
            for _ in range(3):
                await refuses(shell, never, told)
            assert not file.exists() or "here" in name, f"{told}: Enter was pressed"
            await shell.send(half.rest)
            until(partial(has_text, file), f"{told}: the line is gone")
            assert file.read_text() == "mark\n", told
            while True:  # until its prompt is there
                try:
                    assert (await shell.run("echo free")).output == "free\n", told
                    break
                except errors.ShellBusy:
                    await asyncio.sleep(0)
            assert not never.exists(), told
            await shell.end()
