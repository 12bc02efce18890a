"""A plain model loop with a tool. Kill it half-way and run the same line again: no call is paid for twice.

    python examples/model_loop.py            # Ctrl-C or kill -9 it, then run it again

It asks a fake model on this machine, which it starts itself; MODEL_URL names another one.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from fake_model import Client, FakeModel

from perdure import Perdure, Retry, durable, effect, model_call, stream
from perdure.effects import DID_NOT_HAPPEN, Happened
from perdure.models import Budget, Price
from perdure.streams import Prefix, account_of

NOTES = Path("notes.txt")
Message = dict[str, str]


def model() -> Client:
    return Client(os.environ["MODEL_URL"])


@model_call(model="fake-1", price=Price(input=3.0, output=15.0), retry=Retry(5, wait="200ms"))
async def ask(messages: list[Message]) -> dict[str, Any]:
    """One turn of the model. What it has said is kept word by word; cut off, it is asked for the rest only."""
    usage: dict[str, int] = {}

    async def words(prefix: Prefix) -> AsyncIterator[str]:
        async for piece in model().stream(messages, prefix):
            if "usage" in piece:
                usage.update(piece["usage"])
            else:
                yield piece["text"]

    text = ""
    async for word in stream("answer", words):
        print(word, end="", flush=True)
        text += word
    print()
    return {"text": text, "usage": usage}


def is_written(note: str) -> Any:
    return Happened("written") if NOTES.exists() and note in NOTES.read_text().splitlines() else DID_NOT_HAPPEN


@effect(verify=is_written)
async def write_note(note: str) -> str:
    """The tool: it touches the world, so it is never repeated without a look at the world."""
    await asyncio.to_thread(append, note)
    return "written"


def append(note: str) -> None:
    with NOTES.open("a") as file:
        file.write(f"{note}\n")


@durable
async def research(topic: str) -> str:
    messages: list[Message] = [{"role": "user", "content": f"Research {topic} and write notes."}]
    while True:
        text = str((await ask(messages))["text"])
        messages.append({"role": "assistant", "content": text})
        if not text.startswith("TOOL write_note "):
            return text
        messages.append({"role": "tool", "content": await write_note(text.removeprefix("TOOL write_note "))})


async def main() -> None:
    if "MODEL_URL" not in os.environ:
        os.environ["MODEL_URL"] = await FakeModel(seconds_per_word=0.2).serve()
    topic = sys.argv[1] if len(sys.argv) > 1 else "tides"
    async with Perdure() as app:
        result = await app.run(f"research-{topic}", research.options(budget=Budget(tokens=10_000)), topic)
        print("result:", result)
        print((await account_of(app, f"research-{topic}")).saved)


asyncio.run(main())
