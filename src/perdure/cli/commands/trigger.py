"""Start or signal tasks when an event or a file arrives."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from perdure._ground.durations import parse_duration
from perdure.cli.base import Invocation, VerbGroup, json_or_text, load_function
from perdure.cli.output import Cell, Table, line

if TYPE_CHECKING:
    from perdure._model import Trigger


@click.group(cls=VerbGroup)
def command() -> None:
    """Start or signal tasks when an event arrives, a file changes, or a file is put in a folder.

    Workers (`perdure worker`) run the triggers. They act on an event once, however many workers there are and however
    often it is sent.
    """


def rate(text: str) -> tuple[int, timedelta]:
    """`10/1m`: ten a minute."""
    number, _, per = text.partition("/")
    found = parse_duration(per)
    if not number.isascii() or not number.isdigit() or found is None:
        raise click.BadParameter(f"{text!r} is not a rate; write 10/1m for ten per minute")
    return int(number), found


@command.command("add")
@click.argument("id", metavar="ID")
@click.argument("function", metavar="[MODULE:FUNCTION]", required=False)
@click.argument("arguments", metavar="[JSON]…", nargs=-1)
@click.option("--event", metavar="NAME", help="Act when an event of this name is sent.")
@click.option("--file", "path", metavar="PATH", help="Act when this file changes.")
@click.option("--directory", metavar="PATH", help="Act on each file that is put in this folder.")
@click.option(
    "--pattern", default="*", show_default=True, metavar="GLOB", help="With --directory: only files whose names match."
)
@click.option(
    "--rate",
    type=rate,
    metavar="10/1m",
    help="Act at most this often, such as 10 times per minute; further events wait (default: no limit).",
)
@click.option(
    "--task", metavar="ID", help="Signal this task instead of starting one; {field} stands for a field of the event."
)
@click.option("--signal", metavar="NAME", help="With --task: the signal's name.")
@click.pass_obj
async def add(
    call: Invocation,
    /,
    id: str,
    function: str | None,
    arguments: tuple[str, ...],
    event: str | None,
    path: str | None,
    directory: str | None,
    pattern: str,
    rate: tuple[int, timedelta] | None,
    task: str | None,
    signal: str | None,
) -> None:
    """Add a trigger that starts a function or signals a task, or change the trigger ID.

    The function gets the arguments, followed by the event's data or the file's path.
    """
    if (function is None) == (task is None) or (task is None) != (signal is None):
        raise click.UsageError("give either a function to start, or --task and --signal")
    if sum(given is not None for given in (event, path, directory)) != 1:
        raise click.UsageError("give one of --event, --file and --directory")
    triggers = call.app.triggers
    if function is not None:
        draft = triggers.start(id, load_function(function), *map(json_or_text, arguments))
    else:
        draft = triggers.signal(id, str(task), str(signal))
    if event is not None:
        made = await draft.event(event, rate=rate)
    elif path is not None:
        made = await draft.file(path, rate=rate)
    else:
        made = await draft.directory(str(directory), pattern=pattern, rate=rate)
    call.answer(_plain(id, made), line(Cell(id, "strong"), f": {_when(made)} → {_what(made)}"))


@command.command("list")
@click.pass_obj
async def list_(call: Invocation) -> None:
    """List the triggers."""
    found = await call.app.triggers.list()
    rows = [
        (Cell(id, "strong"), _when(one), _what(one), "paused" if one.is_paused else "") for id, one in found.items()
    ]
    table = Table(("id", "when", "what", ""), rows) if rows else line(f"no triggers in {call.place}")
    call.answer_items([_plain(id, one) for id, one in found.items()], table)


@command.command("pause")
@click.argument("id", metavar="ID")
@click.pass_obj
async def pause(call: Invocation, id: str) -> None:
    """Pause a trigger. Events wait until it is resumed."""
    await call.app.triggers.pause(id)
    call.answer({"id": id, "is_paused": True}, line(Cell(id, "strong"), ": paused"))


@command.command("resume")
@click.argument("id", metavar="ID")
@click.pass_obj
async def resume(call: Invocation, id: str) -> None:
    """Resume a trigger. It also acts on events that arrived during the pause."""
    await call.app.triggers.resume(id)
    call.answer({"id": id, "is_paused": False}, line(Cell(id, "strong"), ": resumed"))


@command.command("remove")
@click.argument("id", metavar="ID")
@click.pass_obj
async def remove(call: Invocation, id: str) -> None:
    """Remove a trigger. The tasks it started stay."""
    await call.app.triggers.remove(id)
    call.answer({"id": id, "removed": True}, line(Cell(id, "strong"), ": removed"))


def _when(found: Trigger) -> str:
    limit = f", at most {found.most} in {timedelta(milliseconds=found.per_ms)}" if found.most else ""
    if found.source == "event":
        return f"event {found.event}{limit}"
    shown = f"{found.path}/{found.pattern}" if found.source == "directory" else found.path
    return f"{found.source} {shown} on {found.host}{limit}"


def _what(found: Trigger) -> str:
    return f"signal {found.signal} to {found.task}" if found.signal else f"start {found.function}"


def _plain(id: str, found: Trigger) -> dict[str, Any]:
    names = ("source", "event", "path", "pattern", "host", "function", "task", "signal", "is_paused", "schema")
    return {"id": id, **{name: getattr(found, name) for name in names}}
