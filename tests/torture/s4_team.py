"""A team at work: a coordinator, its agents, a task per file, a reviewer. Loaded by `perdure worker s4_team.py:app`.

Each file is read, put to a model, written as an artifact and committed, and one line is added to done.log. One file
kills whoever reads it, one hangs until that is noticed. What a prompt held is noted in prompts.log, what was asked of
the model in model.log, and each return of the coordinator's surroundings in restored.log.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import time
from pathlib import Path
from typing import Any, TypedDict

from perdure import Perdure, durable, effect, pause, runtime, step
from perdure.effects import DID_NOT_HAPPEN, Happened
from perdure.errors import TaskFailed
from perdure.memory import ContinuityLayer, DurableTaskState, PlanLayer, estimate
from perdure.memory.prompt.recall import parse
from perdure.recorded import is_replaying
from perdure.types import Config

app = Perdure()

# A storm is bad luck, not a task's fault: nobody gives up on it. The poison file's own fault is another matter.
PATIENT = Config(max_retries=10_000)
COORDINATOR, REVIEWER = "refactor-the-house", "review-the-house"


class Work(TypedDict):
    folder: str  # of sources, logs and the repository
    files: int
    agents: int
    poison: int
    hangs: int
    attempts: int  # for the poison file
    seconds: float  # a model takes to answer


# ── the world ────────────────────────────────────────────────────────────────────────────────────


def add_line(path: Path, line: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(fd, f"{line}\n".encode())
    finally:
        os.close(fd)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def log_of(work: Work, name: str) -> Path:
    return Path(work["folder"]) / f"{name}.log"


def file_name(number: int) -> str:
    return f"module_{number:02d}.py"


def task_of(number: int) -> str:
    return f"refactor-{file_name(number)}"


def agent_of(number: int) -> str:
    return f"agent-{number}"


def files_of(work: Work, agent: int) -> list[int]:
    return list(range(agent, work["files"], work["agents"]))


def layers(work: Work, *more: Any) -> list[Any]:
    base = Path(work["folder"]) / "repository" / "out"
    return [ContinuityLayer(), DurableTaskState(base_dir=base, git_commit=True, merge="namespace"), *more]


def plan(work: Work) -> PlanLayer:
    return PlanLayer(folder=Path(work["folder"]) / "plans")


async def look_at_prompt(work: Work, memory: Any) -> None:
    """What a model would be told now: it must fit, and parse."""
    blocks = await memory.prompt_blocks(budget=4_000)
    (state,) = [block.text for block in blocks if block.text.startswith("<task_state>")]
    note = {"task": memory.task_id, "tokens": estimate(state), "state": isinstance(parse(state)["data"], dict)}
    note["continuity"] = next((block.text for block in blocks if block.text.startswith("<continuity>")), "")
    add_line(log_of(work, "prompts"), json.dumps(note))


# ── one file ─────────────────────────────────────────────────────────────────────────────────────


@step
async def read(work: Work, number: int) -> str:
    if number == work["poison"]:
        add_line(log_of(work, "poisoned"), str(os.getpid()))
        os.kill(os.getpid(), 9)
    return await asyncio.to_thread((Path(work["folder"]) / "sources" / file_name(number)).read_text)


class Answer(TypedDict):
    text: str
    token: str  # by which an answer is known, whoever got it


@step(flush=True)
async def ask_model(work: Work, number: int, text: str) -> Answer:
    token = secrets.token_hex(8)
    await note_call(work, "asked", number, token)
    if number == work["hangs"] and not await is_found_out(number):
        await asyncio.to_thread(add_line, log_of(work, "hung"), str(os.getpid()))
        await asyncio.Event().wait()
    await asyncio.sleep(work["seconds"])
    await note_call(work, "answered", number, token)
    return {"text": text.replace("old", "new"), "token": token}


async def is_found_out(number: int) -> bool:
    """True if the file has hung for so long that somebody noticed; killed before that, it hangs once more."""
    return any(event.kind == "stalled" for event in await app.tasks.events(task_of(number)))


async def note_call(work: Work, what: str, number: int, token: str) -> None:
    call = {"what": what, "number": number, "token": token, "pid": os.getpid(), "at": time.time()}
    await asyncio.to_thread(add_line, log_of(work, "model"), json.dumps(call))


@step(flush=True)
async def keep(work: Work, number: int, text: str) -> None:
    """Write the artifact, and let the turn be over: kept and committed. May be repeated, and is the same then."""
    async with app.memory(task_of(number), layers(work)) as memory:
        await look_at_prompt(work, memory)
        await memory.layer("task_state").write_artifact(file_name(number), text)
        await memory.layer("task_state").set_data({"lines": text.count("\n")})
        await memory.after_turn(depth=2)
        for note in memory.notes:
            add_line(log_of(work, "notes"), f"{task_of(number)}: {note.what}")


def is_noted(work: Work, number: int) -> Any:
    return Happened(None) if file_name(number) in lines(log_of(work, "done")) else DID_NOT_HAPPEN


@effect(verify=is_noted)
async def note_done(work: Work, number: int) -> None:
    await asyncio.to_thread(add_line, log_of(work, "done"), file_name(number))


@durable
async def refactor(work: Work, number: int) -> str:
    text = await read(work, number)
    answer = await ask_model(work, number, text)
    await keep(work, number, answer["text"])
    await note_done(work, number)
    return answer["token"]


# ── an agent ─────────────────────────────────────────────────────────────────────────────────────


@step(flush=True)
async def hand_out(work: Work, agent: int) -> None:
    """Every file's task begins with what its agent has."""
    async with app.memory(agent_of(agent), layers(work)) as memory:
        for number in files_of(work, agent):
            await memory.spawn(task_of(number))


