"""Watch an agent being killed three times and carry on."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import click

from perdure.cli.invocation import Invocation
from perdure.cli.verbs import Verb

# When each attempt is killed: as soon as it says this, or at a place inside perdure.
_KILLS = (
    ("refactored forms", "", "between two steps"),
    ("", "effect.done", "after the payment went through, before perdure could write that down"),
    ("refactored signals", "", "between two steps again"),
    ("", "", ""),
)


@click.command(cls=Verb)
@click.option("--fast", is_flag=True, help="Without the pauses that make it pleasant to watch.")
@click.pass_obj
def command(call: Invocation, fast: bool) -> int:
    """Watch an agent being killed three times and carry on.

    It refactors eight files, pays once, and runs the tests. Each time it is killed by SIGKILL, a new process
    finds its journal and goes on. At the end you see how often each part really ran. Exit 1 if one ran twice.
    """
    with tempfile.TemporaryDirectory(prefix="perdure-demo-") as folder:
        for number, (words, place, told) in enumerate(_KILLS, 1):
            _say(call, f"\nattempt {number}", bold=True)
            _attempt(call, Path(folder), words, place, "0.01" if fast else "0.12")
            if told:
                _say(call, f"  killed by SIGKILL: {told}", fg="red")
        return _account(call, Path(folder))


def _attempt(call: Invocation, folder: Path, words: str, place: str, seconds: str) -> None:
    environment = {**os.environ, "PERDURE_CRASH_AT": place}
    argv = [sys.executable, "-m", "perdure.cli.demo_agent", str(folder), seconds]
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdout is not None
        for line in agent.stdout:
            _say(call, f"  {line.rstrip()}")
            if words and line.startswith(words):
                agent.kill()
                break


def _account(call: Invocation, folder: Path) -> int:
    ran = Counter((folder / "ran.log").read_text().splitlines())
    payments = (folder / "payments.log").read_text().splitlines()
    twice = [name for name, times in ran.items() if times > 1]
    if call.json:
        call.answer({"steps": dict(ran), "payments": len(payments)})
    _say(call, "\nwhat really ran", bold=True)
    _say(call, f"  {len(ran)} steps, {sum(ran.values())} times in all; {len(payments)} payment")
    good = not twice and len(payments) == 1
    _say(call, "  nothing was done twice" if good else f"  done twice: {', '.join(twice) or 'the payment'}",
         fg="green" if good else "red")  # fmt: skip
    return 0 if good else 1


def _say(call: Invocation, text: str, *, bold: bool = False, fg: str | None = None) -> None:
    if not call.json:
        click.secho(text, bold=bold, fg=fg, color=None if call.may_colour else False)
