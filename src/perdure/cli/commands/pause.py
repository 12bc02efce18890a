"""Pause a task; it holds no process until it is resumed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from perdure._ground.durations import parse_duration
from perdure._model import REASONS, Reason
from perdure.cli.base import Invocation, Verb, id_argument, json_option, pairs_option, patch_of
from perdure.cli.output import words

# Fields of a pause that are text even when they look like a number, and those that may be typed as `2d`.
_TEXTS = {"question", "system", "job", "url", "file", "task", "provider", "callback"}
_TIMES = {"expires", "remind", "every", "until", "duration", "retry_after", "reset_at", "max_wait"}
# What the command has an option or an argument for.
_TAKEN = {"message", "reason", "checkpoint"}


@click.command(cls=Verb)
@id_argument()
@click.argument("message", default="")
@click.option(
    "--reason", type=click.Choice(REASONS), default="human_input", show_default=True, help="The kind of pause."
)
@click.option("--now", is_flag=True, help="Interrupt the running call (default: pause at the next safe point).")
@pairs_option(
    "--set", "fields", help="A field of the pause, such as expires=2d or job=812; repeatable (default: none)."
)
@json_option("--state", help="Store this state as a checkpoint in the same write (default: none).")
@click.pass_obj
async def command(
    call: Invocation,
    id: str,
    message: str,
    reason: Reason,
    now: bool,
    fields: tuple[tuple[str, str], ...],
    state: Any,
) -> None:
    """Pause a task; MESSAGE says what it waits for. It holds no process until it is resumed.

    A running durable function stops at its next safe point, also in another process. With --now it stops at once: an
    interrupted step runs again after the resume; the outcome of an interrupted effect is settled first.

    \b
    perdure pause deploy                    # until a person resumes it
    perdure pause deploy "Ship to production?" --reason human_approval --set expires=2d --set default=reject
    perdure pause deploy "CI is running" --reason external_dependency --set system=ci --set job=812
    perdure pause deploy "until the night" --reason scheduled_wait --set duration=8h
    """
    task = await call.tasks.handle(id)
    payload = {**payload_of(fields), **({"now": True} if now else {})}
    said = message or f"paused by {call.user}".removesuffix(" by ")
    await task.pause(said, reason=reason, checkpoint=state, **payload)
    record = await task.record()
    call.answer(record, words.task_line(record))


def payload_of(fields: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The fields given by --set, in the form that the pause takes."""
    payload = patch_of(fields)
    for key, text in fields:
        if key in _TAKEN or not key.isidentifier():
            raise click.BadParameter(f"a pause has no field {key!r}", param_hint="--set")
        if key in _TEXTS or (key in _TIMES and parse_duration(text) is not None):
            payload[key] = text
    return payload
