"""What was a task in the middle of? Its last step, what is under way, what it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from perdure.cli.drawing import Fields
from perdure.cli.inputs import id_argument
from perdure.cli.invocation import Invocation
from perdure.cli.verbs import Verb

if TYPE_CHECKING:
    from perdure._durable import Where


@click.command(cls=Verb)
@id_argument()
@click.pass_obj
async def command(call: Invocation, id: str) -> None:
    """What was a task in the middle of? Its last step, what is under way, what it waits for, what comes next."""
    from perdure._durable import where

    found = await where(call.tasks, id)
    call.answer(found, Fields([(name, [text]) for name, text in _lines(found) if text]))


def _lines(found: Where) -> list[tuple[str, str]]:
    under_way = [f"{frame.scope} {frame.name}: {frame.state}, {frame.note}".strip() for frame in found.frames]
    return [
        ("status", found.status),
        ("function", found.function or "none: a task with checkpoints"),
        ("done", f"{found.done} calls; the last was {found.last}" if found.done else "nothing recorded"),
        ("progress", f"{found.operation} {found.percent:g} %" if found.percent is not None else ""),
        *(("under way", text) for text in under_way),
        *(("waits for", text) for text in found.waits_for),
        ("worked on by", found.holder or "nobody"),
        ("next", found.next),
    ]
