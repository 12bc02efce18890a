"""Show what changed between two checkpoints."""

from __future__ import annotations

import click

from perdure._model import Change
from perdure.cli.base import Invocation, Verb, id_argument
from perdure.cli.output import Cell, Line, line, words

_SIGNS = {"added": "+", "removed": "-", "changed": "~"}


@click.command(cls=Verb)
@id_argument()
@click.argument("before")
@click.argument("after")
@click.pass_obj
async def command(call: Invocation, id: str, before: str, after: str) -> None:
    """Show what changed from checkpoint BEFORE to checkpoint AFTER (each a number or an id)."""
    task = await call.tasks.handle(id)
    changes = await task.diff(before, after)
    lines = [_line(change) for change in changes] or [line("no difference")]
    call.answer_items(changes, *lines)


def _line(change: Change) -> Line:
    sides = {
        "added": words.short(change.after),
        "removed": words.short(change.before),
        "changed": f"{words.short(change.before)} → {words.short(change.after)}",
    }
    return line(Cell(f"{_SIGNS[change.kind]} {change.path or '(all)'}", change.kind), ": ", sides[change.kind])
