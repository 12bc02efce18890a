"""Answer a task's question, or say whether an effect happened."""

from __future__ import annotations

from typing import Any

import click

from perdure._model import InboxItem
from perdure._tasks import Inbox, is_pause_id
from perdure.cli.base import Invocation, Verb, answer_decided, id_argument, json_option, json_or_text
from perdure.cli.output import words


@click.command(cls=Verb)
@id_argument()
@click.argument("answer")
@json_option("--value", help="With the answer done: the effect's result (default: null).")
@click.option(
    "--key",
    metavar="KEY",
    help="Answer for the effect with this key; `perdure effects` lists the keys (default: the open question).",
)
@click.option("--by", default="", metavar="NAME", help="Who answers (default: your user name).")
@click.pass_obj
async def command(call: Invocation, id: str, answer: str, value: Any, key: str | None, by: str) -> None:
    """Answer a task's question, or say whether an effect happened. The first answer counts; the task then resumes.

    ID is that of the task, or that of the question in `perdure inbox`. The ANSWER to a question is JSON, or else text.
    When the outcome of an effect is unknown, look for the effect's key at its target (the payment provider, the mail
    server …), then answer with one of:

    \b
    done     the effect happened; --value gives its result
    retry    the effect did not happen; perdure calls it again
    fail     the effect failed; the task's code gets the error
    perdure answer order-42 done --value '{"receipt": "ch_812"}'
    """
    if is_pause_id(id):
        await answer_decided(call, _answer(call.app.inbox, id, answer, value, by))
        return
    task = await call.tasks.handle(id)
    await task.answer(_given(answer, value), by=by, key=key)
    record = await task.record()
    call.answer(record, words.task_line(record))


async def _answer(inbox: Inbox, id: str, answer: str, value: Any, by: str) -> InboxItem:
    if (await inbox.get(id)).kind == "effect":
        return await inbox.settle(id, answer, value=value, by=by)  # type: ignore[arg-type]  # it says what it takes
    return await inbox.answer(id, json_or_text(answer), by=by)


def _given(answer: str, value: Any) -> Any:
    if value is not None:
        return {"choice": answer, "value": value}
    return answer if answer in ("done", "retry", "fail") else json_or_text(answer)
