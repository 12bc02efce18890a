"""Reject what a task asks for."""

from __future__ import annotations

import click

from perdure._tasks import is_pause_id
from perdure.cli.base import Invocation, Verb, answer_decided, id_argument
from perdure.cli.output import words


@click.command(cls=Verb)
@id_argument()
@click.option("--comment", default="", metavar="TEXT", help="Your reason, given to the task's code (default: none).")
@click.option("--by", default="", metavar="NAME", help="Who decides (default: your user name).")
@click.pass_obj
async def command(call: Invocation, id: str, comment: str, by: str) -> None:
    """Reject what a task asks for. The first decision counts. The task's code gets `Rejected` and continues or fails.

    ID is that of the task, or that of the question in `perdure inbox`.

    \b
    perdure reject deploy --comment "not on a Friday"
    """
    if is_pause_id(id):
        await answer_decided(call, call.app.inbox.reject(id, by=by, comment=comment))
        return
    task = await call.tasks.handle(id)
    await task.reject(by=by or call.user, comment=comment)
    record = await task.record()
    call.answer(record, words.task_line(record))
