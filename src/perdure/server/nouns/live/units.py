"""Units: what lives for tasks, its output by offset, and typing into it.

Nothing is typed without the right to type, which one writer has at a time. A writer is a credential: two tabs of one
session are one, and two people with keys of their own are two.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from datetime import datetime
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field

from perdure._runtime import UnitAccess, UnitCommand, UnitOutput, hide_mark_numbers
from perdure.errors import Conflict, EffectUncertain, UnitHeld
from perdure.server.http import Answer, Ask, HttpProblem, Streamed, listed, page_limit, read_cursor, sign_cursor
from perdure.server.live import Lasting, Live
from perdure.server.nouns.references import glance_at
from perdure.server.shapes.live import Unit, Writer, unit_for, writer_label, writer_of
from perdure.server.shapes.tasks import Listed, Strict
from perdure.server.table import Nothing, Raw, Route

log = logging.getLogger("perdure.server")

MOST_INPUT = 64 << 10  # bytes
_FOLLOWS_SECONDS = 600.0
_WAIT = "10s"
_LOOK_SECONDS = 0.25  # at units that cannot be waited for
_ID_LENGTH = 64  # characters, at most
_CONTEXT = 300  # bytes before a piece of output that say how it is to be read
_OCTETS = "application/octet-stream"
_UNIT = "/v1/tasks/{task}/units/{unit}"


class UnitFilter(Strict, frozen=True, kw_only=True):
    kind: str | None = None
    alive: bool | None = None
    limit: int = 50
    cursor: str | None = None


class UnitQuery(UnitFilter, frozen=True, kw_only=True):
    task: str | None = None


class OutputRange(Strict, frozen=True, kw_only=True):
    """`follow` keeps the answer open for 10 minutes, or until the unit ends."""

    from_: int = field(default=0, name="from")
    follow: bool = False
    stream: Literal["out", "err"] = "out"


class Taking(Strict, frozen=True, kw_only=True):
    """`take` takes the right away from another writer or from an agent."""

    take: bool = False


class Size(Strict, frozen=True, kw_only=True):
    rows: int
    columns: int


class SignalBody(Strict, frozen=True, kw_only=True):
    signal: str


class Ending(Strict, frozen=True, kw_only=True):
    """`dry_run` ends nothing, and tells what would end."""

    dry_run: bool = False


class ProcessInSight(Struct, frozen=True):
    pid: int
    command: str | UnsetType = UNSET  # with `data:read`


class UnitRehearsal(Struct, frozen=True):
    """What would end with a unit; nothing has ended."""

    processes: Sequence[ProcessInSight]
    comes_back: bool  # a resume makes it anew if it was saved


class Taken(Struct, frozen=True):
    """The right to type, and until when it lasts without a further input."""

    writer: str
    until: datetime


# ── looking ──────────────────────────────────────────────────────────────────────────────────────


async def page(ask: Ask[UnitQuery, None]) -> Answer:
    return await _page(ask, ask.query, ask.query.task)


async def page_of_task(ask: Ask[UnitFilter, None]) -> Answer:
    task, _ = await glance_at(ask)
    return await _page(ask, ask.query, task.id)


async def _page(ask: Ask[Any, None], query: UnitFilter, task: str | None) -> Answer:
    bound = {"task": task, "kind": query.kind, "alive": query.alive}
    cursor = await read_cursor(ask, "units", bound, query.cursor)
    limit = page_limit(ask, query.limit)
    found = await ask.app.units.page(task=task, kind=query.kind, alive=query.alive, limit=limit, cursor=cursor)
    more = await sign_cursor(ask, "units", bound, found.cursor)
    return listed(ask, [unit_for(ask.caller, one) for one in found.items], more)


async def get(ask: Ask[Nothing, None]) -> Answer:
    return Answer(unit_for(ask.caller, (await _unit(ask)).record))


async def commands(ask: Ask[Nothing, None]) -> Answer:
    return listed(ask, await (await _unit(ask)).commands())


async def _unit(ask: Ask[Any, Any]) -> UnitAccess:
    task, _ = await glance_at(ask)
    return await ask.app.units.get(task.id, ask.parts["unit"])


# ── output ───────────────────────────────────────────────────────────────────────────────────────


async def output(ask: Ask[OutputRange, None]) -> Answer | Streamed:
    unit, query = await _unit(ask), ask.query
    first = await unit.output(query.from_, errors=query.stream == "err")
    if query.from_ > first.end:
        raise HttpProblem(416, "beyond_the_end", f"the output has {first.end} bytes", values={"end": first.end})
    headers = {"Perdure-Offset": str(first.start), "Perdure-Unit": unit.record.uid}
    if first.gap:
        headers["Perdure-Gap"] = str(first.gap)
    if not first.data and first.is_over:
        return Answer(status=204, headers={**headers, "Perdure-Ended": str(first.status)})
    if not first.data and not query.follow:
        return Answer(status=204, headers=headers)
    before = await _before(unit, query, first.start)
    async with AsyncExitStack() as stack:
        stack.enter_context(ask.server.part(Live).rooms.place_for(ask.caller))
        pieces = _pieces(ask, unit, first, before)
        headers |= {"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"}
        return Streamed(Lasting(pieces, stack.pop_all()), _OCTETS, headers=headers)


async def _before(unit: UnitAccess, query: OutputRange, start: int) -> bytes:
    """The bytes right before an offset, as far as they are kept."""
    if start == 0:
        return b""
    part = await unit.output(max(0, start - _CONTEXT), errors=query.stream == "err")
    return part.data[: max(0, start - part.start)]


async def _pieces(
    ask: Ask[OutputRange, None], unit: UnitAccess, part: UnitOutput, before: bytes
) -> AsyncIterator[bytes]:
    """The output without a gap: where bytes are no longer kept, it ends."""
    loop, pace = asyncio.get_running_loop(), ask.server.part(Live).pace
    until, check = loop.time() + _FOLLOWS_SECONDS, loop.time() + pace.check
    upto, errors = part.end, ask.query.stream == "err"
    while True:
        if part.data:
            yield hide_mark_numbers(before, part.data)
            before = (before + part.data)[-_CONTEXT:]
        at = part.next
        if (part.is_over and at >= part.end) or (not ask.query.follow and at >= upto):
            return
        if loop.time() >= until or ask.server.stopping.is_set():
            return
        if loop.time() >= check:
            check = loop.time() + pace.check
            if ask.renew is not None and await ask.renew() is None:
                return
        if not part.data and not unit.has_terminal:
            await asyncio.sleep(_LOOK_SECONDS)
        part = await unit.output(at, wait=_WAIT if ask.query.follow else None, errors=errors)
        if part.gap:
            return


# ── typing ───────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _told_who_holds(ask: Ask[Any, Any]) -> Iterator[None]:
    """Refuse a write without the right, and name its holder."""
    try:
        yield
    except UnitHeld as error:
        by = error.by or (f"process {error.pid}" if error.pid else "another writer")
        holder = writer_of(ask.caller, by, None) or Writer(by, False, None, False)
        raise HttpProblem(
            409,
            "unit_held",
            f"{holder.name} has the right to type into this unit",
            do='PUT …/writer takes it; {"take": true} takes it from another',
            values={"by": holder.name, "is_person": holder.is_person},
        ) from None


async def take(ask: Ask[Nothing, Taking]) -> Answer:
    unit, label = await _unit(ask), writer_label(ask.caller)
    before = unit.record.writer
    with _told_who_holds(ask):
        until = await unit.take(label, force=ask.body.take)
    if before and before != label:
        log.warning("the right to type into unit %s was taken from %s by %s", unit.record.uid, before, label)
    return Answer(Taken(ask.caller.name, until))


async def give_back(ask: Ask[Nothing, None]) -> Answer:
    await (await _unit(ask)).release(writer_label(ask.caller))
    return Answer(status=204)


def _input_id(ask: Ask[Any, Any]) -> str | None:
    """The id by which the keeper knows a repeated input; an Idempotency-Key is one too."""
    return ask.headers.get("perdure-input-id") or (ask.once[-_ID_LENGTH:] if ask.once else None)


async def send(ask: Ask[Nothing, None]) -> Answer:
    id = _input_id(ask)
    if id is None:
        raise HttpProblem(
            400, "input_id_required", "an input needs a Perdure-Input-Id", do="send a new one for each input"
        )
    data, unit = await _content(ask), await _unit(ask)
    try:
        with _told_who_holds(ask):
            await unit.send(id, data, writer=writer_label(ask.caller))
    except EffectUncertain:
        raise HttpProblem(
            409,
            "uncertain",
            "part of this input may have been typed",
            kept="it is never typed again",
            do="look at the terminal, and type what is missing as a new input",
        ) from None
    return Answer(status=204)


async def answer(ask: Ask[Nothing, None]) -> Answer:
    """The body is a secret: it goes to the terminal and nowhere else."""
    data, unit = await _content(ask), await _unit(ask)
    id = _input_id(ask) or ask.request_id
    try:
        with _told_who_holds(ask):
            await unit.answer(id, data, writer=writer_label(ask.caller))
    except Conflict:
        raise HttpProblem(
            409,
            "not_asked",
            "this unit does not ask for a secret now",
            kept="the answer was not typed",
            do="wait until `waiting` of the unit is `secret`",
        ) from None
    return Answer(status=204)


async def _content(ask: Ask[Any, Any]) -> bytes:
    assert ask.content is not None
    return b"".join([piece async for piece in ask.content])


async def resize(ask: Ask[Nothing, Size]) -> Answer:
    unit = await _unit(ask)
    with _told_who_holds(ask):
        await unit.resize(ask.body.rows, ask.body.columns, writer=writer_label(ask.caller))
    return Answer(status=204)


async def send_signal(ask: Ask[Nothing, SignalBody]) -> Answer:
    unit = await _unit(ask)
    try:
        with _told_who_holds(ask):
            await unit.signal(ask.body.signal, writer=writer_label(ask.caller), signal_id=ask.mark or None)
    except EffectUncertain:
        raise HttpProblem(
            409,
            "uncertain",
            "this signal may have been sent",
            kept="it is never sent again",
            do="look at what runs in the unit, and send a new one with another Idempotency-Key",
        ) from None
    return Answer(status=204)


async def end(ask: Ask[Ending, None]) -> Answer:
    unit = await _unit(ask)
    if ask.query.dry_run:
        found = await unit.processes()
        shown = [ProcessInSight(one.pid, one.command if ask.caller.reads_data else UNSET) for one in found]
        return Answer(UnitRehearsal(shown, unit.is_made_anew))
    await unit.end()
    return Answer(status=202)


ROUTES = (
    Route(
        method="GET",
        path="/v1/units",
        handler=page,
        does="The live things of all tasks: shells, services, files.",
        scopes=("tasks:read",),
        query=UnitQuery,
        answer=Listed[Unit],
    ),
    Route(
        method="GET",
        path="/v1/tasks/{task}/units",
        handler=page_of_task,
        does="The live things of one task.",
        scopes=("tasks:read",),
        query=UnitFilter,
        answer=Listed[Unit],
    ),
    Route(
        method="GET",
        path=_UNIT,
        handler=get,
        does="One unit as it is now.",
        scopes=("data:read",),
        answer=Unit,
        statuses=(410,),
    ),
    Route(
        method="GET",
        path=f"{_UNIT}/output",
        handler=output,
        does="The output of a unit as raw bytes from an offset on, followed if asked for.",
        scopes=("data:read",),
        query=OutputRange,
        statuses=(204, 410, 416, 429),
        streams=True,
        answers=_OCTETS,
    ),
    Route(
        method="GET",
        path=f"{_UNIT}/commands",
        handler=commands,
        does="The commands of a shell: exit code, folder, time, and where their output is.",
        scopes=("data:read",),
        answer=Listed[UnitCommand],
        statuses=(410,),
    ),
    Route(
        method="PUT",
        path=f"{_UNIT}/writer",
        handler=take,
        does="Take the right to type, for 60 s after each input.",
        scopes=("units:type",),
        body=Taking,
        answer=Taken,
        statuses=(409, 410),
    ),
    Route(
        method="DELETE",
        path=f"{_UNIT}/writer",
        handler=give_back,
        does="Give the right to type back.",
        scopes=("units:type",),
        status=204,
        statuses=(410,),
    ),
    Route(
        method="POST",
        path=f"{_UNIT}/input",
        handler=send,
        does="Type into a unit. The same Perdure-Input-Id is typed once.",
        scopes=("units:type",),
        body=Raw,
        media=_OCTETS,
        body_limit=MOST_INPUT,
        status=204,
        statuses=(409, 410),
    ),
    Route(
        method="POST",
        path=f"{_UNIT}/answer",
        handler=answer,
        does="Answer a question for a secret: typed only while the terminal does not echo, and kept nowhere.",
        scopes=("units:type",),
        body=Raw,
        media=_OCTETS,
        body_limit=MOST_INPUT,
        status=204,
        statuses=(409, 410),
    ),
    Route(
        method="PUT",
        path=f"{_UNIT}/size",
        handler=resize,
        does="Set the size of a unit's terminal.",
        scopes=("units:type",),
        body=Size,
        status=204,
        statuses=(409, 410),
    ),
    Route(
        method="POST",
        path=f"{_UNIT}/signal",
        handler=send_signal,
        does="Send a signal to what runs in front of a unit's terminal.",
        scopes=("units:type",),
        body=SignalBody,
        status=204,
        statuses=(409, 410),
    ),
    Route(
        method="DELETE",
        path=_UNIT,
        handler=end,
        does="End a unit and every process it has started; with `dry_run=true`, tell which those are.",
        scopes=("units:type",),
        query=Ending,
        rehearsal=UnitRehearsal,
        status=202,
        statuses=(200, 410),
    ),
)
