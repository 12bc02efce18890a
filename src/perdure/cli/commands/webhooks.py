"""Make, list, test, rotate, enable and remove webhooks, and see what was sent."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from perdure.cli.base import Invocation, VerbGroup, length
from perdure.cli.output import Cell, Table, line, safe

if TYPE_CHECKING:
    from perdure.automation import Delivery, MadeWebhook, Webhook


@click.group(cls=VerbGroup)
def command() -> None:
    """Have the events of tasks sent to an address, signed as Standard Webhooks 1.0.

    Servers and workers send the messages: each at least once, with retries over a day and a half.
    """


@command.command("make")
@click.argument("url")
@click.option(
    "--event", "events", multiple=True, metavar="NAME", help="Such as task.paused; repeatable (default: all)."
)
@click.option("--reason", "reasons", multiple=True, metavar="REASON", help="Only pauses for this reason; repeatable.")
@click.option("--function", "functions", multiple=True, metavar="NAME", help="Only tasks of this function; repeatable.")
@click.option("--agent", "agents", multiple=True, metavar="NAME", help="Only tasks of this agent; repeatable.")
@click.option("--tag", "tags", multiple=True, metavar="KEY=VALUE", help="Only tasks with this tag; repeatable.")
@click.option("--data", is_flag=True, help="Also send what agents wrote: questions, errors, data of events.")
@click.option("--description", default="", metavar="TEXT", help="What the receiver is for.")
@click.pass_obj
async def make(call: Invocation, /, url: str, events: tuple[str, ...], tags: tuple[str, ...], **how: Any) -> None:
    """Make a webhook and print its secret, once. The receiver verifies messages with it."""
    call.require_store()
    pairs = dict(_pair(tag) for tag in tags)
    made = await call.app.webhooks.make(url, events=events or ("*",), tags=pairs, **how)
    _show_secret(call, made)


@command.command("list")
@click.pass_obj
async def list_(call: Invocation) -> None:
    """List the webhooks of the namespace, without their secrets."""
    found = await call.app.webhooks.list()
    rows = [(Cell(one.id, "strong"), safe(one.url), " ".join(one.events), _state(one)) for one in found]
    table = Table(("webhook", "address", "events", ""), rows) if rows else line("there is no webhook in this namespace")
    call.answer_items(list(found), table)


@command.command("deliveries")
@click.argument("id")
@click.option("--state", type=click.Choice(["due", "delivered", "failed"]), help="Only messages in this state.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="How many messages.")
@click.pass_obj
async def deliveries(call: Invocation, id: str, state: Any, limit: int) -> None:
    """List the messages of a webhook, the newest first. perdure keeps them for 7 days."""
    found = await call.app.webhooks.deliveries(id, state=state, limit=limit)
    rows = [(Cell(one.id, "strong"), one.event, one.state, str(one.tries), _answer(one)) for one in found]
    header = ("message", "event", "state", "tries", "answer")
    call.answer_items(list(found), Table(header, rows) if rows else line("there are no messages"))


@command.command("replay")
@click.argument("id")
@click.argument("message")
@click.pass_obj
async def replay(call: Invocation, id: str, message: str) -> None:
    """Send the body of a message once more, under a new id."""
    again = await call.app.webhooks.replay(id, message)
    call.answer(again, line(f"queued as {again.id}"))


@command.command("test")
@click.argument("id")
@click.pass_obj
async def test(call: Invocation, id: str) -> None:
    """Queue a ping. `perdure webhooks deliveries` shows what became of it."""
    ping = await call.app.webhooks.test(id)
    call.answer(ping, line(f"queued as {ping.id}"))


@command.command("rotate")
@click.argument("id")
@click.option(
    "--overlap",
    type=length,
    default="24h",
    show_default=True,
    metavar="24h",
    help="How long messages are signed with the old secret too.",
)
@click.pass_obj
async def rotate(call: Invocation, id: str, overlap: timedelta) -> None:
    """Give a webhook a new secret and print it, once."""
    _show_secret(call, await call.app.webhooks.rotate(id, overlap))


@command.command("enable")
@click.argument("id")
@click.pass_obj
async def enable(call: Invocation, id: str) -> None:
    """Send to a disabled webhook again. Messages that wait are sent first."""
    call.answer(await call.app.webhooks.enable(id), line(f"webhook {id} is enabled"))


@command.command("disable")
@click.argument("id")
@click.pass_obj
async def disable(call: Invocation, id: str) -> None:
    """Send nothing more to a webhook until it is enabled."""
    call.answer(await call.app.webhooks.disable(id), line(f"webhook {id} is disabled"))


@command.command("remove")
@click.argument("id")
@click.pass_obj
async def remove(call: Invocation, id: str) -> None:
    """Remove a webhook and its messages."""
    await call.app.webhooks.remove(id)
    call.answer({"id": id, "removed": True}, line(f"webhook {id} is removed"))


def _show_secret(call: Invocation, made: MadeWebhook) -> None:
    told = {"id": made.webhook.id, "url": made.webhook.url, "events": made.webhook.events, "secret": made.secret}
    call.answer(told, line(f"{made.webhook.id}  {made.secret}"))
    call.note("perdure does not show this secret again; the receiver verifies messages with it")


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise click.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--tag")
    return key, value


def _state(one: Webhook) -> Cell:
    if not one.enabled:
        return Cell(f"disabled: {safe(one.disabled_why)}", "failed")
    if one.failing_since is not None:
        return Cell(f"failing since {one.failing_since:%Y-%m-%d %H:%M}", "failed")
    return Cell("", "faint")


def _answer(one: Delivery) -> str:
    return safe(one.trouble) if one.trouble else "" if one.status is None else str(one.status)
