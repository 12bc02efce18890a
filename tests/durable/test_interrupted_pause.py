"""An attempt that is cancelled while its pause is being written lets go of its task."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from perdure import Perdure, durable, pause
from perdure._store import Store


@pytest.mark.req("R34")
async def test_a_task_whose_worker_left_just_as_it_paused_goes_on_in_the_same_process(
    shared_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @durable(name="interrupted pause")
    async def asking() -> str:
        return str(await pause.input("Which?", str))

    write = Store.verb
    cancelled: list[str] = []

    def verb(self: Store, name: str, *args: Any, **kwargs: Any) -> Any:
        queued = write(self, name, *args, **kwargs)
        if name == "suspend" and not cancelled:
            cancelled.append(name)
            current = asyncio.current_task()
            assert current is not None
            current.cancel()  # what is queued is written all the same
        return queued

    monkeypatch.setattr(Store, "verb", verb)
    async with Perdure(shared_url) as app:
        with pytest.raises(asyncio.CancelledError):
            await app.run("work", asking)
        task = await app.tasks.handle("work")
        if task.is_paused:
            await task.answer("this one", by="ada")
            assert await app.run("work", asking) == "this one"
        else:
            going = asyncio.ensure_future(app.run("work", asking))
            await app.tasks.wait_for("work", status="paused")
            await task.answer("this one", by="ada")
            assert await going == "this one"
