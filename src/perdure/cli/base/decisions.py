"""The answer of a command after a decision about one pause."""

from __future__ import annotations

from collections.abc import Awaitable

from perdure._model import InboxItem
from perdure.cli.base.invocation import Invocation
from perdure.cli.output import words


async def answer_decided(call: Invocation, decided: Awaitable[InboxItem]) -> None:
    """Wait for the decision, then show the task as it stands."""
    task = await call.tasks.handle_by_uid((await decided).uid)
    record = await task.record()
    call.answer(record, words.task_line(record))
