"""An agent with a plan and a memory; kill it half-way, and its next prompt shows what is done and what is left.

    python examples/planning_agent.py            # Ctrl-C or kill -9 it, then run the same line again

The model is a function in this file that reads its prompt, as a model would: it does the first open item of the
plan, by a tool, and nothing else. Everything it knows, it knows from the prompt.
"""

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

from perdure import Perdure
from perdure.memory import Block, ContinuityLayer, DurableTaskState, PlanLayer

TASK = "write-the-handbook"
CHAPTERS = ["install", "first steps", "tasks", "effects", "memory"]
OUT = Path("handbook")
PAUSE = float(sys.argv[1]) if len(sys.argv) > 1 else 0.3


def model(prompt: str) -> dict[str, Any]:
    """What the model says: one tool call, or that it is done."""
    if "<plan>" not in prompt:
        return {"tool": "write_plan", "arguments": {"items": [f"write {chapter}" for chapter in CHAPTERS]}}
    left = re.search(r"^(\d+)\. write (.+)$", prompt, re.MULTILINE)
    if left is None:
        return {"say": "The handbook is written."}
    return {"chapter": left[2], "item": int(left[1])}


async def main() -> None:
    layers = [ContinuityLayer(), DurableTaskState(base_dir=OUT), PlanLayer()]
    async with Perdure() as app, app.memory(TASK, layers) as memory:
        task = await app.tasks.open(TASK)
        if task.is_finished:
            print("finished already")
            return
        async with task.attempt():
            for turn in range(50):
                blocks = await memory.prompt_blocks(budget=2_000)
                show(blocks)
                said = model("\n".join(block.text for block in blocks))
                await asyncio.sleep(PAUSE)
                if "say" in said:
                    await memory.complete("success")
                    await task.complete(said["say"])
                    print("model:", said["say"])
                    return
                await act(memory, said)
                await memory.after_turn(depth=turn)


async def act(memory: Any, said: dict[str, Any]) -> None:
    """Do what the model asked for."""
    if "tool" in said:
        await memory.call_tool(said["tool"], said["arguments"])
        return
    name = f"{said['chapter'].replace(' ', '-')}.md"
    await memory.layer("task_state").write_artifact(name, f"# {said['chapter']}\n")
    await memory.call_tool("set_task_data", {"values": {"last": said["chapter"]}})
    await memory.call_tool("tick_plan", {"item": said["item"]})
    print("wrote", name, flush=True)


def show(blocks: Any) -> None:
    """What the model is told, in a line each."""
    for block in blocks:
        assert isinstance(block, Block)
        first = " ".join(block.text.split("\n")[1:2])
        print("prompt:", first if not first.startswith("{") else _in_short(json.loads(first)), flush=True)


def _in_short(state: dict[str, Any]) -> str:
    last = state["data"].get("last", "nothing")
    return f"{len(state['checkpoints'])} turns, {len(state['files'])} files, last {last}"


asyncio.run(main())
