"""Lines that need more than one process: starting up, sharing a file, memory at rest."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from tempfile import TemporaryDirectory
from typing import Any

from perdure.bench.figures import Budget, Figure, Series, figure_of
from perdure.bench.lines.distributions import core_install
from perdure.bench.rounds import take_turns
from perdure.bench.stage import Plot

_CHILD = "perdure.bench.child"
_RSS = (
    "from pathlib import Path; print(next(line.split()[1] for line in "
    "Path('/proc/self/status').read_text().splitlines() if line.startswith('VmRSS')))"
)
_LIBRARIES = "import asyncio, apsw, msgspec"
_NAMES = "from perdure import Perdure, durable, step, effect"
_FIRST = f"""{_NAMES}
import asyncio, sys

@step
async def one(): return 1

@durable
async def first(): return await one()

async def main():
    async with Perdure(sys.argv[1]) as app:
        await app.run("first", first)

asyncio.run(main())"""
WRITERS = 4


# ── starting up ──────────────────────────────────────────────────────────────────────────────────


async def startup(quick: bool) -> list[Figure]:
    """Measure the time to import perdure, to run a first function, and to call the command."""
    rounds = 3 if quick else 15
    with TemporaryDirectory() as folder:
        # Byte code is stored, as an install stores it; otherwise each process would compile its imports.
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        kept["PYTHONPYCACHEPREFIX"] = folder
        numbers = count()
        imports = await take_turns(
            rounds,
            {
                "floor": lambda: _import_ms(_LIBRARIES, kept),
                "package": lambda: _import_ms("import perdure", kept),
                "names": lambda: _import_ms(_NAMES, kept),
                "first": lambda: _import_ms(_FIRST, kept, f"sqlite:///{folder}/{next(numbers)}/perdure.db"),
            },
        )
        helps = await take_turns(
            rounds,
            {
                "floor": lambda: _process_ms("pass", kept),
                "help": lambda: _process_ms("from perdure.cli import main; raise SystemExit(main(['--help']))", kept),
            },
        )
    over = [shown - bare for shown, bare in zip(helps["help"].values, helps["floor"].values, strict=True)]
    budget = Budget(90.0, "≤ 90 ms")
    what = {
        "package": ("import perdure (each name is loaded when it is used)", budget),
        "names": (_NAMES, budget),
        "first": ("the same, and a one-step function run in a new store", None),
    }
    floor_is = f"{_LIBRARIES}, in process"
    return [
        *(
            figure_of("import", text, "ms", {**imports, "ours": imports[key]}, floor_is=floor_is, budget=bound)
            for key, (text, bound) in what.items()
        ),
        figure_of(
            "import",
            "perdure --help, over a bare interpreter",
            "ms",
            {"floor": helps["floor"], "ours": Series(over)},
            floor_is="python -c pass",
            budget=Budget(120.0, "≤ 120 ms"),
        ),
        _installed(),
    ]


def _installed() -> Figure:
    names = sorted(core_install("perdure"))
    return Figure(
        name="import",
        what="distributions of the core install",
        unit="",
        figure=float(len(names)),
        budget=Budget(9.0, "≤ 9"),
        detail={"names": names},
    )


def _import_ms(statements: str, environ: Mapping[str, str], *args: str) -> float:
    code = f"import time; t = time.perf_counter()\n{statements}\nprint((time.perf_counter() - t) * 1000)"
    return float(_run("-c", code, *args, environ=environ))


def _process_ms(code: str, environ: Mapping[str, str]) -> float:
    began = time.perf_counter()
    _run("-c", code, environ=environ)
    return (time.perf_counter() - began) * 1000


def _run(*args: str, environ: Mapping[str, str] | None = None) -> str:
    return subprocess.run(
        [sys.executable, *args], check=True, capture_output=True, text=True, env=environ, encoding="utf-8"
    ).stdout


# ── four writers ─────────────────────────────────────────────────────────────────────────────────


async def share(plot: Plot, quick: bool) -> list[Figure]:
    """Let four processes write to one SQLite file without pause, and measure the share of the slowest."""
    if plot.engine != "sqlite":
        return []
    seconds = "1" if quick else "3"
    lost = 0
    counts: list[list[int]] = []

    def ours() -> float:
        nonlocal lost
        answers = _at_once([("write", plot.url, f"writer-{number}", seconds) for number in range(WRITERS)])
        lost += sum(answer["lost"] for answer in answers)
        counts.append([answer["commits"] for answer in answers])
        return _least_share(answers)

    def floor() -> float:
        path = str(plot.folder / "shared.db")
        _run("-m", _CHILD, "bare", path, "0")  # creates the file, so that the four processes do not race to create it
        return _least_share(_at_once([("bare", path, seconds)] * WRITERS))

    rounds = await take_turns(1 if quick else 3, {"floor": floor, "ours": ours}, warm=False)
    found = figure_of(
        "share",
        f"{WRITERS} processes writing at once: the smallest share",
        "%",
        rounds,
        floor_is="bare apsw in four processes, by SQLite's own lock",
        budget=Budget(10.0, "≥ 10 %", at_least=True),
        commits=counts[-1],
        leases_lost=lost,
    )
    # SQLite's own lock favours one process by chance, so the spread of this floor says nothing about the machine.
    return [replace(found, floor_spread=None)]


def _at_once(commands: list[tuple[str, ...]]) -> list[dict[str, int]]:
    children = [
        subprocess.Popen(
            [sys.executable, "-m", _CHILD, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        for command in commands
    ]
    try:
        for child in children:
            _heard(child)
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        return [json.loads(_heard(child)) for child in children]
    finally:
        for child in children:
            child.communicate()


def _heard(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    line = child.stdout.readline()
    if not line:
        raise RuntimeError(f"a writer ended with status {child.wait()}")
    return line


def _least_share(answers: list[dict[str, int]]) -> float:
    commits = [answer["commits"] for answer in answers]
    return 100 * min(commits) / max(sum(commits), 1)


# ── memory ───────────────────────────────────────────────────────────────────────────────────────


async def memory(plot: Plot, quick: bool) -> list[Figure]:
    """Measure an idle process with a store in which thousands of tasks are paused."""
    paused = 500 if quick else 10_000
    await _pause_many(plot, paused)
    found: dict[str, int] = {}

    def ours() -> float:
        found.update(json.loads(_run("-m", _CHILD, "hold", plot.url)))
        return found["rss"] / 1e6

    rounds = await take_turns(
        2 if quick else 5, {"floor": lambda: int(_run("-c", _RSS)) * 1024 / 1e6, "ours": ours}, warm=False
    )
    return [
        figure_of(
            "memory",
            f"memory with the store open, {paused:,} tasks paused in it",
            "MB",
            rounds,
            floor_is="a bare interpreter",
            budget=Budget(60.0, "≤ 60 MB"),
            threads=found["threads"],
        )
    ]


async def _pause_many(plot: Plot, many: int) -> None:
    async with plot.app() as app:

        async def one(number: int) -> None:
            task: Any = await app.tasks.open(f"paused-{number}", state={"turn": number})
            await task.pause("Waiting for review", reason="human_approval")

        for first in range(0, many, 500):
            await asyncio.gather(*map(one, range(first, min(first + 500, many))))
