"""Lines about kept PostgreSQL sessions: the cost of the proxy."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import Any

from perdure.bench.figures import Budget, Figure, figure_of
from perdure.bench.programs import IN_FUNCTION, statements
from perdure.bench.rounds import middle_ms_of, take_turns
from perdure.bench.stage import Plot

_ROWS = 100_000
_MOST_ADDED_MS = 0.25


async def session(plot: Plot, quick: bool) -> list[Figure]:
    """Send `select 1` and read a large result, through the proxy and directly. PostgreSQL only."""
    if plot.engine != "postgres":
        return []
    import psycopg

    from perdure._runtime import SessionPlace, open_postgres

    with tempfile.TemporaryDirectory(prefix="pdb-") as folder:
        held = await open_postgres(SessionPlace(Path(folder)), "bench", plot.url, hold="1m")
        try:
            async with (
                await psycopg.AsyncConnection.connect(plot.url, autocommit=True) as direct,
                await held.connect(autocommit=True) as kept,
            ):
                small, large = await _small(direct, kept, quick), await _large(direct, kept, quick)
                return [small, *await _in_functions(plot, folder, direct, quick), large]
        finally:
            await held.end()


async def _small(direct: Any, kept: Any, quick: bool) -> Figure:
    times = 100 if quick else 500
    rounds = await take_turns(
        3 if quick else 9,
        {
            "floor": lambda: middle_ms_of(lambda: direct.execute("SELECT 1"), times),
            "ours": lambda: middle_ms_of(lambda: kept.execute("SELECT 1"), times),
        },
    )
    budget = Budget(rounds["floor"].median + _MOST_ADDED_MS, f"≤ direct + {_MOST_ADDED_MS} ms")
    return figure_of("session", "select 1 in a kept session", "ms", rounds, floor_is="psycopg, direct", budget=budget)


async def _in_functions(plot: Plot, folder: str, direct: Any, quick: bool) -> list[Figure]:
    """The same statement, done once per call: in a step, and in the function itself, which records it."""
    from perdure._runtime import SessionPlace, open_postgres

    times = 100 if quick else 300
    numbers = itertools.count()

    async def ours(in_step: bool) -> float:
        return await app.run(f"statements-{next(numbers)}", statements, folder, plot.url, times, in_step)

    async with plot.app() as app:
        rounds = await take_turns(
            3 if quick else 9,
            {
                "floor": lambda: middle_ms_of(lambda: direct.execute("SELECT 1"), times),
                "ours": lambda: ours(True),
                "function": lambda: ours(False),
            },
        )
    await (await open_postgres(SessionPlace(Path(folder)), IN_FUNCTION, plot.url, hold="1m")).end()
    limit, told = rounds["floor"].median + _MOST_ADDED_MS, f"≤ direct + {_MOST_ADDED_MS} ms"
    return [
        figure_of("session", what, "ms", found, floor_is="psycopg, direct", budget=Budget(limit, told))
        for what, found in (
            ("select 1 in a step, once per call", {"floor": rounds["floor"], "ours": rounds["ours"]}),
            ("select 1 in a durable function", {"floor": rounds["floor"], "ours": rounds["function"]}),
        )
    ]


async def _large(direct: Any, kept: Any, quick: bool) -> Figure:
    rows = _ROWS // (10 if quick else 1)

    async def read(connection: Any) -> None:
        await (await connection.execute("SELECT g, 'row ' || g FROM generate_series(1, %s) g", (rows,))).fetchall()

    rounds = await take_turns(
        3 if quick else 7,
        {"floor": lambda: middle_ms_of(lambda: read(direct), 1), "ours": lambda: middle_ms_of(lambda: read(kept), 1)},
    )
    return figure_of("session", "100,000 rows read in one", "ms", rounds, floor_is="psycopg, direct")
