"""The hot loops of async steps and effects write what the general walk writes, entry by entry."""

from __future__ import annotations

import asyncio
import functools
import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from perdure import effect
from perdure._durable.attempt.calls.call import Call
from perdure._durable.attempt.calls.recorded_calls import walk
from perdure._durable.attempt.calls.step_walk import StepCall, async_step
from perdure._durable.attempt.scopes import current
from perdure._durable.effects.effect_walk import EffectWalk
from perdure._model import Entry
from perdure._replay import plain_digest
from tests.replay import programs
from tests.replay.kit import Journal

SEEDS = range(40)
CUTS = 4  # so many beginnings of each journal are played on


def _slow_step(call: Call) -> Callable[..., Any]:
    """An async step in the general walk."""

    @functools.wraps(call.function)
    async def stepped(*args: Any, **kwargs: Any) -> Any:
        scope = current.get()
        assert scope is not None and not scope.is_body
        return await walk(StepCall(scope, call, call.digest(args, kwargs), args, kwargs))

    return stepped


def _slow_effect(made: Any) -> Callable[..., Any]:
    """An async effect in the general walk."""
    call = made.call

    @functools.wraps(call.function)
    async def effected(*args: Any, **kwargs: Any) -> Any:
        scope = current.get()
        assert scope is not None
        scope.attempt.effects[call.name] = call
        asked = plain_digest(args) or call.digest(args, kwargs)
        return await walk(EffectWalk(scope, call, asked, args, kwargs, is_spelled=plain_digest(args) is not None))

    return effected


async def _fetch(label: str, value: int) -> int:
    await programs.world.get().work(f"fetch {label} {value}")
    if value % 7 == 3:
        raise ValueError(label)
    return value * 3 % 101


async def _stubborn(label: str, value: int) -> int:
    try:
        await programs.world.get().work(f"stubborn {label} {value}")
    except asyncio.CancelledError:
        return value - 1
    return value + 1


async def _tidy(label: str, value: int) -> int:
    try:
        await programs.world.get().work(f"tidy {label} {value}")
    finally:
        for _ in range(value % 4):
            await asyncio.sleep(0)
    return value


_BODIES = {"fetch": _fetch, "stubborn": _stubborn, "tidy": _tidy}
_STEPS = {name: Call(body, name=name, raises=[KeyError]) for name, body in _BODIES.items()}
_EFFECTS = {name: effect(name=name, failed_on=[ValueError])(body) for name, body in _BODIES.items()}
FAST_STEPS = {name: async_step(call) for name, call in _STEPS.items()}
SLOW_STEPS = {name: _slow_step(call) for name, call in _STEPS.items()}
SLOW_EFFECTS = {name: _slow_effect(made) for name, made in _EFFECTS.items()}


def _without_stops(seed: int) -> programs.Block:
    """A random program that waits for all it starts: an effect that is left behind is asked about, in a store."""
    chance = random.Random(seed)

    def block(depth: int) -> programs.Block:
        return [op(depth) for _ in range(chance.randint(1, 3))]

    def op(depth: int) -> Any:
        kind = chance.random()
        if depth >= 3 or kind < 0.5:
            return (chance.choice(("fetch", "fetch", "stubborn", "think", "locked")),)
        if kind < 0.6:
            return ("branch", block(depth + 1), block(depth + 1))
        return ("gather", [block(depth + 1) for _ in range(chance.randint(2, 3))])

    return block(0)


def _timeless(journal: Journal) -> list[tuple[int, Entry]]:
    """The entries without what the clock says."""
    found = []
    for position, entry in journal:
        note = None if entry.note is None else {name: it for name, it in entry.note.items() if name != "not_after"}
        found.append((position, msgspec.structs.replace(entry, at=0, took_ms=0, note=note)))
    return found


def _beginnings(journal: Journal) -> list[int]:
    """Some beginnings of a journal in which no effect is under way: settling one takes a store."""
    found, under_way = [0], set()
    for count, (_, entry) in enumerate(journal, 1):
        under_way ^= {entry.path} if entry.op == "effect" else set()
        if not under_way:
            found.append(count)
    return [*found[: -1 : max(1, len(found) // CUTS)], found[-1]]


async def _journals(
    monkeypatch: pytest.MonkeyPatch, block: programs.Block, calls: dict[str, Any], journal: Journal
) -> tuple[Journal, list[Any]]:
    for name, made in calls.items():
        monkeypatch.setattr(programs, name, made)
    clockwork = programs.Clockwork(asyncio.get_running_loop())
    played, world = await programs._play(block, journal, clockwork)
    assert not world.is_stuck
    return played.journal, [world.seen, repr(played.error), played.value]


@pytest.mark.req("R67")
@pytest.mark.parametrize(
    "make, fast, slow",
    [(programs.make_program, FAST_STEPS, SLOW_STEPS), (_without_stops, _EFFECTS, SLOW_EFFECTS)],
    ids=["steps", "effects"],
)
@pytest.mark.parametrize("tens", range(0, len(SEEDS), 10))
async def test_a_hot_loop_writes_the_entries_of_the_general_walk(
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[int], programs.Block],
    fast: dict[str, Any],
    slow: dict[str, Any],
    tens: int,
) -> None:
    for seed in SEEDS[tens : tens + 10]:
        block = make(seed)
        whole, seen = await _journals(monkeypatch, block, fast, [])
        for count in _beginnings(whole):
            by_loop = await _journals(monkeypatch, block, fast, whole[:count])
            by_walk = await _journals(monkeypatch, block, slow, whole[:count])
            where = f"seed {seed}, from entry {count} of {len(whole)}"
            assert _timeless(by_walk[0]) == _timeless(by_loop[0]), where
            assert by_walk[1] == by_loop[1], where
            assert by_loop[1] == seen, where
