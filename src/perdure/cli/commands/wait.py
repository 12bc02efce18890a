"""Wait until a task has completed, or has another status."""

from __future__ import annotations

from datetime import timedelta

import click

from perdure._model import STATUSES, Status
from perdure.cli.base import Invocation, Verb, id_argument, length
from perdure.cli.output import words


@click.command(cls=Verb)
@id_argument()
@click.option("--status", type=click.Choice(STATUSES), default="completed", show_default=True, help="Wait for this.")
@click.option("--timeout", type=length, metavar="30s", help="Give up after so long (exit 6); the task goes on.")
@click.pass_obj
async def command(call: Invocation, id: str, status: Status, timeout: timedelta | None) -> None:
    """Wait until a task has completed, or has another status, whichever process works on it.

    Exit 1 when it has ended otherwise, 6 when the time is over.
    """
    record = await call.tasks.wait_for(id, status=status, timeout=timeout)
    call.answer(record, words.task_line(record))
