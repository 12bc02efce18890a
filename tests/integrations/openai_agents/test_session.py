"""A session answers as the SDK's own does, whatever is done to it; and events of a streamed run replay."""

from __future__ import annotations

from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, SQLiteSession
from agents.testing import ScriptedModel, assistant_message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure import Perdure, durable
from perdure.integrations.openai_agents import DurableRunner, PerdureSession
from tests.support.async_tests import blocking

items = st.builds(lambda text: {"role": "user", "content": text}, st.text(max_size=5))
acts = st.lists(
    st.tuples(st.just("add"), st.lists(items, max_size=3))
    | st.tuples(st.just("get"), st.none() | st.integers(0, 4))
    | st.tuples(st.just("pop") | st.just("clear"), st.none()),
    max_size=15,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=acts)
def test_a_session_answers_as_the_sdks_own(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("session")

    async def compare() -> None:
        async with Perdure(f"sqlite://{folder}/p.db") as app:
            oracle = SQLiteSession("s/1")
            ours = PerdureSession(app, "s/1")
            await PerdureSession(app, "s").add_items([{"role": "user", "content": "another session"}])
            for act, value in acts:
                told = []
                for session in (ours, oracle):
                    if act == "add":
                        told.append(await session.add_items(value))
                    elif act == "get":
                        told.append(await session.get_items(value))
                    elif act == "pop":
                        told.append(await session.pop_item())
                    else:
                        told.append(await session.clear_session())
                assert told[0] == told[1]
            oracle.close()

    blocking(compare)()


async def test_a_session_outlives_its_process_and_feeds_the_next_run(shared_url: str) -> None:
    quiet = RunConfig(tracing_disabled=True)
    for text in ("one", "two"):
        async with Perdure(shared_url) as app:
            model = ScriptedModel([[assistant_message(text)]])
            agent = Agent(name="a", model=model)
            await Runner.run(agent, "hi", session=PerdureSession(app, "s"), run_config=quiet)
    async with Perdure(shared_url) as app:
        assert len(await PerdureSession(app, "s").get_items()) == 4


async def test_a_streamed_run_gives_its_events_again_when_it_is_replayed(quick_url: str) -> None:
    agent = Agent(name="a", model=ScriptedModel([[assistant_message("only once")]]))
    seen: list[list[str]] = []

    @durable
    async def talk(number: int) -> str:
        run = DurableRunner.run_streamed(agent, "hi", run_config=RunConfig(tracing_disabled=True))
        seen.append([event.type async for event in run.stream_events()])
        if len(seen) == 1:
            raise InterruptedError
        return str(run.final_output)

    async with Perdure(quick_url) as app:
        with pytest.raises(InterruptedError):
            await app.run("t", talk, 1)
        await (await app.tasks.handle("t")).resume()
        assert await app.run("t", talk, 1) == "only once"
    assert seen[0] == seen[1] and len(seen[0]) > 1
