"""Show what a task was thinking about when it was interrupted."""

from __future__ import annotations

import click

from perdure.cli.base import Invocation, Verb, id_argument
from perdure.cli.output import Block, Cell, Fields, Table, line, words


@click.command(cls=Verb)
@id_argument()
@click.option("--drop", metavar="NAME", help="Drop the frame with this name.")
@click.option(
    "--why",
    default="dropped by hand",
    show_default=True,
    metavar="TEXT",
    help="With --drop: the reason, stored with the task.",
)
@click.pass_obj
async def command(call: Invocation, id: str, drop: str | None, why: str) -> None:
    """Show what a task was thinking about when it was interrupted: how far it got, and what comes next."""
    task = await call.tasks.handle(id)
    if drop is not None:
        await task.frames.drop(drop, why=why)
    found, gone = await task.frames.open(), await task.frames.gone()
    blocks: list[Block] = [] if found else [line("no frames")]
    for frame in found:
        state = "resumed" if frame.resumed_at else "interrupted"
        pairs = [("goal", [frame.goal]), (state, [words.moment(frame.resumed_at or frame.pushed_at, call.now)])]
        pairs += [("because", [frame.because])] if frame.because else []
        pairs += [("expires", [words.moment(frame.expires_at, call.now)])] if frame.expires_at else []
        blocks += [line(Cell(frame.announcement, "strong")), Fields(pairs)]
    if gone:
        rows = [(one.name, f"{one.step}/{one.steps}", words.age(one.at, call.now), one.why) for one in gone]
        blocks.append(Table(("name", "step", "when", "why"), rows, title="gone"))
    call.answer({"frames": list(found), "gone": list(gone)}, *blocks)
