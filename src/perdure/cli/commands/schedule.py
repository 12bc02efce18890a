"""Start durable functions by the clock."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from perdure._ground.durations import shown_length
from perdure._model import MISSED, Missed
from perdure.cli.base import Invocation, VerbGroup, json_or_text, length, load_function
from perdure.cli.output import Cell, Fields, Table, line, words
from perdure.errors import NotFound

if TYPE_CHECKING:
    from perdure._durable import Schedule


@click.group(cls=VerbGroup)
def command() -> None:
    """Start durable functions by the clock.

    Workers (`perdure worker`) start the runs. Each tick starts one run, however many workers there are.
    """


@command.command("list")
@click.pass_obj
async def list_(call: Invocation) -> None:
    """List the schedules, each with its next run."""
    found = await call.app.schedules.list()
    rows = [
        (
            Cell(one.id, "strong"),
            _when(one),
            Cell("paused", "paused") if one.is_paused else _moment(call, one),
            f"{one.runs:,}",
            one.function,
        )
        for one in found
    ]
    table = Table(("id", "when", "next", "runs", "function"), rows) if rows else line(f"no schedules in {call.place}")
    call.answer_items(found, table)


@command.command("show")
@click.argument("id", metavar="ID")
@click.pass_obj
async def show(call: Invocation, id: str) -> None:
    """Show a schedule: its times, its runs, and the state that its last run left for the next."""
    found = await call.app.schedules.get(id)
    if found is None:
        raise NotFound("schedule", id, call.place, do="`perdure schedule list` lists all schedules")
    call.answer(found, _line(call, found), Fields(_about(call, found)))


@command.command("add")
@click.argument("id", metavar="ID")
@click.argument("function", metavar="MODULE:FUNCTION")
@click.argument("arguments", metavar="[JSON]…", nargs=-1)
@click.option(
    "--cron", metavar="EXPRESSION", help='When to run: minute, hour, day, month, weekday, such as "0 9 * * 1-5".'
)
@click.option("--tz", default="UTC", show_default=True, metavar="ZONE", help="The time zone of --cron.")
@click.option("--every", type=length, metavar="10m", help="Run this often, counted from now.")
@click.option(
    "--missed",
    type=click.Choice(MISSED),
    default="once",
    show_default=True,
    help="How many runs make up for ticks that passed without a worker.",
)
@click.option("--overlap", is_flag=True, help="Start a run even if the one before has not ended.")
@click.pass_obj
async def add(
    call: Invocation,
    id: str,
    function: str,
    arguments: tuple[str, ...],
    cron: str | None,
    tz: str,
    every: timedelta | None,
    missed: Missed,
    overlap: bool,
) -> None:
    """Add a schedule that starts a durable function, or change the schedule ID.

    The function is imported from the current folder, as python would. Each argument is JSON, or else text.
    """
    if (cron is None) == (every is None):
        raise click.UsageError("give either --cron or --every")
    draft = call.app.schedule(id, load_function(function), *map(json_or_text, arguments))
    if cron is not None:
        made = await draft.cron(cron, tz=tz, missed=missed, overlap=overlap)
    else:
        assert every is not None
        made = await draft.every(every, missed=missed, overlap=overlap)
    call.answer(made, _line(call, made))


@command.command("pause")
@click.argument("id", metavar="ID")
@click.pass_obj
async def pause(call: Invocation, id: str) -> None:
    """Pause a schedule. Running tasks continue."""
    made = await call.app.schedules.pause(id)
    call.answer(made, _line(call, made))


@command.command("resume")
@click.argument("id", metavar="ID")
@click.pass_obj
async def resume(call: Invocation, id: str) -> None:
    """Resume a schedule with its next tick. Ticks that passed during the pause are not made up for."""
    made = await call.app.schedules.resume(id)
    call.answer(made, _line(call, made))


@command.command("remove")
@click.argument("id", metavar="ID")
@click.pass_obj
async def remove(call: Invocation, id: str) -> None:
    """Remove a schedule. The tasks it started stay."""
    await call.app.schedules.remove(id)
    call.answer({"id": id, "removed": True}, line(Cell(id, "strong"), ": removed"))


def _when(found: Schedule) -> str:
    if found.every is not None:
        return f"every {shown_length(found.every)}"
    return f"{found.cron} {found.tz}"


def _moment(call: Invocation, found: Schedule) -> str:
    return words.moment(found.next_at, call.now) if found.next_at is not None else "never"


def _line(call: Invocation, found: Schedule) -> Any:
    said = "paused" if found.is_paused else f"next {_moment(call, found)}"
    return line(Cell(found.id, "strong"), f": {_when(found)} · {said}")


def _about(call: Invocation, found: Schedule) -> list[tuple[str, list[Any]]]:
    pairs: list[tuple[str, list[Any]]] = [
        ("function", [found.function]),
        ("runs", [f"{found.runs:,}, {found.skipped:,} ticks skipped"]),
        ("missed", [found.missed]),
    ]
    if found.open:
        pairs.append(("running", list(found.open)))
    if found.last_at is not None:
        pairs.append(("last", [words.moment(found.last_at, call.now)]))
    return [*pairs, ("state", list(words.whole(found.state, None)))]
