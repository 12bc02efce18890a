"""List the effects of a task, or all uncertain effects."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import click

from perdure._ground.traceback_text import place_in
from perdure.cli.base import Invocation, Verb, id_argument
from perdure.cli.output import Cell, Table, line, words

if TYPE_CHECKING:
    from perdure._durable import EffectRecord, UncertainEffect

_COLOURS = {"done": "completed", "failed": "failed", "uncertain": "paused", "undone": "faint"}


@click.command(cls=Verb)
@id_argument(required=False)
@click.pass_obj
async def command(call: Invocation, id: str | None) -> None:
    """List the effects of a task, each with the key that its target knows it by.

    Without an ID, list the effects of all tasks whose outcome is unknown and that wait for a person.

    \b
    perdure effects order-42 --json > ledger.json
    perdure effects
    """
    if id is not None:
        found = await call.app.effects.of(id)
        call.answer_items(found, _ledger(found) if found else line(f"{id} has no effects"))
        return
    waiting = await call.app.effects.list()
    call.answer_items(waiting, _inbox(waiting, call.now) if waiting else line(f"no uncertain effects in {call.place}"))
    if waiting:
        call.note("look for the key at the target, then: perdure answer ID done|retry|fail")


def _failed(one: EffectRecord) -> str:
    return ", ".join(filter(None, (one.error, place_in(one.traceback))))


def _ledger(effects: Sequence[EffectRecord]) -> Table:
    rows = [
        (
            Cell(words.short(one.call), "strong"),
            Cell(one.state, _COLOURS[one.state]),
            str(one.tries),
            words.clock_time(one.began_at),
            words.clock_time(one.undone_at or one.ended_at),
            Cell(one.key, "faint"),
            Cell(words.short(_failed(one) or (f"settled by {one.settled}" if one.settled else "")), "faint"),
        )
        for one in effects
    ]
    return Table(("effect", "state", "tries", "began", "ended", "key", ""), rows)


def _inbox(effects: Sequence[UncertainEffect], now: datetime) -> Table:
    rows = [
        (
            Cell(one.task_id, "strong"),
            words.short(one.call),
            words.age(one.since, now),
            Cell(one.key, "faint"),
            Cell(words.short(one.why if one.is_waited_for else f"{one.why}; the task continued without it"), "faint"),
        )
        for one in effects
    ]
    return Table(("task", "effect", "since", "key", ""), rows)
