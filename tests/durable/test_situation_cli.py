"""`perdure tasks`, `perdure show` and `perdure where` tell one sentence; so does blocking code."""

from __future__ import annotations

import asyncio
import json

import pytest

from perdure import Perdure, durable, sync
from perdure.cli import main


@durable(name="situation: digest")
async def digest() -> None: ...


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


@pytest.mark.req("R94")
def test_the_three_commands_say_why_a_task_is_not_running(shared_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    async def begin() -> None:
        async with Perdure(shared_url) as app:
            await app.start("digest", digest)
            task = await app.tasks.open("ship", state={})
            await task.pause("Ship it?", reason="human_approval")

    asyncio.run(begin())
    store = ("--store", shared_url)
    table = told(capsys, "tasks", *store)
    assert "stuck: no worker is running" in table and "you: Ship it?" in table and "why" in table
    assert "Stuck: no worker is running" in told(capsys, "show", "digest", *store)
    assert "Stuck: no worker is running" in told(capsys, "where", "digest", *store)
    shown = json.loads(told(capsys, "--json", "show", "ship", *store))
    assert (shown["situation"]["kind"], shown["situation"]["you"]) == ("you", 1)
    assert json.loads(told(capsys, "--json", "where", "ship", *store))["situation"] == shown["situation"]


def test_blocking_code_asks_the_same(shared_url: str) -> None:
    with sync.Perdure(shared_url) as app:
        task = app.tasks.open("plain", state={})
        found = app.situation("plain")
        assert found.kind in ("idle", "working")
        assert app.situations(app.tasks.page().items)[task.uid].kind == found.kind
