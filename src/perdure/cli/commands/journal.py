"""List the recorded calls of a durable function."""

from __future__ import annotations

import click

from perdure._ground.traceback_text import place_in
from perdure.cli.base import Invocation, Verb, id_argument
from perdure.cli.output import Cell, Table, line, words

_STYLES = {"done": "completed", "raised": "failed", "cut": "faint", "open": "paused", "damaged": "failed"}


@click.command(cls=Verb)
@id_argument()
@click.option("--last", type=click.IntRange(1), metavar="N", help="Only the last N calls (default: all).")
@click.pass_obj
async def command(call: Invocation, id: str, last: int | None) -> None:
    """List the recorded calls of a durable function, in the order in which its code got their results.

    `perdure fork --at` takes the number or the step of a call.
    """
    from perdure._durable import journal_of

    found = await journal_of(call.tasks, id)
    shown = found[-last:] if last is not None else found
    rows = [
        (
            str(one.position),
            Cell(one.step, "strong"),
            one.kind,
            Cell(one.state, _STYLES[one.state]),
            words.clock_time(one.at),
            f"{one.took.total_seconds():.3f} s",
            Cell(", ".join(filter(None, (one.error, place_in(one.traceback)))), "faint"),
        )
        for one in shown
    ]
    table = Table(("n", "step", "kind", "state", "at", "took", ""), rows)
    call.answer_items(shown, table if rows else line(f"{id} has no recorded calls yet"))
