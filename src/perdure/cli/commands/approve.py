"""Say yes to what a task asks for."""

from __future__ import annotations

from typing import Any

import click

from perdure.cli.base import Invocation, Verb, id_argument, json_option
from perdure.cli.output import words


@click.command(cls=Verb)
@id_argument()
@click.option("--comment", default="", help="Why; the task's code gets it.")
@json_option("--edited", help="What you made of what may be edited.")
@click.option("--by", default="", help="Who decides; you, if nothing else is said.")
@click.pass_obj
async def command(call: Invocation, id: str, comment: str, edited: Any, by: str) -> None:
    """Approve what a task asks for. The first decision stands, and the task goes on.

    \b
    perdure approve deploy --comment "after the demo"
    """
    task = await call.tasks.handle(id)
    await task.approve(by=by or call.store.presence.user, comment=comment, edited=edited)
    record = await task.record()
    call.answer(record, words.task_line(record))
