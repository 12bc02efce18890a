"""An agent that the crash tests kill: looks three times in parallel, pays, and refunds after an approval."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationContext,
    FunctionInvocationLayer,
    FunctionMiddleware,
    Message,
    tool,
)

from perdure import Perdure, durable
from perdure.integrations.agent_framework import DurableAgent, PerdureHistory
from tests.integrations.crash_kit import Fate, Ledger, on_disk
from tests.support.processes import Link

_now: dict[str, Any] = {}  # the ledger and the fate of this process


def call(name: str, id: str, **arguments: Any) -> Content:
    return Content.from_function_call(id, name, arguments=arguments)


class Script(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """A model that counts how often it is asked, by how many results it has seen."""

    async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> ChatResponse:
        answered = sum(one.type == "function_result" for message in messages for one in message.contents)
        _now["ledger"].note(f"model {answered}")
        _now["fate"].passes(f"model {answered}")
        says: Any = {
            0: [call("look", f"look-{number}", x=number) for number in (1, 2, 3)],
            3: [call("pay", "pay-1", cents=5)],
            4: [call("refund", "refund-1", cents=5)],
        }.get(answered, ["done"])
        return ChatResponse(messages=[Message("assistant", says)])


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


@tool(approval_mode="always_require")
def refund(cents: int) -> str:
    """Give money back; a plain function."""
    _now["ledger"].note("refund")
    return "refunded"


class Watch(FunctionMiddleware):
    """perdure has the outcome of a tool, the messages of the agent do not."""

    async def process(self, context: FunctionInvocationContext, call_next: Any) -> None:
        await call_next()
        await on_disk()
        _now["fate"].passes(f"{context.function.name} returned")


@durable
async def clerk(question: str) -> str:
    history = PerdureHistory(_now["app"])
    inner = Agent(client=Script(), tools=[look, pay, refund], context_providers=[history], middleware=[Watch()])
    agent = DurableAgent(inner, how={"look": {"kind": "step", "flush": True}})
    return (await agent.run(question, session=inner.create_session(session_id="talk/1"))).text


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
        messages = await PerdureHistory(app).get_messages("talk/1")
        return stopped.result, [one.type for message in messages for one in message.contents]
