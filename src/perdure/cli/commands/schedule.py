"""Start durable functions again and again: list, add, pause, remove."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from perdure._model import MISSED, Missed
from perdure.cli.base import Invocation, VerbGroup, json_or_text, length, load_function
from perdure.cli.output import Cell, Fields, Table, line, words
from perdure.errors import NotFound

if TYPE_CHECKING:
    from perdure._durable import Schedule


@click.group(cls=VerbGroup)
def command() -> None:
    """Start durable functions again and again: list, add, pause, remove.

    Workers start the runs (`perdure worker`); each tick once, however many there are.
    """


@command.command("list")
@click.pass_obj
async def list_(call: Invocation) -> None:
    """List the schedules, with when each comes round next."""
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
    """Show a schedule: when, how far it has come, what its last run has left to the next."""
    found = await call.app.schedules.get(id)
    if found is None:
        raise NotFound("schedule", id, call.place, do="`perdure schedule list` shows what is there")
    call.answer(found, _line(call, found), Fields(_about(call, found)))


@command.command("add")
@click.argument("id", metavar="ID")
@click.argument("function", metavar="MODULE:FUNCTION")
@click.argument("arguments", metavar="[JSON]…", nargs=-1)
@click.option("--cron", metavar="EXPRESSION", help='Minute, hour, day, month, weekday: "0 9 * * 1-5".')
@click.option("--tz", default="UTC", show_default=True, help="The time zone of --cron.")
@click.option("--every", type=length, metavar="10m", help="So far apart, counted from now.")
@click.option("--missed", type=click.Choice(MISSED), default="once", show_default=True, help="Ticks without a worker.")
@click.option("--overlap", is_flag=True, help="Runs need not wait for the one before.")
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
    """Start a durable function by the clock; said again, it changes the schedule.

    The function is imported from here, as python would; arguments are JSON, or text where they are not.
    """
    if (cron is None) == (every is None):
        raise click.UsageError("say when: either --cron or --every")
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
    """Start nothing until it is resumed; runs under way go on."""
    made = await call.app.schedules.pause(id)
    call.answer(made, _line(call, made))


@command.command("resume")
@click.argument("id", metavar="ID")
@click.pass_obj
async def resume(call: Invocation, id: str) -> None:
    """Go on with the next tick; those while it was paused are not made up for."""
    made = await call.app.schedules.resume(id)
    call.answer(made, _line(call, made))


@command.command("remove")
@click.argument("id", metavar="ID")
@click.pass_obj
async def remove(call: Invocation, id: str) -> None:
    """Start nothing any more; the tasks it has started stay."""
    await call.app.schedules.remove(id)
    call.answer({"id": id, "removed": True}, line(Cell(id, "strong"), ": removed"))


def _when(found: Schedule) -> str:
    if found.every is not None:
        return f"every {words.length(found.every)}"
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
        pairs.append(("under way", list(found.open)))
    if found.last_at is not None:
        pairs.append(("last", [words.moment(found.last_at, call.now)]))
    return [*pairs, ("state", list(words.whole(found.state, None)))]
