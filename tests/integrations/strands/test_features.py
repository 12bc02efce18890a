"""What the guide says of sessions, interrupts, settled tools, streams, and an agent outside of a durable function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from strands import Agent, ToolContext, tool
from strands.session import SnapshotSessionManager
from strands.types.exceptions import ModelThrottledException

from perdure import Perdure, durable
from perdure.errors import InvalidInput
from perdure.integrations.strands import DurableAgent, PerdureStorage
from tests.integrations.strands.agents import Scripted, call, results, text


class Says(Scripted):
    """Calls a tool once, then repeats what it was told."""

    def __init__(self, name: str = "pay", **arguments: Any) -> None:
        self.call, self.asked = call("call-1", name, **arguments), 0

    def says(self, told: list[dict[str, Any]]) -> list[dict[str, Any]]:
        self.asked += 1
        return text(f"told: {told[-1]['status']} {told[-1]['content'][0].get('text')}") if told else self.call


def maker(model: Scripted, *tools: Any, **options: Any) -> Callable[[], Agent]:
    return lambda: Agent(model=model, tools=list(tools), **{"callback_handler": None, **options})


def breaking(ran: list[str]) -> Any:
    @tool
    async def pay() -> str:
        """Pay."""
        ran.append("pay")
        if len(ran) == 1:
            raise TimeoutError("no answer from the bank")
        return "paid"

    return pay


@pytest.mark.parametrize(
    "choice, value, told",
    [
        ("done", "receipt 7", "told: success receipt 7"),
        ("done", None, "told: success It happened. Its result is not known."),
        ("retry", None, "told: success paid"),
    ],
)
async def test_the_model_is_told_what_a_person_says_of_a_tool(
    folder: Any, choice: Any, value: str | None, told: str
) -> None:
    ran: list[str] = []
    agent = DurableAgent(maker(Says(), breaking(ran)))

    @durable
    async def work() -> str:
        return str(await agent.run("go")).strip()

    async with Perdure(folder / "p.db") as app:
        assert (await app.run_until_paused("w", work)).is_paused
        (question,) = (await app.inbox.page()).items
        await app.inbox.settle(question.id, choice, value=value)
        assert await app.run("w", work) == told
    assert len(ran) == (2 if choice == "retry" else 1)


async def test_an_interrupt_of_a_tool_is_answered_in_the_inbox(folder: Any) -> None:
    ran: list[str] = []

    @tool(context=True)
    def pay(tool_context: ToolContext) -> str:
        """Pay."""
        ran.append("began")
        said = tool_context.interrupt("which account", reason={"choose": ["a", "b"]})
        return f"paid from {said}"

    model = Says()
    agent = DurableAgent(maker(model, pay))

    @durable
    async def work() -> str:
        return str(await agent.run("go")).strip()

    async with Perdure(folder / "p.db") as app:
        stopped = await app.run_until_paused("w", work)
        assert stopped.is_paused and stopped.pause is not None and "which account" in stopped.pause.message
        (question,) = (await app.inbox.page()).items
        await app.inbox.answer(question.id, "b")
        assert await app.run("w", work) == "told: success paid from b"
    assert ran == ["began", "began"] and model.asked == 2


async def test_a_session_goes_on_in_the_next_run_and_holds_each_message_once(folder: Any) -> None:
    async with Perdure(folder / "p.db") as app:
        seen: list[int] = []

        class Counts(Scripted):
            def says(self, told: list[dict[str, Any]]) -> list[dict[str, Any]]:
                return text(f"{len(told)}")

        def make() -> Agent:
            return Agent(model=Counts(), callback_handler=None)

        durably = DurableAgent(make, app=app, session="talk/1")

        @durable
        async def work(prompt: str) -> int:
            result = await durably.run(prompt)
            seen.append(len(result.message["content"]))
            return len(await app.storage.list("strands-session/"))

        assert await app.run("w-1", work, "one") == 2
        assert await app.run("w-2", work, "two") == 4
        await durably.run("three")  # outside of a durable function
        assert len(await app.storage.list("strands-session/")) == 6


async def test_events_come_live_and_once_and_the_model_is_not_asked_again(folder: Any) -> None:
    events: list[str] = []
    model = Says("look")

    @tool
    async def look() -> str:
        """Look."""
        return "seen"

    def hears(**event: Any) -> None:
        events.extend(["data"] if "data" in event else [])

    agent = DurableAgent(maker(model, look, callback_handler=hears), how={"look": "step"}, approve=["look"])

    @durable
    async def work() -> list[Any]:
        result = await agent.run("go")
        usage = result.metrics.accumulated_usage
        return [str(result).strip(), usage["totalTokens"]]

    async with Perdure(folder / "p.db") as app:
        assert (await app.run_until_paused("w", work)).is_paused
        await app.inbox.approve((await app.inbox.page()).items[0].id)
        assert await app.run("w", work) == ["told: success seen", 6]  # what a replay was charged counts too
    assert model.asked == 2 and events == ["data"]


async def test_a_throttled_model_is_asked_again_by_strands_itself(folder: Any) -> None:
    class Throttled(Says):
        def says(self, told: list[dict[str, Any]]) -> list[dict[str, Any]]:
            if not self.asked:
                self.asked += 1
                raise ModelThrottledException("too many")
            return super().says(told)

    class AtOnce:
        """Strands' own strategy waits for seconds."""

        def register_hooks(self, registry: Any, **_: Any) -> None:
            from strands.hooks import AfterModelCallEvent

            registry.add_callback(AfterModelCallEvent, self.again)

        def again(self, event: Any) -> None:
            event.retry = isinstance(event.exception, ModelThrottledException)

    @tool
    async def look() -> str:
        """Look."""
        return "seen"

    agent = DurableAgent(maker(Throttled("look"), look, retry_strategy=None, hooks=[AtOnce()]))

    @durable
    async def work() -> str:
        return str(await agent.run("go")).strip()

    async with Perdure(folder / "p.db") as app:
        assert await app.run("w", work) == "told: success seen"


