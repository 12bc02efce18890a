"""Layers inside a durable function: wherever the process dies, a prompt comes again as it was, and a turn counts once.

Each layer has a program of its own. It is killed at every place that a call on memory passes, one process for each,
and carried on by another, which must come to what an undisturbed run comes to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, durable, pause, step, sync
from perdure._durable.memory import memory_calls
from perdure._ground.bridge import Nap
from perdure.errors import InvalidInput
from perdure.memory import (
    Block,
    ContinuityLayer,
    DurableTaskState,
    FileStorage,
    Memory,
    PlanLayer,
    Procedure,
    ProcedureLayer,
    ProcedureStep,
    Scope,
    SqliteStorage,
    ThreadMemory,
)
from perdure.memory.layers.reducer_layer import ReducedState
from perdure.testing import always_replay
from tests.durable.kept_kit import World, carry_on, fresh_home
from tests.support.journals import calls_of
from tests.support.processes import ChildDied, Nursery
from tests.torture.kills import Home

# Where a process dies, and how often it has passed there by then; where it never comes so far, it is not killed.
PLACES = {
    "sqlite": {
        "memory.written": range(1, 30),
        "memory.before_entry": range(1, 30, 3),
        "memory.recorded": range(2, 30, 3),
        "committer.before_commit": (5, 9),
    },
    "postgres": {"memory.written": range(1, 30, 2), "memory.before_entry": range(2, 30, 4)},
}
TURNS = 2
_app: Perdure
_home: Home
_folder: Path


@step
async def model(turn: int, prompt: str) -> str:
    """Kept under its prompt: one that is told otherwise in a replay is a divergence."""
    World(_folder).note(f"{turn}: {prompt!r}")
    return f"answer {turn}"


def text_of(blocks: Sequence[Block]) -> str:
    return "\n".join(f"{block.role}: {block.text}" for block in blocks)


async def turns(mem: Memory, act: Callable[[int], Any]) -> list[str]:
    prompts = []
    for turn in range(TURNS):
        prompt = text_of(await mem.prompt_blocks(budget=4_000))
        prompts.append(prompt)
        await model(turn, prompt)
        await act(turn)
        await mem.after_turn(depth=turn)
    return prompts


# ── a program for each layer ─────────────────────────────────────────────────────────────────────


@durable(name="memory: task state")
async def with_task_state() -> Any:
    layer = DurableTaskState()
    async with _app.memory("job", [layer]) as mem:
        prompts = await turns(mem, lambda turn: layer.set_data({f"fact {turn}": turn, "last": turn}))
        await mem.complete("success")
        return [len(layer.state["checkpoints"]), layer.state["data"], len(prompts)]


@durable(name="memory: artifacts")
async def with_artifacts() -> Any:
    layer = DurableTaskState(base_dir=_folder / "out")
    async with _app.memory("job", [layer]) as mem:
        await turns(mem, lambda turn: layer.write_artifact(f"part-{turn}.txt", f"text {turn}"))
        found = await layer.record_artifact(Path("part-0.txt"))
        return [len(layer.state["checkpoints"]), layer.state["files"], found.size]


@durable(name="memory: plan")
async def with_plan() -> Any:
    layer = PlanLayer(folder=_folder / "plan")
    async with _app.memory("job", [layer, DurableTaskState()]) as mem:
        await layer.author([f"part {turn}" for turn in range(TURNS)])

        async def one(turn: int) -> None:
            left = [item.text for item in layer.items if not item.is_done]
            assert left[0] == f"part {turn}"  # as the code saw it the first time
            async with layer.doing(left[0]):
                await model(100 + turn, left[0])

        await turns(mem, one)
        return [[item.text, item.is_done] for item in layer.items]


@durable(name="memory: thread")
async def with_thread() -> Any:
    layer = ThreadMemory("conversation", ttl=timedelta(hours=1))
    async with _app.memory("job", [layer]) as mem:
        await turns(mem, lambda turn: layer.remember(f"key {turn}", layer.get("key 0") or "first"))
        await layer.forget("key 1")
        return [[entry.key, entry.value] for entry in layer.entries]


@durable(name="memory: procedure")
async def with_procedure() -> Any:
    release = Procedure("release", 1, [ProcedureStep(f"part {turn}") for turn in range(TURNS)])
    layer = ProcedureLayer(release)
    async with _app.memory("job", [layer]) as mem:

        async def one(turn: int) -> None:
            now = layer.next()
            assert now is not None
            await layer.done(now.name, {"turn": turn})

        await turns(mem, one)
        return [layer.results, len(layer._log.events)]


@durable(name="memory: reduced")
async def with_reduced() -> Any:
    layer: ReducedState[int] = ReducedState(lambda state, event: (state + event, ()), 0)
    async with _app.memory("job", [layer]) as mem:
        await turns(mem, lambda turn: layer.send(turn + 1))  # a method of its own: each thing it asks for is a call
        return [layer.state, len(layer.events)]


@durable(name="memory: continuity")
async def with_continuity() -> Any:
    state = DurableTaskState()
    async with _app.memory("job", [ContinuityLayer(), state]) as mem:
        await turns(mem, lambda turn: asyncio.gather(state.set_data({"a": turn}), state.set_data({"b": turn})))
        return [len(state.state["checkpoints"]), state.state["data"]]


@durable(name="memory: children")
async def with_children() -> Any:
    state = DurableTaskState()
    async with _app.memory("job", [state, PlanLayer()]) as mem:
        await mem.call_tool("set_task_data", {"values": {"for": "the child"}})
        child = await mem.spawn("job-child")
        await turns(child, lambda turn: child.layer("task_state").set_data({"child": turn}))
        await child.complete("success")
        await mem.returned(child)
        await mem.after_turn(depth=0)
        with pytest.raises(InvalidInput):
            await mem.call_tool("set_task_data", {"values": {"__reserved": 1}})
        return [len(state.state["checkpoints"]), state.state["data"]]


@step
async def a_turn_in_a_step(turn: int) -> int:
    """A step that is cut off is run again, and what it did to memory is not."""
    state = DurableTaskState()
    async with _app.memory("job", [state]) as mem:
        await mem.after_turn(depth=turn)
        await state.set_data({"last": turn})
        return len(state.state["checkpoints"])


@durable(name="memory: in a step")
async def in_a_step() -> Any:
    counts = [await a_turn_in_a_step(turn) for turn in range(TURNS)]
    state = DurableTaskState()
    async with _app.memory("job", [state]) as mem:
        await mem.after_turn(depth=9)
        return [counts, len(state.state["checkpoints"]), state.state["data"]]


class Counter:
    """A layer by somebody else, which knows nothing of journals."""

    id: str = "counter"
    slot: int = 500
    scope: Scope = "execution"

    async def init(self, context: Any) -> None:
        self.context = context
        self.count = await context.storage.get("count") or 0
        self.asked = 0

    async def recall(self, budget: int) -> str:
        self.asked = await self.context.once("service", self._ask)
        return f"{self.count} turns, {self.asked} from a service"

    async def _ask(self) -> int:
        World(_folder).note("asked", "service")
        return len(World(_folder).notes("service"))

    async def store(self, turn: Any) -> None:
        self.count += 1
        await self.context.storage.set("count", self.count)


@durable(name="memory: custom")
async def with_custom() -> Any:
    layer = Counter()
    async with _app.memory("job", [layer]) as mem:

        async def one(turn: int) -> None:
            return None

        await turns(mem, one)
        return layer.count


@durable(name="memory: plain function")
def with_plain_function() -> Any:
    """The blocking face, in a function that is a plain `def`."""
    state = DurableTaskState()
    with sync.Perdure(_home.url, namespace=_home.namespace) as app, app.memory("job", [state]) as mem:
        for turn in range(TURNS):
            World(_folder).note(f"{turn}: {text_of(mem.prompt_blocks(budget=4_000))!r}")
            mem.layer("task_state").set_data({"last": turn})
            mem.after_turn(depth=turn)
        return [len(state.state["checkpoints"]), state.state["data"]]


@durable(name="memory: files")
async def with_files() -> Any:
    state = DurableTaskState()
    async with _app.memory("job", [state], storage=FileStorage(_folder / "memory")) as mem:
        await turns(mem, lambda turn: state.set_data({"last": turn}))
        return [len(state.state["checkpoints"]), state.state["data"]]


@durable(name="memory: another store")
async def with_another_store() -> Any:
    state, events = DurableTaskState(), ReducedState[int](lambda found, event: (found + event, ()), 0)
    storage = SqliteStorage(_folder / "other.db")
    async with _app.memory("job", [state, events], storage=storage) as mem:
        await turns(mem, lambda turn: events.send(turn + 1))
        found = [len(state.state["checkpoints"]), events.state, len(events.events)]
    await storage.close()
    return found


PROGRAMS = {
    one.name.removeprefix("memory: "): one
    for one in (
        with_task_state,
        with_artifacts,
        with_plan,
        with_thread,
        with_procedure,
        with_reduced,
        with_continuity,
        with_children,
        in_a_step,
        with_custom,
        with_plain_function,
        with_files,
        with_another_store,
    )
}
COMES_TO: dict[str, Any] = {
    "task state": [TURNS + 1, {"fact 0": 0, "fact 1": 1, "last": 1, "__outcome": "success"}, TURNS],
    "artifacts": [TURNS, ["part-0.txt", "part-1.txt"], 6],
    "plan": [["part 0", True], ["part 1", True]],
    "thread": [["key 0", "first"]],
    "procedure": [{"part 0": {"turn": 0}, "part 1": {"turn": 1}}, TURNS + 1],
    "reduced": [3, TURNS],
    "continuity": [TURNS, {"a": 1, "b": 1}],
    "children": [TURNS + 2, {"for": "the child", "child": 1}],
    "in a step": [[1, 2], TURNS + 1, {"last": 1}],
    "custom": TURNS,
    "plain function": [TURNS, {"last": 1}],
    "files": [TURNS, {"last": 1}],
    "another store": [TURNS, 3, TURNS],
}


async def run(home: Home, folder: Path) -> Any:
    """Carry the program that the folder names on to its end; and what the next process is told by the layers."""
    global _app, _home, _folder
    _home, _folder = home, folder
    program = PROGRAMS[(folder / "program").read_text()]
    async with home.open() as _app:
        return await _app.run("job", program)


def prepared(folder: Path, program: str) -> Path:
    folder.mkdir()
    (folder / "program").write_text(program)
    return folder


@pytest.mark.req("R124", "R126", "R128", "R132")
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_killed_program_comes_to_what_it_would_have_come_to(
    request: Any, tmp_path: Path, children: Nursery, engine: str, program: str
) -> None:
    killed = 0
    for place, counts in PLACES[engine].items():
        for count in counts:
            folder = prepared(tmp_path / f"{place}-{count}", program)
            home = fresh_home(request, engine, folder)
            child = children.start(carry_on, run, home, folder, place, count)
            try:
                assert child.heard() == COMES_TO[program]
                break  # it does not pass there so often
            except ChildDied:
                killed += 1
            before = World(folder).notes()
            found = children.run(carry_on, run, home, folder, "", 1)
            assert found == COMES_TO[program], (place, count, found)
            # What the model was told before is what it was told.
            told: dict[str, str] = {}
            for line in before + World(folder).notes()[len(before) :]:
                turn, _, prompt = line.partition(": ")
                assert told.setdefault(turn, prompt) == prompt, (place, count)
    assert killed >= TURNS


@pytest.mark.req("R124", "R126", "R128")
@pytest.mark.parametrize("program", PROGRAMS)
async def test_a_program_that_is_replayed_after_every_entry_comes_to_the_same(tmp_path: Path, program: str) -> None:
    folder = prepared(tmp_path / "folder", program)
    with always_replay():
        assert await run(Home(f"memory://always-{tmp_path.name}-{program}"), folder) == COMES_TO[program]


async def test_a_call_that_the_code_cuts_off_leaves_the_layers_usable(tmp_path: Path) -> None:
    """A hook that hangs is cut off by the code's own time-out; a replay is cut off there again."""

    class Slow:
        id: str = "slow"
        slot: int = 1
        scope: Scope = "execution"

        async def recall(self, budget: int) -> str:
            await asyncio.Event().wait()
            return "never"

    @durable(name="memory: cut off")
    async def cut_off() -> Any:
        state = DurableTaskState()
        async with app.memory("job", [state, Slow()]) as mem:
            for turn in range(TURNS):
                await state.set_data({"turn": turn})
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await mem.prompt_blocks(budget=4_000)
                await mem.after_turn(depth=turn)
            return [len(state.state["checkpoints"]), state.state["data"]]

    async with Perdure(f"memory://cut-{tmp_path.name}") as app:
        with always_replay():
            assert await app.run("job", cut_off) == [TURNS, {"turn": TURNS - 1}]


