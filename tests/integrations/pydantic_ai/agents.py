"""A Pydantic AI agent that the crash tests kill: looks twice in parallel, pays, and refunds after an approval."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, ModelHTTPError, ModelRateLimitError
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from perdure import Perdure, durable
from perdure.integrations.pydantic_ai import PerdureDurability
from tests.integrations.crash_kit import Fate, Ledger, on_disk
from tests.support.processes import Link

_now: dict[str, Any] = {}  # the ledger and the fate of this process
NAMES = [  # stored in journals: they must not change
    "clerk__model.request",
    "clerk__function_toolset__<agent>.call_tool:look",
    "clerk__function_toolset__<agent>.call_tool:pay",
    "clerk__function_toolset__<agent>.call_tool:refund",
]


async def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    answered = sum(isinstance(message, ModelResponse) for message in messages)
    _now["ledger"].note(f"model {answered}")
    _now["fate"].passes(f"model {answered}")
    if answered == 1 and _now["ledger"].counts()["model 1"] == 1:
        limit = {"status_code": 429, "model_name": "scripted", "retry_after": 0.01}
        raise ModelHTTPError.for_category(ModelRateLimitError, **limit)
    calls = {
        0: [ToolCallPart("look", {"x": 1}, tool_call_id="a"), ToolCallPart("look", {"x": 2}, tool_call_id="b")],
        1: [ToolCallPart("pay", {"cents": 5}, tool_call_id="c")],
        2: [ToolCallPart("refund", {"cents": 5}, tool_call_id="d")],
    }
    return ModelResponse(parts=calls.get(answered, [TextPart("done")]))


class Watch(AbstractCapability[None]):
    """perdure has the outcome of a tool, the messages of the agent do not."""

    async def after_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, result: Any) -> Any:
        await on_disk()
        _now["fate"].passes(f"{call.tool_name} returned")
        return result


agent = Agent(FunctionModel(script), name="clerk", capabilities=[PerdureDurability(), Watch()])


@agent.tool_plain(metadata={"perdure": {"kind": "step", "flush": True}})
async def look(x: int) -> str:
    _now["ledger"].note(f"look {x}")
    _now["fate"].passes(f"look {x}")
    return f"seen {x}"


@agent.tool_plain
async def pay(cents: int) -> str:
    _now["ledger"].note("pay")
    _now["fate"].passes("pay")
    return "paid"


@agent.tool_plain(requires_approval=True)
async def refund(cents: int) -> str:
    _now["ledger"].note("refund")
    _now["fate"].passes("refund")
    return "refunded"


@durable
async def clerk(question: str) -> str:
    return (await agent.run(question)).output


async def clerk_life(link: Link, url: str, path: Path, point: str, answers: Sequence[str] = ()) -> Any:
    """Answers what the task asks with `answers`, in order; returns what is asked when there are none left."""
    _now.update(ledger=Ledger(path), fate=Fate(point))
    left = list(answers)
    async with Perdure(url) as app:
        while not (stopped := await app.run_until_paused("clerk-1", clerk, "hello")).is_finished:
            if stopped.pause is not None and stopped.pause.reason == "rate_limit":
                continue  # it is over within milliseconds
            _now["fate"].passes("asked")
            (question,) = (await app.inbox.page()).items
            if not left:
                return question.kind
            if question.kind == "approval":
                await (app.inbox.approve if left.pop(0) == "approve" else app.inbox.reject)(question.id)
            else:
                await app.inbox.settle(question.id, left.pop(0))  # type: ignore[arg-type]
        names = {call.name for call in (await app.journal.page("clerk-1")).items}
        return stopped.result, sorted(names.intersection(NAMES))
