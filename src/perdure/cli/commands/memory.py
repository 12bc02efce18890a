"""Show what a model is told about a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from perdure.cli.base import Invocation, Verb
from perdure.cli.output import line

if TYPE_CHECKING:
    from perdure.memory import Memory


@click.command(cls=Verb)
@click.argument("id")
@click.option(
    "--budget",
    type=click.IntRange(1),
    default=4000,
    show_default=True,
    metavar="TOKENS",
    help="Show at most this many tokens.",
)
@click.pass_obj
def command(call: Invocation, id: str, budget: int) -> None:
    """Show what a model is told about a task: its state, its plan, and what is open.

    It shows the layers that perdure provides, as they are stored. It does not know layers of your own. It changes
    nothing.
    """
    if call.server is not None:
        from perdure._ground.bridge import drive
        from perdure.client import address_of

        told = drive(call.server.get(f"{address_of(id)}/memory", budget=budget)).value
        _show(call, told["items"], told["notes"], [block["text"] for block in told["items"]])
        return
    from perdure._ground.bridge import on_a_loop
    from perdure.errors import NotFound
    from perdure.memory import AppStorage, ContinuityLayer, DurableTaskState, PlanLayer, owner_prefix

    async def look() -> tuple[list[Any], list[str]]:
        memory: Memory
        kept = await AppStorage(call.store).list(owner_prefix("execution", id))
        if not kept and await call.tasks.get(id) is None:
            raise NotFound("task", id, call.place)
        async with call.app.memory(id, [ContinuityLayer(), DurableTaskState(), PlanLayer()]) as memory:
            blocks = list(await memory.prompt_blocks(budget=budget))
            return blocks, [f"{note.layer}: {note.what}" for note in memory.notes]

    blocks, notes = on_a_loop(look())
    _show(call, blocks, notes, [block.text for block in blocks])


def _show(call: Invocation, blocks: list[Any], notes: list[str], texts: list[str]) -> None:
    for note in notes:
        call.note(note)
    call.answer({"items": blocks, "notes": notes}, *(line(text) for one in texts for text in one.split("\n")))
