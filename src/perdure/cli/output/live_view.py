"""Show a task while it changes: `--watch`, `--follow`.

On a terminal the screen is redrawn. Elsewhere, and with --json, each change is printed once, one document per line.
Watching takes no lease, so any number of people can watch a task while one process works on it.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from perdure._ground.bridge import Nap
from perdure._ground.encoding import json_values as values
from perdure.cli.base import Invocation
from perdure.cli.output import blocks as parts
from perdure.cli.output import drawing

# The time between two reads of the store.
LOOK_SECONDS = 0.25
_HOME = "\x1b[H\x1b[2J"
_BAR = 20

View = tuple[Any, Sequence[parts.Block]]


async def watch(call: Invocation, view: Callable[[], Awaitable[View]], is_over: Callable[[Any], bool]) -> None:
    """Show what `view` returns until `is_over`; Ctrl-C ends it at any time."""
    shown = ""
    while True:
        value, blocks = await view()
        text = values.as_json(value)
        if text != shown or _is_terminal(call):
            _show(call, value, blocks)
            shown = text
        if is_over(value):
            return
        await Nap(LOOK_SECONDS)


def _show(call: Invocation, value: Any, blocks: Sequence[parts.Block]) -> None:
    if call.json:
        print(values.as_json(value), flush=True)
        return
    if _is_terminal(call):
        sys.stdout.write(_HOME)
    drawing.draw(blocks, may_colour=call.may_colour)
    sys.stdout.flush()


def _is_terminal(call: Invocation) -> bool:
    return not call.json and sys.stdout is not None and sys.stdout.isatty()


def bar(percent: float | None) -> str:
    """`[########------------]  40 %`; empty when the percentage is unknown."""
    if percent is None:
        return ""
    full = round(_BAR * percent / 100)
    return f"[{'#' * full}{'-' * (_BAR - full)}] {percent:3.0f} %"


async def follow(call: Invocation, id: str, *, last: int | None) -> None:
    """Print a task's events as they happen, one per line, until the task ends."""
    from perdure.cli.output import words

    after = 0 if last is None else max(len(await call.tasks.events(id)) - last, 0)
    async for event in call.tasks.follow(id, after=after):
        if call.json:
            print(values.as_json(event), flush=True)
        else:
            said = f"{words.clock_time(event.at)}  {event.kind}  {words.who(event.author)}  "
            print(parts.safe(said + words.short(event.data or "")), flush=True)