async def test_a_memory_that_was_opened_outside_of_a_step_is_refused_in_it(tmp_path: Path) -> None:
    state = DurableTaskState()

    @step
    async def inside() -> None:
        with pytest.raises(InvalidInput, match="opened outside of it"):
            await state.set_data({"a": 1})

    @durable(name="memory: misused")
    async def misused() -> Any:
        async with app.memory("job", [state]):
            await inside()
            await state.set_data({"b": 1})
            return state.state["data"]

    async with Perdure(f"memory://misused-{tmp_path.name}") as app:
        assert await app.run("job", misused) == {"b": 1}


@pytest.mark.req("R64")
async def test_a_task_whose_journal_has_no_calls_on_memory_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an older perdure wrote it: there they were not recorded, and are not from then on either."""

    @durable(name="memory: older")
    async def older() -> Any:
        layer = ThreadMemory("conversation")
        async with app.memory("job", [layer, DurableTaskState()]) as mem:
            blocks = await mem.prompt_blocks(budget=4_000)
            await layer.remember("a", len(blocks))
            answer = await fetch("first")
            await mem.after_turn(depth=1)
            answer += await pause.input("go on?", str)
            await mem.after_turn(depth=2)
            return [answer, layer.get("a") is not None, await fetch("second")]

    async with Perdure(f"memory://older-{tmp_path.name}") as app:
        with monkeypatch.context() as patched:
            patched.setattr(memory_calls, "_is_older", lambda scope: True)
            work = asyncio.ensure_future(app.run("job", older))
            await until_paused(app)
            work.cancel()
            await asyncio.wait([work])
        await (await app.tasks.handle("job")).answer("yes")
        assert await app.run("job", older) == ["firstyes", True, "second"]
        names = [line.path for line in await calls_of(app, "job")]
        assert [name for name in names if name.startswith(("fetch", "memory"))] == ["fetch#1", "fetch#2"]


@step
async def fetch(what: str) -> str:
    return what


async def until_paused(app: Perdure) -> None:
    while (record := await app.tasks.get("job")) is None or not record.is_paused:
        await Nap(0.005)
