"""Deliver the answer of another system to a task."""

from __future__ import annotations

import sys
from typing import Any

import click

from perdure.cli.base import Invocation, Verb, json_option
from perdure.cli.output import line


@click.command(cls=Verb)
@click.argument("token")
@json_option("--value", help="The answer of the other system (default: null).")
@click.option("--by", default="", metavar="NAME", help="The name of the other system (default: none).")
@click.option("--new", is_flag=True, help="Take TOKEN as a task's id, create a token for that task and print it once.")
@click.pass_obj
async def command(call: Invocation, token: str, value: Any, by: str, new: bool) -> None:
    """Deliver the answer of another system to the task that TOKEN belongs to.

    The first answer counts. A second one changes nothing and is not an error. With a TOKEN of `-` the token is read
    from standard input, so that no process list shows it.

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
    said = "delivered" if counted else "nothing changed: the task was answered before, or has ended"
    call.answer({"counted": counted}, line(said))
