"""An agent with two tools and an approval; the model is a script. Kill it anywhere and run it again.

python examples/agents/tools.py          # then: perdure approve mail-agent
"""

import asyncio
import json
from pathlib import Path

from perdure import Perdure, durable, effect, model_call, pause, step
from perdure.effects import DID_NOT_HAPPEN, Happened
from perdure.pause import Rejected

OUTBOX = Path("outbox.txt")


@model_call(model="a-script")
async def think(messages: list[dict[str, str]]) -> dict[str, str]:
    """A fake model: it searches, writes a mail, and stops."""
    await asyncio.sleep(0.05)
    print("the model thinks", flush=True)
    turns = [
        {"tool": "search", "text": "opening hours"},
        {"tool": "send", "text": "We open at nine."},
        {"tool": "", "text": "The mail is sent."},
    ]
    return turns[sum(message["role"] == "tool" for message in messages)]


@step
async def search(text: str) -> str:
    await asyncio.sleep(0.05)
    print("searching", flush=True)
    return f"{text}: from nine to five"


def is_sent(text: str) -> object:
    return Happened("sent") if OUTBOX.exists() and text in OUTBOX.read_text() else DID_NOT_HAPPEN


@effect(verify=is_sent)
def send(text: str) -> str:
    with OUTBOX.open("a") as outbox:
        outbox.write(f"{text}\n")
    print("mail is out", flush=True)
    return "sent"


async def use_tool(name: str, text: str) -> str:
    if name == "search":
        return await search(text)
    try:
        await pause.approval(f"Send {text!r}?")
    except Rejected as no:
        return f"not sent: {no}"
    return send(text)


@durable
async def agent(question: str) -> str:
    messages = [{"role": "user", "content": question}]
    while (turn := await think(messages))["tool"]:
        messages.append({"role": "assistant", "content": json.dumps(turn)})
        messages.append({"role": "tool", "content": await use_tool(turn["tool"], turn["text"])})
    return turn["text"]


async def main() -> None:
    async with Perdure() as app:
        stopped = await app.run_until_paused("mail-agent", agent, "When do we open?")
        print(f"waits for: {stopped.waits_for}" if stopped.is_paused else f"done: {stopped.result}", flush=True)


asyncio.run(main())