async def test_binary_and_huge_output_and_unknown_tools_reach_the_model_as_in_strands(folder: Any) -> None:
    picture = {"image": {"format": "png", "source": {"bytes": b"\x89PNG\0\xff" * 200_000}}}

    class Twice(Scripted):
        def says(self, told: list[dict[str, Any]]) -> list[dict[str, Any]]:
            if told:
                assert told[0]["content"] == [picture] and "Unknown tool" in told[1]["content"][0]["text"]
                return text("seen")
            return [*call("same", "show"), *call("other", "none")]

    @tool
    async def show() -> dict[str, Any]:
        """Show a picture."""
        return {"status": "success", "content": [picture]}

    agent = DurableAgent(maker(Twice(), show), approve=["none"])

    @durable
    async def work() -> str:
        return str(await agent.run("go")).strip()

    async with Perdure(folder / "p.db") as app:
        assert await app.run("w", work) == "seen"


async def test_outside_of_a_durable_function_the_agent_is_as_it_was() -> None:
    ran: list[str] = []
    told = str(await DurableAgent(maker(Says(), breaking(ran)), approve=["pay"]).run("go"))
    assert "told: error Error: TimeoutError" in told and ran == ["pay"]  # Strands' own text for errors
    with pytest.raises(InvalidInput):
        DurableAgent(maker(Says()), how={"pay": "twice"})  # type: ignore[dict-item]
    with pytest.raises(InvalidInput, match="app"):
        DurableAgent(maker(Says()), session="talk")


async def test_a_storage_keeps_strands_own_snapshots_and_is_refused_in_a_durable_function(folder: Any) -> None:
    async with Perdure(folder / "p.db") as app:
        storage = PerdureStorage(app)

        def make() -> Agent:
            manager = SnapshotSessionManager("talk-1", storage=storage)
            return Agent(model=Says("look"), session_manager=manager, callback_handler=None, agent_id="a")

        await make().invoke_async("go")
        again = make()
        assert len(results(again.messages)) == 1  # another process goes on
        assert await storage.list("session/talk-1/") and await storage.list("session/talk-2/") == []
        assert await storage.read("a/../b") is None
        await storage.write("a", b"\0\xff")
        assert await storage.read("a") == b"\0\xff"
        await storage.delete("a")
        await storage.delete("a")
        assert await storage.read("a") is None

        @durable
        async def work() -> None:
            await storage.read("a")

        with pytest.raises(InvalidInput, match="session="):
            await app.run("w", work)
