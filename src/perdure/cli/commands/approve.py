"""Approve what a task asks for."""

from __future__ import annotations

from typing import Any

import click

from perdure._tasks import is_pause_id
from perdure.cli.base import Invocation, Verb, answer_decided, id_argument, json_option
from perdure.cli.output import words


@click.command(cls=Verb)
@id_argument()
@click.option("--comment", default="", metavar="TEXT", help="Your reason, given to the task's code (default: none).")
@json_option("--edited", help="Your edited version of what the task offered for editing (default: unchanged).")
@click.option("--by", default="", metavar="NAME", help="Who decides (default: your user name).")
@click.pass_obj
async def command(call: Invocation, id: str, comment: str, edited: Any, by: str) -> None:
    """Approve what a task asks for. The first decision counts; the task then resumes.

    ID is that of the task, or that of the question in `perdure inbox`.

    \b
    perdure approve deploy --comment "after the demo"
    """
    if is_pause_id(id):
        await answer_decided(call, call.app.inbox.approve(id, by=by, comment=comment, edited=edited))
        return
    task = await call.tasks.handle(id)
    await task.approve(by=by or call.user, comment=comment, edited=edited)
    record = await task.record()
    call.answer(record, words.task_line(record))
