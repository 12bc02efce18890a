"""List a task's checkpoints, or show the state of one."""

from __future__ import annotations

import click

from perdure._model import seq_of
from perdure.cli.base import Invocation, Verb, id_argument
from perdure.cli.commands.show import checkpoints_table
from perdure.cli.output import Block, Fields, line, words
from perdure.errors import NotFound


@click.command(cls=Verb)
@id_argument()
@click.argument("checkpoint", required=False)
@click.pass_obj
async def command(call: Invocation, id: str, checkpoint: str | None) -> None:
    """List a task's checkpoints, oldest first. With CHECKPOINT (a number or an id), show the state of that one."""
    task = await call.tasks.handle(id)
    found = [one async for one in task.checkpoints()]
    if checkpoint is None:
        block: Block = checkpoints_table(found) if found else line(f"{id} has no checkpoints yet")
        call.answer_items(found, block)
        return
    wanted = seq_of(task.uid, checkpoint)
    one = next((one for one in found if one.seq == wanted), None)
    if one is None:
        raise NotFound("checkpoint", checkpoint, call.place, do=f"`perdure checkpoints {id}` lists them")
    call.answer(one, checkpoints_table([one]), Fields([("state", words.whole(one.data, None))]))
