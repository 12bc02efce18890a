"""An agent with all its parts: memory, a plan, streamed answers, tools in threads, and a person's yes at the end.

    python examples/whole_agent.py           # kill -9 it whenever you like, then run the same line again
    perdure approve notes-tides              # in another terminal, when it asks

It asks a fake model on this machine, which it starts itself; MODEL_URL names another one. However often it is killed,
each note is written once, each turn counts once, and the result is the same.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fake_model import Client, FakeModel

from perdure import Perdure, Retry, durable, effect, model_call, pause, step, stream
from perdure.effects import DID_NOT_HAPPEN, Happened
from perdure.memory import ContinuityLayer, DurableTaskState, PlanLayer, ThreadMemory
from perdure.streams import Prefix

Message = dict[str, str]
app: Perdure


class ToolError(Exception):
    """What went wrong with a tool; the model reads it."""

    def __init__(self, tool: str, *, status: int) -> None:
        self.tool, self.status = tool, status
        super().__init__(f"{tool} answered {status}")


# ── the model ────────────────────────────────────────────────────────────────────────────────────


@model_call(model="fake-1", retry=Retry(8, wait="20ms"))
async def ask(messages: list[Message]) -> dict[str, Any]:
    """One turn of the model. What it has said is kept word by word; cut off, it is asked for the rest only."""
    usage: dict[str, int] = {}

    async def words(prefix: Prefix) -> AsyncIterator[str]:
        async for piece in Client(os.environ["MODEL_URL"]).stream(messages, prefix):
            if "usage" in piece:
                usage.update(piece["usage"])
            else:
                yield piece["text"]

    text = ""
    async for word in stream("answer", words, silence="2s"):
        text += word
    return {"text": text, "usage": usage}


# ── the tools: plain functions, which may block ──────────────────────────────────────────────────


@step(raises=[ToolError])
def look_up(note: str) -> int:
    """Fails for one of the notes, as tools do."""
    if note.startswith("compare"):
        raise ToolError("look_up", status=404)
    return len(note.split())


def is_written(folder: str, note: str) -> Any:
    """Asked when a process died in between: the world knows whether it happened."""
    return Happened("written") if note in lines_of(folder) else DID_NOT_HAPPEN


@effect(verify=is_written)
def write_note(folder: str, note: str) -> str:
    """It touches the world, so it is never repeated without a look at the world."""
    with (Path(folder) / "notes.txt").open("a") as file:
        file.write(f"{note}\n")
    return "written"


def lines_of(folder: str) -> list[str]:
    file = Path(folder) / "notes.txt"
    return file.read_text().splitlines() if file.exists() else []


def looked_up(note: str) -> str:
    """Runs in a thread. An error goes back to the model as text."""
    try:
        return f"{look_up(note)} words"
    except ToolError as error:
        return f"error {error.status}: {error}"


# ── the agent ────────────────────────────────────────────────────────────────────────────────────


@durable
async def take_notes(task_id: str, topic: str, folder: str) -> dict[str, Any]:
    state, plan, thread = DurableTaskState(), PlanLayer(), ThreadMemory(topic)
    layers = [ContinuityLayer(), state, plan, thread]
    messages: list[Message] = [{"role": "user", "content": f"Take notes about {topic}."}]
    with ThreadPoolExecutor(2) as tools:
        async with app.memory(task_id, layers) as memory:
            for turn in range(10):
                blocks = await memory.prompt_blocks(budget=2_000)
                told = [{"role": block.role, "content": block.text} for block in blocks]
                text = str((await ask([*told, *messages]))["text"])
                messages.append({"role": "assistant", "content": text})
                if not text.startswith("TOOL write_note "):
                    break
                note = text.removeprefix("TOOL write_note ")
                if turn == 0:
                    await memory.call_tool("write_plan", {"items": ["three notes", "publish"]})
                found, written = await asyncio.gather(
                    asyncio.wrap_future(tools.submit(looked_up, note)),
                    asyncio.wrap_future(tools.submit(write_note, folder, note)),
                )
                messages.append({"role": "tool", "content": f"{written}; {found}"})
                await state.set_data({f"note {turn}": found})
                await thread.remember("last", note)
                await memory.after_turn(depth=turn)
            await plan.tick("three notes")
            notes = sum(message["role"] == "tool" for message in messages)  # not from the file: that may change
            approval = await pause.approval(f"Publish {notes} notes about {topic}?")
            await asyncio.to_thread(write_note, folder, f"published, approved by {approval.by}")
            await plan.tick("publish")
            await memory.complete("success")
            return {
                "said": text,
                "turns": len(state.state["checkpoints"]),
                "data": state.state["data"],
                "plan": [item.is_done for item in plan.items],
                "last": thread.get("last"),
            }


async def main() -> None:
    global app
    if "MODEL_URL" not in os.environ:
        os.environ["MODEL_URL"] = await FakeModel(seconds_per_word=0.2).serve()
    topic = sys.argv[1] if len(sys.argv) > 1 else "tides"
    print(f"when it asks: perdure approve notes-{topic}", flush=True)
    async with Perdure() as app:
        print(await app.run(f"notes-{topic}", take_notes, f"notes-{topic}", topic, "."))


if __name__ == "__main__":
    asyncio.run(main())
