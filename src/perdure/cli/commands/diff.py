"""Show what changed between two checkpoints."""

from __future__ import annotations

import click

from perdure._model import Change, spell_path
from perdure.cli.base import Invocation, Verb, id_argument
from perdure.cli.output import Cell, Line, line, words

_SIGNS = {"added": "+", "removed": "-", "changed": "~", "moved": ">"}


@click.command(cls=Verb)
@id_argument()
@click.argument("before")
@click.argument("after", default="now")
@click.option(
    "--limit", type=click.IntRange(1, 100_000), default=500, metavar="N", help="At most N changes (default: 500)."
)
@click.pass_obj
async def command(call: Invocation, id: str, before: str, after: str, limit: int) -> None:
    """Show what changed from checkpoint BEFORE to checkpoint AFTER.

    Each is a number, an id, which may be that of another task's checkpoint, or "now", which AFTER is if it is left out.
    """
    found = await call.app.checkpoints.diff(id, before, after, limit=limit)
    lines = [_line(change) for change in found.changes] or [line("no difference")]
    lines += [line(f"and {count:,} more under {spell_path(path) or '(all)'}") for path, count in found.left_off]
    call.answer_items(found.changes, *lines)


def _line(change: Change) -> Line:
    sides = {
        "added": words.short(change.after),
        "removed": words.short(change.before),
        "changed": f"{words.short(change.before)} → {words.short(change.after)}",
        "moved": f"from {spell_path(change.moved_from or ())}: {words.short(change.after)}",
    }
    return line(Cell(f"{_SIGNS[change.kind]} {change.place or '(all)'}", change.kind), ": ", sides[change.kind])
