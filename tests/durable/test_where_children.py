"""`where` of a task tells what those it has started are in the middle of."""

from __future__ import annotations

import pytest

from perdure import Perdure, durable
from perdure._durable import where


@pytest.mark.req("R15", "R141")
async def test_a_function_started_under_a_command_is_the_commands_child(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @durable
    async def steps() -> None: ...

    async with Perdure(url) as app:
        await app.tasks.open("migrate-prod", state={})
        monkeypatch.setenv("PERDURE_TASK", "migrate-prod")
        await app.start("migrate-prod/steps", steps)

        found = await where(app.tasks, "migrate-prod")
        assert [(child.id, child.status) for child in found.children] == [("migrate-prod/steps", "running")]

        await app.run("migrate-prod/steps", steps)
        assert (await where(app.tasks, "migrate-prod")).children == []
