"""Answer what a task waits for: a question, or whether an effect happened."""

from __future__ import annotations

from typing import Any

import click

from perdure.cli.base import Invocation, Verb, id_argument, json_option, json_or_text
from perdure.cli.output import words


@click.command(cls=Verb)
@id_argument()
@click.argument("answer")
@json_option("--value", help="With done: what the effect's result was.")
@click.option("--key", help="Which of several: the effect's key, as `perdure effects` shows it.")
@click.option("--by", default="", help="Who says so; you, if nothing else is said.")
@click.pass_obj
async def command(call: Invocation, id: str, answer: str, value: Any, key: str | None, by: str) -> None:
    """Answer what a task waits for. The first answer stands, and the task goes on.

    To a question the ANSWER is JSON, or text. Of an effect whose outcome nobody knows, it says what you found at
    the target, where the effect is known by its key:

    \b
    done     it happened; --value gives its result
    retry    it did not happen; have it done
    fail     the task is told that it failed
    perdure answer order-42 done --value '{"receipt": "ch_812"}'
    """
    task = await call.tasks.handle(id)
    await task.answer(_given(answer, value), by=by, key=key)
    record = await task.record()
    call.answer(record, words.task_line(record))


def _given(answer: str, value: Any) -> Any:
    if value is not None:
        return {"choice": answer, "value": value}
    return answer if answer in ("done", "retry", "fail") else json_or_text(answer)
