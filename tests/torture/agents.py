"""Kill an agent with all its parts, at random: memory, streams, tools in threads, an approval, a model that misbehaves.

The agent is examples/whole_agent.py. A seed chooses the engine (even: SQLite, odd: PostgreSQL), what the model does
wrong, and one to three deaths: each at the nth place that code passes, counted over all places, or at a moment of the
clock. In the end there is one result, each note is written once, and each turn has been counted once.

python -m tests.torture --part agents --seeds 0-199
"""

from __future__ import annotations

import asyncio
import importlib
import os
import random
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from perdure._ground import crash_points as crash
from perdure._ground.bridge import Nap
from perdure.memory import DurableTaskState, PlanLayer
from tests.support import postgres
from tests.support.folders import fast_folder
from tests.support.processes import ChildDied, Link, die, nursery
from tests.torture.kills import Home

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
whole_agent: Any = importlib.import_module("whole_agent")
fake_model: Any = importlib.import_module("fake_model")

TASK = "notes-tides"
NOTES = list(fake_model.NOTES)
RESULT = {
    "said": "All 3 notes about it are written, and I am done.",
    "turns": len(NOTES) + 1,  # the last one is that of its end
    "data": {
        "note 0": "3 words",
        "note 1": "error 404: look_up answered 404",
        "note 2": "3 words",
        "__outcome": "success",
    },
    "plan": [True, True],
    "last": NOTES[-1],
}
MOST_DEATHS = 3


class Death(NamedTuple):
    """At the nth place that is passed, or after so many seconds."""

    nth: int = 0
    seconds: float = 0.0


def run(seed: int) -> None:
    rng = random.Random(seed)
    with ExitStack() as stack:
        folder = stack.enter_context(fast_folder())
        children = stack.enter_context(nursery())
        model, url = stack.enter_context(_model())
        wrong = {how: rng.randrange(3) for how in ("drop", "refuse")}
        model.wrong.update(wrong)
        kind = ("sqlite", "postgres")[seed % 2]
        home = stack.enter_context(_home(kind, folder))
        places, seconds = _extent(kind)
        deaths = 0
        for _ in range(rng.randint(1, MOST_DEATHS)):
            is_timed = rng.random() < 0.3
            death = Death(seconds=rng.uniform(0.001, seconds)) if is_timed else Death(rng.randint(1, places))
            child = children.start(carry_on, home, str(folder), url, death)
            try:
                found, _, _ = child.heard()
                assert found == RESULT, f"it came to {found} before it was to die ({death})"
            except ChildDied:
                deaths += 1
        found, _, _ = children.run(carry_on, home, str(folder), url, Death())
        assert found == RESULT, f"it came to {found}"
        kept = children.run(look, home)
        written = whole_agent.lines_of(str(folder))
        assert sorted(written) == sorted([*NOTES, "published, approved by ada"]), f"notes: {written}"
        assert kept == {"turns": RESULT["turns"], "data": RESULT["data"], "plan": RESULT["plan"]}, f"kept: {kept}"
        # A call that was cut off is made again; one that has ended is not.
        most = len(NOTES) + 1 + deaths + sum(wrong.values())
        assert model.bill["calls"] <= most, f"{model.bill['calls']} calls of the model, {most} at most"


@contextmanager
def _model() -> Iterator[tuple[Any, str]]:
    """The fake model, on a loop of its own in this process, which outlives those that ask it."""
    model: Any = fake_model.FakeModel()
    told: SimpleQueue[tuple[str, Callable[[], object]]] = SimpleQueue()

    async def serve() -> None:
        over, loop = asyncio.Event(), asyncio.get_running_loop()
        told.put((await model.serve(), partial(loop.call_soon_threadsafe, over.set)))
        await over.wait()
        model.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    url, end = told.get()
    try:
        yield model, url
    finally:
        end()
        thread.join()


@contextmanager
def _home(kind: str, folder: Path) -> Iterator[Home]:
    """An empty store."""
    if kind == "sqlite":
        yield Home(f"sqlite://{folder}/p.db")
    else:
        postgres.ensure_server()
        with postgres.fresh_database() as url:
            yield Home(url)


@cache
def _extent(kind: str) -> tuple[int, float]:
    """How many places an undisturbed run passes, and how many seconds it takes."""
    with fast_folder() as folder, nursery() as children, _model() as (_, url), _home(kind, folder) as home:
        found, places, seconds = children.run(carry_on, home, str(folder), url, Death())
        assert found == RESULT, f"undisturbed it came to {found}"
        return places, seconds


# ── in the child ─────────────────────────────────────────────────────────────────────────────────


async def carry_on(_: Link, home: Home, folder: str, url: str, death: Death) -> tuple[Any, int, float]:
    """Carry the agent on to its end, and approve what it asks; its result, and how far that was."""
    passed = _die_at(death)
    os.environ["MODEL_URL"] = url
    began = asyncio.get_running_loop().time()
    async with home.open() as whole_agent.app:
        app = whole_agent.app
        work = asyncio.ensure_future(app.run(TASK, whole_agent.take_notes, TASK, "tides", folder))
        while not work.done():
            record = await app.tasks.get(TASK)
            if record is not None and record.is_paused:
                await (await app.tasks.handle(TASK)).approve(by="ada")
            await Nap(0.005)
        found = await work
    return found, passed.total(), asyncio.get_running_loop().time() - began


def _die_at(death: Death) -> Counter[str]:
    passed: Counter[str] = Counter()

    def place(name: str) -> None:
        passed[name] += 1
        if passed.total() == death.nth:
            die()

    crash.armed, crash.place = "anywhere", place
    if death.seconds:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends the process, wherever it is
        signal.setitimer(signal.ITIMER_REAL, death.seconds)
    return passed


async def look(_: Link, home: Home) -> dict[str, Any]:
    """What a process finds that comes later."""
    state, plan = DurableTaskState(), PlanLayer()
    async with home.open() as app, app.memory(TASK, [state, plan]):
        kept = state.state
        return {
            "turns": len(kept["checkpoints"]),
            "data": kept["data"],
            "plan": [item.is_done for item in plan.items],
        }
