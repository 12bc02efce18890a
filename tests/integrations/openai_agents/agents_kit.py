"""An OpenAI agent that the crash tests kill: looks three times in parallel, pays, refunds after an approval."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents import Agent, Model, RunConfig, RunHooks, Usage, function_tool
from agents.items import ModelResponse
from agents.testing import assistant_message, function_call

from perdure import Perdure, durable
from perdure.integrations.openai_agents import DurableRunner, PerdureSession, durable_tool
from tests.integrations.crash_kit import Fate, Ledger, on_disk
from tests.support.processes import Link

_now: dict[str, Any] = {}
QUIET = RunConfig(tracing_disabled=True)


class Script(Model):
    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        outputs = [one for one in input if one.get("type") == "function_call_output"] if isinstance(input, list) else []
        answered = len(outputs)
        _now["ledger"].note(f"model {answered}")
        _now["fate"].passes(f"model {answered}")
        says: Any = {
            0: [function_call("look", {"x": number}, call_id=f"look-{number}") for number in (1, 2, 3)],
            3: [function_call("pay", {"cents": 5}, call_id="pay-1")],
            4: [function_call("refund", {"cents": 5}, call_id="refund-1")],
        }.get(answered, [assistant_message("done")])
        usage = Usage(requests=1, input_tokens=3, output_tokens=2, total_tokens=5)
        return ModelResponse(output=says, usage=usage, response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


@durable_tool(how={"kind": "step", "flush": True})
async def look(x: int) -> str:
    """Look at a thing."""
    _now["ledger"].note(f"look {x}")
    _now["fate"].passes(f"look {x}")
    return f"seen {x}"


@function_tool  # with the SDK's own text for errors: it is recorded below that
async def pay(cents: int) -> str:
    """Pay."""
    _now["ledger"].note("pay")
    _now["fate"].passes("pay")
    if _now.get("breaks"):
        raise TimeoutError("no answer from the bank")
    return "paid"


@function_tool(needs_approval=True)
def refund(cents: int) -> str:
    """Give money back; a plain function."""
    _now["ledger"].note("refund")
    return "refunded"


class Watch(RunHooks[Any]):
    """perdure has the outcome of a tool, the items of the run do not."""

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: object) -> None:
        await on_disk()
        _now["fate"].passes(f"{tool.name} returned")


agent = Agent(name="clerk", model=Script(), tools=[look, pay, refund])


@durable
async def clerk(question: str) -> str:
    session = PerdureSession(_now["app"], "talk/1")
    return str(
        (await DurableRunner.run(agent, question, run_config=QUIET, session=session, hooks=Watch())).final_output
    )


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
        items = await PerdureSession(app, "talk/1").get_items()
        return stopped.result, [str(one.get("type") or one.get("role")) for one in items]
