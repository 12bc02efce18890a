"""List a task's checkpoints, or show the state of one."""

from __future__ import annotations

import click

from perdure._model import CheckpointInfo, seq_of
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
    if checkpoint is None:
        listed: list[CheckpointInfo] = []
        cursor: str | None = "0"
        while cursor is not None:
            page = await call.app.checkpoints.page(task, after=int(cursor), limit=1000)
            listed, cursor = [*listed, *page.items], page.cursor
        block: Block = checkpoints_table(listed) if listed else line(f"{id} has no checkpoints yet")
        call.answer_items(listed, block)
        return
    wanted = seq_of(task.uid, checkpoint)
    found = [one async for one in task.checkpoints() if one.seq == wanted]
    if not found:
        raise NotFound("checkpoint", checkpoint, call.place, do=f"`perdure checkpoints {id}` lists them")
    call.answer(found[0], checkpoints_table(found), Fields([("state", words.whole(found[0].data, None))]))
