"""Wait until a task has completed or has another status."""

from __future__ import annotations

from datetime import timedelta

import click

from perdure._model import STATUSES, Status
from perdure.cli.base import Invocation, Verb, id_argument, length
from perdure.cli.output import words


@click.command(cls=Verb)
@id_argument()
@click.option(
    "--status", type=click.Choice(STATUSES), default="completed", show_default=True, help="Wait for this status."
)
@click.option(
    "--timeout",
    type=length,
    metavar="30s",
    help="Stop waiting after this long (exit code 6); the task continues (default: no limit).",
)
@click.pass_obj
async def command(call: Invocation, id: str, status: Status, timeout: timedelta | None) -> None:
    """Wait until a task has completed or has another status, whichever process works on it.

    Exit code 1 when the task ends with another status, 6 when the timeout is over.
    """
    record = await call.tasks.wait_for(id, status=status, timeout=timeout)
    call.answer(record, words.task_line(record))
