"""The output of a unit, by offset."""

from __future__ import annotations

from dataclasses import dataclass

from perdure._runtime.units.unit import Unit


@dataclass(frozen=True)
class Output:
    """A piece of the output; `gap` bytes before it are no longer kept."""

    text: str
    offset: int  # where the next piece begins
    gap: int = 0


async def read_all(unit: Unit, from_offset: int) -> Output:
    """Everything from an offset on that is kept now."""
    parts, gap, offset = [], 0, from_offset
    while True:
        reply = await unit.ask("read", start=offset)
        gap += reply.args["gap"]
        parts.append(reply.body)
        offset = reply.args["start"] + len(reply.body)
        if offset >= reply.args["end"] or not reply.body:
            return Output(b"".join(parts).decode(errors="replace"), offset, gap)
