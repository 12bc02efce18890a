"""Say no to what a task asks for."""

from __future__ import annotations

import click

from perdure.cli.base import Invocation, Verb, id_argument
from perdure.cli.output import words


@click.command(cls=Verb)
@id_argument()
@click.option("--comment", default="", help="Why; the task's code gets it.")
@click.option("--by", default="", help="Who decides; you, if nothing else is said.")
@click.pass_obj
async def command(call: Invocation, id: str, comment: str, by: str) -> None:
    """Reject what a task asks for. The first decision stands, and the task goes on, or fails, as its code says.

    \b
    perdure reject deploy --comment "not on a Friday"
    """
    task = await call.tasks.handle(id)
    await task.reject(by=by or call.store.presence.user, comment=comment)
    record = await task.record()
    call.answer(record, words.task_line(record))
