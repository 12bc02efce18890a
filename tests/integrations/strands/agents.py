"""An agent that the crash tests kill: looks three times in parallel, pays, and refunds after an approval."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from strands import Agent, tool
from strands.middleware import ExecuteToolStage
from strands.models import Model

from perdure import Perdure, durable
from perdure.integrations.strands import DurableAgent
from tests.integrations.crash_kit import Fate, Ledger, on_disk
from tests.support.processes import Link

_now: dict[str, Any] = {}  # the ledger and the fate of this process


def call(id: str, name: str, **arguments: Any) -> list[dict[str, Any]]:
    return [
        {"contentBlockStart": {"start": {"toolUse": {"toolUseId": id, "name": name}}}},
        {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(arguments)}}}},
        {"contentBlockStop": {}},
    ]


def text(said: str) -> list[dict[str, Any]]:
    return [
        {"contentBlockStart": {"start": {}}},
        {"contentBlockDelta": {"delta": {"text": said}}},
        {"contentBlockStop": {}},
    ]


def results(messages: Any) -> list[dict[str, Any]]:
    return [block["toolResult"] for one in messages for block in one["content"] if "toolResult" in block]


class Scripted(Model):
    """A model that says what `says` makes of the results of tools in the conversation."""

    def update_config(self, **config: Any) -> None: ...

    def get_config(self) -> dict[str, Any]:
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def says(self, told: list[dict[str, Any]]) -> list[dict[str, Any]]:
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        blocks = self.says(results(messages))
        yield {"messageStart": {"role": "assistant"}}
        for event in blocks:
            yield event
        yield {"messageStop": {"stopReason": "tool_use" if "toolUse" in json.dumps(blocks) else "end_turn"}}
        usage = {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}}


class Counting(Scripted):
    """Counts how often it is asked, by how many results it has seen."""

    def says(self, told: list[dict[str, Any]]) -> list[dict[str, Any]]:
        _now["ledger"].note(f"model {len(told)}")
        _now["fate"].passes(f"model {len(told)}")
        looks = [event for x in (1, 2, 3) for event in call(f"look-{x}", "look", x=x)]
        script = {0: looks, 3: call("pay-1", "pay", cents=5), 4: call("refund-1", "refund", cents=5)}
        return script.get(len(told), text("done"))


@tool
async def look(x: int) -> str:
    """Look at a thing."""
    _now["ledger"].note(f"look {x}")
    _now["fate"].passes(f"look {x}")
    return f"seen {x}"


@tool
async def pay(cents: int) -> str:
    """Pay."""
    _now["ledger"].note("pay")
    _now["fate"].passes("pay")
    if _now["breaks"]:
        raise TimeoutError("no answer from the bank")
    return "paid"


@tool
def refund(cents: int) -> str:
    """Give money back; a plain function."""
    _now["ledger"].note("refund")
    return "refunded"


async def watch(context: Any, call_next: Any) -> AsyncIterator[Any]:
    """perdure has the outcome of a tool, the messages of the agent do not."""
    async for event in call_next(context):
        yield event
    await on_disk()
    _now["fate"].passes(f"{context.tool_use['name']} returned")


def make_agent() -> Agent:
    agent = Agent(model=Counting(), tools=[look, pay, refund], callback_handler=None)
    agent.add_middleware(ExecuteToolStage, watch)
    return agent


@durable
async def clerk(question: str) -> list[Any]:
    how: Any = {"look": {"kind": "step", "flush": True}}
    agent = DurableAgent(make_agent, how=how, approve=["refund"], app=_now["app"], session="talk/1")
    result = await agent.run(question)
    return [str(result).strip(), len(results(await _kept().get()))]


def _kept() -> Any:
    return DurableAgent(make_agent, app=_now["app"], session="talk/1")._messages


async def clerk_life(
    link: Link, url: str, path: Path, point: str, answers: Sequence[str] = (), breaks: bool = False
) -> Any:
    """Answers what the task asks with `answers`, in order; the kind of what is asked when there are none left."""
    async with Perdure(url) as app:
        _now.update(ledger=Ledger(path), fate=Fate(point), app=app, breaks=breaks)
        left = list(answers)
        while not (stopped := await app.run_until_paused("clerk-1", clerk, "hello")).is_finished:
            _now["fate"].passes("asked")
            (question,) = (await app.inbox.page()).items
            if not left:
                return question.kind
            if question.kind == "approval":
                await (app.inbox.approve if left.pop(0) == "approve" else app.inbox.reject)(question.id)
            else:
                await app.inbox.settle(question.id, left.pop(0))  # type: ignore[arg-type]
        return stopped.result
