"""Writers of every kind change one task's state at once, and no acknowledged change is lost.

Each change is unlike every other: a key of its own, or an item of its own. So a sequential oracle needs no order of
its own. It walks the checkpoints as they were stored and asks of each that it holds what its parent held, and at
most what was being written then; and of the last one that it holds every change that was acknowledged.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from perdure import Perdure
from perdure._tasks import carry
from perdure._tasks.checkpoints.checkpoint_write import save_working_state
from perdure.errors import Conflict, LeaseLost, StaleVersion
from perdure.types import Checkpoint, Task
from tests.support import postgres
from tests.support.folders import fast_folder
from tests.support.processes import Child, Link, nursery, say

KINDS = ("append", "append nested", "set", "set one value", "autosave", "save", "patch")
_POSTGRES_EVERY = 5


def run(seed: int) -> None:
    if seed % _POSTGRES_EVERY == 0:
        with postgres.fresh_database() as url:
            asyncio.run(check(url, seed))
    else:
        with fast_folder() as folder:
            asyncio.run(check(f"sqlite://{folder}/p.db", seed))


async def check(url: str, seed: int, rounds: int = 4, writes: int = 12) -> None:
    """One task, some handles of its holder, and an operator in another process; rollbacks between the rounds."""
    chance = random.Random(seed)
    with nursery() as children:
        operator = Operator(children.start(operate, url))
        async with Perdure(url) as app:
            await _rounds(app, operator, chance, rounds, writes)


async def operate(link: Link, url: str) -> None:
    """An operator: rolls the task back, or pauses it and resumes it with a key set."""
    async with Perdure(url) as app:
        while True:
            verb, value = await asyncio.to_thread(link.recv)
            task = await app.tasks.open("job")
            if verb == "rollback":
                await task.rollback(value)
            else:
                await task.pause("a look", reason="human_input")
                await task.resume(state={value: True})
            say(link)


class Operator:
    """What the operator's process is asked to do, one thing at a time."""

    def __init__(self, child: Child) -> None:
        self._child, self._turn = child, asyncio.Lock()

    async def do(self, verb: str, value: str) -> None:
        async with self._turn:
            await asyncio.to_thread(self._child.ask, (verb, value))


async def _rounds(app: Perdure, operator: Operator, chance: random.Random, rounds: int, writes: int) -> None:
    task = await app.tasks.open("job", state={"log": [], "deep": {"log": []}})
    model = Model()
    for number in range(rounds):
        await task.checkpoint((await task.record()).state)  # so that the holder has its lease
        handles = [task, *[await app.tasks.open("job") for _ in range(chance.randrange(3))]]
        kinds = [chance.choice(KINDS) for _ in range(writes)]
        await asyncio.gather(
            *(_write(kind, f"{number}.{n}", chance.choice(handles), operator, model) for n, kind in enumerate(kinds))
        )
        model.compare(await _lineage(task), (await task.record()).state)
        if chance.random() < 0.4:
            await _roll_back(task, operator, chance, model)


class Model:
    """What was begun and what was acknowledged."""

    def __init__(self) -> None:
        self.begun: set[str] = set()
        self.acknowledged: set[str] = set()
        self.refused: set[str] = set()

    def compare(self, lineage: list[Checkpoint], state: Any) -> None:
        before: list[str] = []
        for made in lineage:
            now = _changes(made.data)
            assert len(now) == len(set(now)), f"checkpoint {made.seq} holds a change twice: {now}"
            assert set(before) <= set(now), f"checkpoint {made.seq} lost {set(before) - set(now)} ({made.cause})"
            assert set(now) <= self.begun, f"checkpoint {made.seq} holds {set(now) - self.begun}, which nobody wrote"
            before = now
        held = set(_changes(state))
        assert self.acknowledged <= held, f"acknowledged and lost: {self.acknowledged - held}"
        assert not self.refused & held, f"refused and written all the same: {self.refused & held}"


def _changes(state: Any) -> list[str]:
    keys = [key for key in state if key not in ("log", "deep", "value")]
    return [*keys, *state["log"], *state["deep"]["log"]]


async def _write(kind: str, name: str, task: Task, operator: Operator, model: Model) -> None:
    model.begun.add(name)
    try:
        match kind:
            case "append":
                await task.append("log", name)
            case "append nested":
                await task.append("deep.log", name)
            case "set":
                await task.checkpoint({**task.state, name: True})
            case "set one value":
                await task.checkpoint({**task.state, "value": name, name: True})
            case "autosave":
                task.state[name] = True
                await save_working_state(task)
                if name not in task.state:  # another write through this handle showed its own result meanwhile
                    return
            case "save":
                await carry(task, "runtime", {"made": name}, cause="test", kind="saved")
                return
            case "patch":
                await operator.do("patch", name)
        model.acknowledged.add(name)
    except StaleVersion:
        if kind != "autosave":
            model.refused.add(name)


async def _roll_back(task: Task, operator: Operator, chance: random.Random, model: Model) -> None:
    to = chance.choice(await _lineage(task))
    await operator.do("rollback", to.id)
    try:
        await task.append("log", "late")
        raise AssertionError("an attempt wrote after a rollback")
    except (LeaseLost, Conflict):
        pass
    state = (await task.record()).state
    assert state == to.data
    model.acknowledged &= set(_changes(state))
    model.refused.clear()


async def _lineage(task: Task) -> list[Checkpoint]:
    return [made async for made in task.checkpoints() if made.valid and not made.superseded]
