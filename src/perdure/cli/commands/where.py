"""Show what a task is doing: its last step, what runs, what it waits for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from perdure._ground.encoding import json_values as values
from perdure.cli.base import Invocation, Verb, id_argument
from perdure.cli.output import Fields, words

if TYPE_CHECKING:
    from perdure._durable import CallFrame, Where
    from perdure._runtime import Kept
    from perdure.client import Transport

_SHOWN = 200  # characters of the arguments


@click.command(cls=Verb)
@id_argument()
@click.pass_obj
async def command(call: Invocation, id: str) -> None:
    """Show what a task is doing, or was doing when it died.

    where shows the last step, the running call, what the task waits for, and what comes next.
    """
    if call.server is not None:
        await _through_a_server(call, call.server, id)
        return
    from perdure._durable import where

    found = await where(call.tasks, id)
    units = await _units(call, id)
    lines = [*_lines(found), *(("holds", f"{unit.kind} {unit.name}: {unit.state}") for unit in units)]
    told = {**values.plain(found), "units": values.plain(units)}
    call.answer(told, Fields([(name, [text]) for name, text in lines if text]))


async def _through_a_server(call: Invocation, server: Transport, id: str) -> None:
    """The position of a task, from its server."""
    from perdure.client import address_of

    record = await (await call.tasks.handle(id)).record()
    told = (await server.get(f"{address_of(id)}/situation")).value
    lines = [("status", record.status), ("why", told["headline"]), *(("", text) for text in told["details"])]
    lines += [("next", way["cli"]) for way in told["ways"] if way.get("allowed", True)]
    call.answer({"id": id, "status": record.status, **told}, Fields([(name, [text]) for name, text in lines if text]))


def _progress(found: Where) -> str:
    percent = f"{found.percent:g} %" if found.percent is not None else ""
    return " ".join(filter(None, (found.operation, found.amount, percent))) if percent or found.amount else ""


def _lines(found: Where) -> list[tuple[str, str]]:
    return [
        ("status", found.status),
        ("why", found.situation.headline),
        ("error", found.error),
        ("raised", found.traceback),
        ("function", found.function or "none: this task has only checkpoints"),
        ("arguments", _arguments(found)),
        ("done", _done(found)),
        *(("returned", text) for text in found.returned),
        ("then", found.unseen),
        ("damaged", ", ".join(f"entry {position} of its journal cannot be read" for position in found.damaged)),
        *(line for frame in found.frames for line in _frame_lines(frame)),
        ("progress", _progress(found)),
        *(("waits for", text) for text in found.waits_for),
        *(("set aside", text) for text in found.thoughts),
        ("worked on by", found.holder or (f"no process: {found.dead} has died" if found.dead else "no process")),
        ("next", found.next),
        *((f"its task {child.id}", text) for child in found.children for text in _in_one_line(child)),
    ]


def _done(found: Where) -> str:
    calls = f"{found.done} call{'' if found.done == 1 else 's'}"
    return f"{calls}; the last was {found.last_path}" if found.done else "no calls recorded"


def _arguments(found: Where) -> str:
    if not isinstance(found.arguments, dict):
        return found.arguments or ""
    from perdure._durable import shown_value

    text = ", ".join(f"{name}={shown_value(value)}" for name, value in found.arguments.items())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _frame_lines(frame: CallFrame) -> Iterator[tuple[str, str]]:
    """A running call: the functions around it, each indented further, then the call itself."""
    indents = ["  " * depth for depth in range(len(frame.stack) + 1)]
    around = [f"{indent}{one}" for indent, one in zip(indents, frame.stack, strict=False)]
    call = f": {frame.call}" if frame.call else ""
    own = f"{indents[-1]}{frame.path}{call}" + (f", {frame.note}" if frame.note else "")
    yield frame.state, "\n".join([*around, own])
    for text in frame.returned:
        yield "returned", text
    if frame.error and frame.note != frame.error:
        yield "failed before" if frame.state == "under way" else "because", frame.error
    yield "raised", frame.traceback
    if frame.until is not None:
        yield "until", f"{words.clock_time(frame.until)}; until then its process may still be running it"


def _in_one_line(child: Where) -> Iterator[str]:
    """The position of a child task, one text for each field."""
    for name, text in _lines(child):
        if text and name not in ("function", "worked on by"):
            yield f"{name}: {text}"


async def _units(call: Invocation, id: str) -> list[Kept]:
    """The units kept for the task. Looking starts no keeper."""
    if sys.platform == "win32":
        return []
    from perdure._runtime import kept_for

    task = await call.tasks.handle(id)
    return await kept_for(call.store, task.uid)
