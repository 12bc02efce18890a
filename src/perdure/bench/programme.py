"""The measurements, in order, for each engine."""

from __future__ import annotations

import os
import platform
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path

from perdure.bench.bare import RawFile
from perdure.bench.figures import Figure, Report, Section, figure_of
from perdure.bench.lines import (
    adapters,
    checkpoints,
    continuity,
    demo_resume,
    functions,
    journals,
    lifecycles,
    pages,
    processes,
    requests,
    sessions,
    shells,
    streams,
    workers,
)
from perdure.bench.programs import quiet
from perdure.bench.rounds import middle_ms, take_turns
from perdure.bench.stage import Plot, Stage, folder_on, stage_for
from perdure.errors import StoreUnavailable

ENGINES = ("sqlite", "postgres")
Measure = Callable[[Plot, bool], Awaitable[list[Figure]]]


async def _commit(plot: Plot, quick: bool) -> list[Figure]:
    """The commit of the bare library, which is the floor of most lines, beside the disk alone."""
    raw = RawFile(plot.folder / "raw")
    times = 50 if quick else 200
    try:
        rounds = await take_turns(
            5 if quick else 11,
            {"floor": lambda: middle_ms(raw.write, times), "ours": lambda: middle_ms(plot.bare.commit, times)},
        )
    finally:
        raw.close()
    floor_is = "write + fdatasync of 1 kB to a file in this folder"
    return [figure_of("commit", f"bare: {plot.bare.name}, 1 kB", "ms", rounds, floor_is=floor_is)]


_LINES: dict[str, Measure] = {
    "commit": _commit,
    "checkpoint": checkpoints.checkpoint,
    "chain": journals.chain,
    "together": journals.together,
    "tasks": lifecycles.tasks,
    "steps": functions.chains,
    "crowd": functions.crowd,
    "replay": functions.replay,
    "conversation": functions.conversation,
    "turns": checkpoints.turns,
    "read": journals.read,
    "size": journals.size,
    "worker": workers.carried,
    "waking": workers.waking,
    "handover": workers.handover,
    "session": sessions.session,
    "saving": continuity.saving,
    "workspace": continuity.workspace,
    "resuming": demo_resume.resuming,
    "shell": shells.shells,
    "server": streams.server,
    "requests": requests.requests,
    "pages": pages.pages,
    "share": processes.share,
    "memory": processes.memory,
}
_WITHOUT_STORE: dict[str, Callable[[bool], Awaitable[list[Figure]]]] = {
    "import": processes.startup,
    "adapters": adapters.off_path,
}
NAMES = (*_LINES, *_WITHOUT_STORE)


async def measure(
    engines: Sequence[str],
    *,
    url: str | None = None,
    folder: Path | None = None,
    quick: bool = False,
    only: Collection[str] = (),
    must: bool = True,
    say: Callable[[str], None] = lambda _: None,
) -> Report:
    """Measure everything; `say` gets the name of each measurement as it begins.

    Raises:
        StoreUnavailable: an engine is out of reach. Without `must` the report names it instead.
    """
    wanted = set(only) or set(NAMES)
    sections: list[Section] = []
    left_out: dict[str, str] = {}
    names = [name for name in _LINES if name in wanted]
    for engine in engines if names else ():
        try:
            with quiet(), folder_on(folder) as place, stage_for(engine, place, url) as stage:
                figures = await _on(stage, names, quick, say)
                sections.append(Section(engine=engine, where=stage.where, figures=figures))
        except StoreUnavailable as error:
            if must:
                raise
            left_out[engine] = f"{error.what}; {error.do}"
    without = []
    for name, measure_it in _WITHOUT_STORE.items():
        if name in wanted:
            say(f"without a store: {name}")
            without += await measure_it(quick)
    if without:
        sections.append(Section(engine="process", where="no store", figures=without))
    return Report(quick=quick, machine=_machine(), sections=sections, left_out=left_out)


async def _on(stage: Stage, names: Sequence[str], quick: bool, say: Callable[[str], None]) -> list[Figure]:
    figures: list[Figure] = []
    for number, name in enumerate(names, 1):
        say(f"{stage.engine} {number}/{len(names)}: {name}")
        with stage.plot() as plot:
            figures += await _LINES[name](plot, quick)
    return figures


def _machine() -> dict[str, object]:
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "cores": os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()],
    }
