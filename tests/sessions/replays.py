"""Replay a durable function that works in a kept session, from any length of its journal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from perdure._durable.attempt.unwinding import Paused
from perdure._durable.journal.block_entries import without_lost
from perdure._tasks import Kept
from tests.replay.kit import Journal, play

Program = Callable[[], Awaitable[Any]]


class Notes:
    """What the store keeps of statements by themselves, where an attempt is played without a store."""

    def __init__(self) -> None:
        self._kept: dict[str, Kept[Any]] = {}

    async def all(self) -> list[Kept[Any]]:
        return list(self._kept.values())

    async def add(self, key: str, value: Any) -> bool:
        self._kept[key] = Kept(key, 1, None, 0, {}, value)
        return True

    async def change(self, kept: Kept[Any], value: Any) -> bool:
        self._kept[kept.key] = replace(kept, version=kept.version + 1, value=value)
        return True


async def finished(program: Program, journal: Journal, answers: dict[str, Any]) -> Any:
    """Go on from a journal to the end, and begin again as often as the attempt asks for that."""
    played = await play(program, journal=without_lost(journal), answers=answers)
    while isinstance(played.error, Paused) and played.attempt.unwinding.is_restarting:
        journal = [*journal, *(line for line in played.journal if not journal or line[0] > journal[-1][0])]
        played = await play(program, journal=without_lost(journal), answers=answers)
    return played


async def cut_anywhere(program: Program, meanwhile: Callable[[], object] = lambda: None) -> None:
    """Pause, forget the last entries of the journal, all of them one after the other, and go on each time.

    The beginning and the end of a transaction or savepoint, and what was recorded before, are never lost: they are
    waited for. `meanwhile` happens while the function is paused for the first time.
    """
    paused = await play(program)
    assert isinstance(paused.error, Paused), paused.error
    meanwhile()
    lasting = [at for at, (_, entry) in enumerate(paused.journal, 1) if "|session." in entry.path]
    surely = [at for at in lasting if not paused.journal[at - 1][1].path.startswith("|session.sql")]
    for length in range(len(paused.journal), max(surely, default=1) - 1, -1):
        again = await finished(program, paused.journal[:length], {})
        assert isinstance(again.error, Paused), again.error
    [path] = paused.attempt.unwinding.questions
    (await finished(program, paused.journal[: max(surely, default=1)], {path: {"value": "yes"}})).result()
