"""Run a command as a task that outlives this terminal."""

from __future__ import annotations

import shutil
import sys
from shlex import quote
from typing import TYPE_CHECKING

import click

from perdure.cli.base import Invocation, Verb, id_argument
from perdure.cli.output import line

if TYPE_CHECKING:
    from perdure._runtime import Command


# How often the record is looked at before its outcome is left to the next process that looks.
_LOOKS = 500


class _Run(Verb):
    """Takes its own options also between the id and `--`; what comes after the id without a `--` is the command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.allow_interspersed_args = "--" in args and self._is_all_ours(ctx, args[: args.index("--")])
        return super().parse_args(ctx, args)

    def _is_all_ours(self, ctx: click.Context, before: list[str]) -> bool:
        """True if the words before `--` are an id and our options; else that `--` belongs to the command."""
        parser = self.make_parser(ctx)
        parser.allow_interspersed_args = True
        try:
            found, _, _ = parser.parse_args([*before])
        except click.UsageError:
            return False
        given = found.get("argv")
        return isinstance(found.get("id"), str) and not (isinstance(given, tuple | list) and given)


@click.command(cls=_Run, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@id_argument()
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND …")
@click.option(
    "--restart",
    type=click.Choice(["never", "on-failure", "on-kill"]),
    default="never",
    show_default=True,
    help="When to start the command again automatically.",
)
@click.option("--detach", is_flag=True, help="Start the command and return at once.")
@click.option(
    "--again", is_flag=True, help="If the task has ended, start a new one; `perdure history` lists the old one."
)
@click.pass_obj
def command(call: Invocation, id: str, argv: tuple[str, ...], restart: str, detach: bool, again: bool) -> None:
    """Run a command as a task that outlives this terminal. perdure exits with the command's exit code.

    \b
    perdure run demo -- python count.py

    The keeper holds the command. Close the terminal, or detach with Ctrl-]; `perdure attach demo` shows the command
    again. If the command is killed, the task fails as interrupted, and `perdure resume demo` starts a new attempt.
    """
    from perdure._ground.bridge import drive
    from perdure.cli.processes import Attached

    command = argv[1:] if argv[0] == "--" else argv
    unit = drive(_begun(call, id, command, restart, again))
    if detach:
        told = f"{id} runs in the background (pid {unit.record.pid}); `perdure attach {quote(id)}` shows it"
        call.answer({"task": id, "pid": unit.record.pid}, line(told))
        return
    code = Attached(unit, start=0).show()
    if code is None:
        call.note(f"detached; `perdure attach {id}` shows the terminal again")
        return
    drive(_recorded(call, id))
    raise click.exceptions.Exit(code if code >= 0 else 128 - code)


async def _begun(call: Invocation, id: str, argv: tuple[str, ...], restart: str, again: bool) -> Command:
    from perdure.errors import InvalidInput, InvalidTransition, UnitEnded

    task = await call.tasks.open(id, state={}, again=again)
    if task.is_finished or task.is_paused:
        do = (
            f"`perdure run --again {id} -- …` starts a new task and keeps the old one in its history; or use another id"
        )
        if task.status in ("failed", "paused"):
            do = f"resume it: `perdure resume {id}`"
        raise InvalidTransition(id, task.status, "run a command", do=do)
    try:
        return await _started(call, id, argv, restart)
    except UnitEnded as error:
        await task.fail({"message": f"the command could not be started: {error.why}", "kind": "not started"})
        raise InvalidInput(
            f"the command could not be started: {error.why}",
            kept=f"task {id!r}, marked as failed",
            do=f"correct the command, then `perdure run --again {id} -- …`",
        ) from None


async def _started(call: Invocation, id: str, argv: tuple[str, ...], restart: str) -> Command:
    from perdure._runtime import command_runs as running

    is_terminal = sys.stdin is not None and sys.stdin.isatty()
    size = shutil.get_terminal_size() if is_terminal else None
    return await running.begin(
        await call.app.runtime(id),
        argv,
        policy=restart,  # type: ignore[arg-type]
        size=(size.lines, size.columns) if size is not None else None,
        stdin=None if is_terminal or sys.stdin is None else sys.stdin.fileno(),
    )


async def _recorded(call: Invocation, id: str) -> None:
    """Wait until the outcome is recorded, which takes a moment longer than the command."""
    from perdure._ground.bridge import Nap

    task = await call.tasks.handle(id)
    for _ in range(_LOOKS):
        if (await task.record()).is_finished:
            return
        await Nap(0.02)
