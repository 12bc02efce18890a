"""Lines about checkpoints: one of 10 kB, and a state that grows for 500 turns."""

from __future__ import annotations

import random
import time
from functools import cache
from itertools import accumulate
from statistics import median
from typing import Any

from perdure._ground.encoding import codec, zstd
from perdure._store import FrameRow
from perdure._tasks import store_of
from perdure.bench.figures import Budget, Figure, Series, figure_of
from perdure.bench.rounds import Contestant, middle_ms, middle_ms_of, take_turns
from perdure.bench.stage import Plot

TURNS = 500
_ZSTD_LEVEL = 3


def text(size: int, seed: int) -> str:
    """Text with English word frequencies, so that it compresses about as well as English."""
    words, weights = _vocabulary()
    chosen = random.Random(seed).choices(words, cum_weights=weights, k=size // 3)  # noqa: S311
    return " ".join(chosen)[:size]


@cache
def _vocabulary() -> tuple[list[str], list[float]]:
    chance = random.Random(0)  # noqa: S311
    words = ["".join(chance.choices("eeetaoinshrdlucmfwyp", k=chance.randint(2, 9))) for _ in range(4000)]
    return words, list(accumulate(1 / (rank + 2.7) for rank in range(len(words))))


async def checkpoint(plot: Plot, quick: bool) -> list[Figure]:
    """Store a checkpoint of 10 kB that shares little with the one before, from a coroutine and from blocking code."""
    from perdure import sync

    times, rounds = (20, 5) if quick else (50, 11)
    states = [{"turn": number, "notes": text(10_000, number)} for number in range(64)]
    async with plot.app() as app, plot.pipeline() as bare_pipeline:
        task = await app.tasks.open("awaited")
        blocking_app = sync.Perdure(plot.url)
        blocking_task = blocking_app.tasks.open("blocking")
        turn = 0

        def next_state() -> dict[str, Any]:
            nonlocal turn
            turn += 1
            return states[turn % len(states)]

        contestants: dict[str, Contestant] = {
            "floor": lambda: middle_ms(plot.bare.commit, times),
            "awaited": lambda: middle_ms_of(lambda: task.checkpoint(next_state()), times),
            "blocking": lambda: middle_ms(lambda: blocking_task.checkpoint(next_state()), times),
        }
        if bare_pipeline is not None:
            position = 0
            await bare_pipeline.start("checkpoints")

            async def durable() -> None:
                nonlocal position
                position += 1
                await bare_pipeline.append_and_wait("checkpoints", position, next_state())

            contestants["prototype"] = lambda: middle_ms_of(durable, times)
        found = await take_turns(rounds, contestants)
        blocking_app.close()
    budget = Budget(2 * found["floor"].median + 0.5, "≤ 2 × floor + 0.5 ms")
    floor_is = f"{plot.bare.name}, 1 kB"
    faces = {"awaited": "checkpoint of 10 kB, awaited", "blocking": "checkpoint of 10 kB, perdure.sync"}
    return [
        figure_of("checkpoint", what, "ms", {**found, "ours": found[face]}, floor_is=floor_is, budget=budget)
        for face, what in faces.items()
    ]


async def turns(plot: Plot, quick: bool) -> list[Figure]:
    """Let an agent add 1 KB to its state in each of 500 turns, and checkpoint the whole state each time."""
    laps = [await _one_lap(plot, f"agent-{number}") for number in range(1 if quick else 3)]
    appends = [await _one_lap(plot, f"appending-{number}", by_append=True) for number in range(1 if quick else 3)]
    return [*_figures(plot, laps), *_figures_of_appends(plot, appends)]


def _figures(plot: Plot, laps: list[_Lap]) -> list[Figure]:
    early, late = Series([lap.early for lap in laps]), Series([lap.late for lap in laps])
    floor = Series([lap.floor for lap in laps])
    megabytes = laps[0].state_size / 1e6
    allowed = early.median + 3 * megabytes
    added = laps[0].added_packed
    return [
        Figure(
            name="turns",
            what=f"{TURNS} turns, + 1 KB each: bytes kept",
            unit="B",
            figure=float(laps[0].stored),
            floor=float(added),
            floor_is="zstd of all that was added",
            budget=Budget(2.0 * added, "≤ 2 × floor"),
            detail={"added": laps[0].added, "frames_per_turn": laps[0].stored / TURNS},
        ),
        Figure(
            name="turns",
            what="the same with rows, events and indexes: growth of the store",
            unit="B",
            figure=float(laps[0].growth),
            floor=float(added),
            floor_is="zstd of all that was added",
        ),
        Figure(
            name="turns",
            what=f"time of turn {TURNS} ({megabytes:.1f} MB of state)",
            unit="ms",
            figure=late.median,
            floor=floor.median,
            floor_is=f"{plot.bare.name}, 1 kB",
            floor_spread=max(lap.floor_spread for lap in laps),
            budget=Budget(allowed, f"≤ turn 10 ({early.median:.2f} ms) + 3 ms per MB"),
            detail={"turn_10_ms": early.median, "state_bytes": laps[0].state_size},
        ),
    ]


def _figures_of_appends(plot: Plot, laps: list[_Lap]) -> list[Figure]:
    """The same turns, with `task.append` instead of a checkpoint."""
    early, late = Series([lap.early for lap in laps]), Series([lap.late for lap in laps])
    added = laps[0].added_packed
    return [
        Figure(
            name="turns",
            what=f"{TURNS} × task.append of 1 KB: bytes kept",
            unit="B",
            figure=float(laps[0].stored),
            floor=float(added),
            floor_is="zstd of all that was added",
            budget=Budget(1.5 * added, "≤ 1.5 × floor"),
        ),
        Figure(
            name="turns",
            what=f"time of append {TURNS}",
            unit="ms",
            figure=late.median,
            floor=Series([lap.floor for lap in laps]).median,
            floor_is=f"{plot.bare.name}, 1 kB",
            floor_spread=max(lap.floor_spread for lap in laps),
            budget=Budget(early.median * 1.5, f"≤ 1.5 × append 10 ({early.median:.2f} ms)"),
            detail={"append_10_ms": early.median, "state_bytes": laps[0].state_size},
        ),
    ]


class _Lap:
    """The results of one run of the 500 turns."""

    early = late = floor = floor_spread = 0.0
    state_size = stored = growth = added = added_packed = 0


async def _one_lap(plot: Plot, id: str, *, by_append: bool = False) -> _Lap:
    lap = _Lap()
    async with plot.app() as app:
        await app.tasks.open("first")
    before = plot.bytes_stored()
    messages = [{"role": "assistant", "content": text(1000, turn)} for turn in range(TURNS)]
    state: dict[str, Any] = {"phase": "working", "turn": 0, "messages": []}
    taken: list[float] = []
    floors: list[float] = []
    async with plot.app() as app:
        task = await app.tasks.open(id, state=state)
        for turn, message in enumerate(messages):
            state["turn"] = turn
            state["messages"].append(message)
            began = time.perf_counter()
            await (task.append("messages", message) if by_append else task.checkpoint(state))
            taken.append((time.perf_counter() - began) * 1000)
            if turn % 25 == 0:
                floors.append(middle_ms(plot.bare.commit, 5))
        rows = await store_of(app.tasks).query("read_checkpoints", uid=task.uid, after=0, limit=TURNS + 1)
        lap.stored = sum(FrameRow(*row).stored for row in rows)
    lap.growth = plot.bytes_stored() - before
    lap.early, lap.late = median(taken[4:16]), median(taken[-16:])
    lap.floor, lap.floor_spread = median(floors), Series(floors).spread
    lap.state_size = len(codec.encode(state))
    added = b"".join(codec.encode(message) for message in messages)
    lap.added, lap.added_packed = len(added), len(zstd.pack(added, _ZSTD_LEVEL))
    return lap
