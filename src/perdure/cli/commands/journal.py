"""List the recorded calls of a durable function."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from perdure._ground.traceback_text import place_in
from perdure.cli.base import Invocation, Verb, id_argument
from perdure.cli.output import Cell, Table, line, words

if TYPE_CHECKING:
    from perdure.types import JournalCall

_STYLES = {
    "done": "completed",
    "raised": "failed",
    "cut": "faint",
    "open": "paused",
    "uncertain": "failed",
    "pausing": "paused",
    "damaged": "failed",
}


@click.command(cls=Verb)
@id_argument()
@click.option("--line", "which", type=click.IntRange(1), metavar="N", help="The Nth line (default: the present one).")
@click.option("--after", type=click.IntRange(0), default=0, metavar="N", help="Only calls after entry N (default: 0).")
@click.option("--last", type=click.IntRange(1), metavar="N", help="Only the last N calls (default: all).")
@click.pass_obj
async def command(call: Invocation, id: str, which: int | None, after: int, last: int | None) -> None:
    """List the recorded calls of a durable function, in the order in which its code got their results.

    `perdure fork --at` takes the number or the step of a call. A rollback begins a new line of the journal, and so does
    carry_over; --line shows an earlier one.
    """
    found: list[JournalCall] = []
    cursor: str | None = str(after)
    while cursor is not None:
        page = await call.app.journal.page(id, which, after=int(cursor), limit=1000)
        found, cursor = [*found, *page.items], page.cursor
    shown = found[-last:] if last is not None else found
    rows = [
        (
            str(one.position) if one.position else "",
            Cell(one.path, "strong"),
            one.op,
            Cell(one.state, _STYLES[one.state]),
            words.clock_time(one.at),
            f"{one.took.total_seconds():.3f} s",
            words.short(one.call, 60),
            Cell(words.short(_outcome(one)), "faint"),
        )
        for one in shown
    ]
    table = Table(("n", "step", "kind", "state", "at", "took", "call", ""), rows)
    call.answer_items(shown, table if rows else line(f"{id} has no recorded calls yet"))


def _outcome(one: JournalCall) -> str:
    """The result of a call, or its failure and the place."""
    if one.error is None:
        return one.returned
    failed = ": ".join(filter(None, (one.error.type, one.error.message)))
    return ", ".join(filter(None, (failed, place_in(one.error.traceback))))