@step(flush=True)
async def take_back(work: Work, agent: int, done: list[int], failed: list[int]) -> None:
    async with app.memory(agent_of(agent), layers(work)) as memory:
        for number in done:
            await memory.returned(await memory.spawn(task_of(number)))
        await memory.layer("task_state").set_data({"done": len(done), "failed": failed})
        await look_at_prompt(work, memory)
        await memory.after_turn(depth=1)


@durable
async def refactor_some(work: Work, agent: int) -> tuple[list[int], list[int]]:
    await hand_out(work, agent)
    done, failed = [], []
    for number in files_of(work, agent):
        config = Config(max_retries=work["attempts"] - 1) if number == work["poison"] else PATIENT
        task = await app.start(task_of(number), refactor.options(config=config), work, number)
        try:
            await task.result()
            done.append(number)
        except TaskFailed:
            failed.append(number)
    await take_back(work, agent, done, failed)
    return done, failed


# ── the coordinator and the reviewer ─────────────────────────────────────────────────────────────


@step(flush=True)
async def begin(work: Work) -> None:
    async with app.memory(COORDINATOR, layers(work, plan(work))) as memory:
        await memory.layer("plan").author([file_name(number) for number in range(work["files"])])
        for agent in range(work["agents"]):
            await memory.spawn(agent_of(agent))


@step(flush=True)
async def gather_up(work: Work, agent: int, done: list[int]) -> None:
    async with app.memory(COORDINATOR, layers(work, plan(work))) as memory:
        await memory.returned(await memory.spawn(agent_of(agent)))
        for number in done:
            await memory.layer("plan").tick(number + 1, why_now="agents work side by side")
        await look_at_prompt(work, memory)


@step(flush=True)
async def end(work: Work) -> None:
    async with app.memory(COORDINATOR, layers(work, plan(work))) as memory:
        await memory.complete("success")
        await look_at_prompt(work, memory)


async def have_surroundings(work: Work) -> None:
    """The first attempt saves what it has around it, a later one brings it back: that is what its report tells."""
    is_back = is_replaying()
    rt = await runtime.open()
    rt.variables["agents"] = work["agents"]
    await rt.save()
    if is_back:
        back = await rt.restore()
        await asyncio.to_thread(add_line, log_of(work, "restored"), back.cut.id)


@durable
async def refactor_all(work: Work) -> dict[str, int]:
    await begin(work)
    await have_surroundings(work)
    chosen = refactor_some.options(config=PATIENT)
    started = [await app.start(agent_of(agent), chosen, work, agent) for agent in range(work["agents"])]
    done, failed = 0, 0
    for agent, task in enumerate(started):
        some, wrong = await task.result()
        done, failed = done + len(some), failed + len(wrong)
        await gather_up(work, agent, list(some))
    await end(work)
    return {"done": done, "failed": failed}


@step(flush=True)
async def begin_review(work: Work) -> int:
    record = await app.tasks.get(COORDINATOR)
    status = record.status if record is not None else "gone"
    await asyncio.to_thread(add_line, log_of(work, "review"), status)
    return len(lines(log_of(work, "done")))


@durable
async def review(work: Work) -> int:
    await pause.task(COORDINATOR)
    return await begin_review(work)
