"""How a unit came back, from what the keeper tells of it. Pure."""

from __future__ import annotations

from perdure._model import Verdict
from perdure._runtime.units import Record


def verdict_of(record: Record, was_made: bool, is_rebuilt: bool) -> Verdict:
    if not record.is_alive:
        return _lost(record)
    if is_rebuilt:
        return Verdict("rebuilt", "its process was gone; a new one was made from the recipe of the old one")
    reason = "made now" if was_made else "the same process, held by the keeper"
    return Verdict("kept", reason, same=("process",))


def _lost(record: Record) -> Verdict:
    why = str(record.facts.get("why") or _ending(record.ended))
    return Verdict(
        "lost",
        why,
        do_not_assume=("that anything of it still runs",),
        options=("rebuild='auto' makes a new one from its recipe",),
    )


def _ending(status: int | None) -> str:
    if status is None or status < 0:
        return "it ended unseen"
    signal = status & 0x7F
    return f"it was ended by signal {signal}" if signal else f"it ended with exit code {status >> 8}"
