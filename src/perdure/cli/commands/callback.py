"""Answer a task by a token, as another system does."""

from __future__ import annotations

import sys
from typing import Any

import click

from perdure.cli.base import Invocation, Verb, json_option
from perdure.cli.output import line


@click.command(cls=Verb)
@click.argument("token")
@json_option("--value", help="What the other system says.")
@click.option("--by", default="", help="Who says so.")
@click.option("--new", is_flag=True, help="TOKEN is a task's id: make a token for it, shown once.")
@click.pass_obj
async def command(call: Invocation, token: str, value: Any, by: str, new: bool) -> None:
    """Bring what another system answers, by the TOKEN it was given. The first answer counts; a second one changes
    nothing, and is no error. A TOKEN of `-` is read from standard input, so that it stands in no list of processes.

    \b
    perdure callback --new deploy             # then: perdure pause deploy … --set callback=prd-cb-…
    perdure callback prd-cb-… --value '{"state": "green"}'
    """
    if new:
        made = await (await call.tasks.handle(token)).callback_token()
        call.answer({"token": made}, line(made))
        return
    if token == "-":
        token = sys.stdin.readline().strip()
    counted = await call.tasks.deliver(token, value, by=by)
    said = "it counts" if counted else "nothing has changed: an answer had come before, or the task has ended"
    call.answer({"counted": counted}, line(said))
