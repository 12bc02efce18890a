"""See what a task was thinking about when it was interrupted, and drop what is not wanted."""

from __future__ import annotations

import click

from perdure.cli.base import Invocation, Verb, id_argument
from perdure.cli.output import Block, Cell, Fields, Table, line, words


@click.command(cls=Verb)
@id_argument()
@click.option("--drop", metavar="NAME", help="Give up the frame of this name.")
@click.option("--why", default="dropped by hand", help="With --drop: the reason that is kept.")
@click.pass_obj
async def command(call: Invocation, id: str, drop: str | None, why: str) -> None:
    """See what a task was thinking about when it was interrupted: what is done of it, and what comes next."""
    task = await call.tasks.handle(id)
    if drop is not None:
        await task.frames.drop(drop, why=why)
    found, gone = await task.frames.open(), await task.frames.gone()
    blocks: list[Block] = [] if found else [line("nothing is set aside")]
    for frame in found:
        state = "taken up again" if frame.resumed_at else "set aside"
        pairs = [("goal", [frame.goal]), (state, [words.moment(frame.resumed_at or frame.pushed_at, call.now)])]
        pairs += [("because", [frame.because])] if frame.because else []
        pairs += [("expires", [words.moment(frame.expires_at, call.now)])] if frame.expires_at else []
        blocks += [line(Cell(frame.announcement, "strong")), Fields(pairs)]
    if gone:
        rows = [(one.name, f"{one.step}/{one.steps}", words.age(one.at, call.now), one.why) for one in gone]
        blocks.append(Table(("name", "step", "when", "why"), rows, title="gone"))
    call.answer({"frames": list(found), "gone": list(gone)}, *blocks)
