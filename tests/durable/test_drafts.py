"""Tasks that begin alike: the second one's row is made from the first one's, and nobody can tell."""

from __future__ import annotations

import gc
from datetime import timedelta
from typing import Any
from weakref import ref

import pytest

from perdure import Perdure, durable, step
from perdure._ground.clock import MovableClock
from perdure._ground.secrets.crypto import generate
from perdure._tasks import dump, verify
from perdure.errors import Conflict

OWN = ("uid", "task_uid", "id", "digest", "hash", "event_head")


@step
async def double(number: int) -> int:
    return 2 * number


@durable(name="drafted work")
async def work(number: int) -> int:
    return await double(number)


async def rows_of(app: Perdure, id: str) -> dict[str, Any]:
    """All rows of a task, without what is every task's own."""
    task = await app.tasks.handle(id)
    rows = await dump(app._store, task.uid)
    return {
        table: [{name: value for name, value in row.items() if name not in OWN} for row in found]
        for table, found in rows.items()
    }


@pytest.mark.req("R1")
async def test_a_task_begun_by_a_draft_stands_in_the_store_as_one_begun_without(url: str, clock: MovableClock) -> None:
    async with Perdure(url) as app:
        await app.run("first", work, 1)
        assert list(app.tasks._drafts) == [work.alike]
        await app.run("drafted", work, 7)
        app.tasks._drafts.clear()
        await app.run("undrafted", work, 7)

        assert await rows_of(app, "drafted") == await rows_of(app, "undrafted")
        assert (await verify(app._store)).is_whole


async def test_an_id_in_use_is_attached_to_and_other_arguments_are_refused(url: str) -> None:
    async with Perdure(url) as app:
        await app.run("first", work, 1)
        await app.run("second", work, 2)
        assert await app.run("first", work, 1) == 2
        with pytest.raises(Conflict):
            await app.run("first", work, 3)


async def test_with_a_key_each_row_is_sealed_for_its_own_task(url: str) -> None:
    async with Perdure(url, key=generate()) as app:
        assert await app.run("first", work, 1) == 2
        assert await app.run("second", work, 2) == 4
        assert app.tasks._drafts == {}
        first, second = await rows_of(app, "first"), await rows_of(app, "second")
        assert first["calls"][0]["arguments"] != second["calls"][0]["arguments"]


async def test_what_depends_on_the_moment_makes_no_draft(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Perdure(url) as app:
        await app.run("timed", work.options(timeout=timedelta(hours=1)), 1)
        await app.run("after", work.options(depends_on=["timed"]), 1)
        monkeypatch.setenv("PERDURE_TASK", "timed")
        await app.run("child", work, 1)
        assert app.tasks._drafts == {}
        monkeypatch.delenv("PERDURE_TASK")
        await app.run("plain", work.options(queue="slow", priority=3), 1)
        assert len(app.tasks._drafts) == 1


async def test_drafts_are_not_kept_without_end(url: str) -> None:
    async with Perdure(url) as app:
        for number in range(70):
            await app.run(f"task {number}", work.options(priority=number), number)
        assert len(app.tasks._drafts) <= 64


class Mailer:
    @durable(name="Mailer.drafted")
    async def send(self, text: str) -> int:
        return len(text)


async def test_a_draft_keeps_neither_arguments_nor_the_instance_of_a_method(url: str) -> None:
    mailer = Mailer()
    seen = ref(mailer)
    async with Perdure(url) as app:
        assert await app.run("first", mailer.send, "x" * 100_000) == 100_000
        assert await app.run("second", mailer.send, "xy") == 2
        (draft,) = app.tasks._drafts.values()
        assert draft.columns["arguments"] == b"" and draft.size < 10_000
        del mailer
        gc.collect()
        assert seen() is None
