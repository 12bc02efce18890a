"""Dry runs of cancel and rollback, and a rollback that a process without the effects' code leaves to a worker."""

from __future__ import annotations

import pytest

from perdure import Perdure
from perdure._durable.effects import undo as undoing
from tests.durable.effects_kit import until_paused
from tests.durable.test_rolling import _nothing_happened, rolling_pages, world

__all__ = ["_nothing_happened"]


async def test_a_dry_run_lists_effects_and_changes_nothing(url: str) -> None:
    async with Perdure(url) as app:
        await until_paused(app, "job", rolling_pages, 5)
        task = await app.tasks.handle("job")
        before = await task.record()
        found = await task.rollback("2", undo=True, dry_run=True)
        assert found is not None and [one.call for one in found.undone] == ["publish(3)", "publish(2)"]
        kept = await task.rollback("2", undo=False, dry_run=True)
        assert kept is not None and len(kept.kept) == 2 and not kept.undone
        whole = await task.cancel(dry_run=True)
        assert whole is not None and len(whole.undone) == 4 and not whole.uncertain and not whole.children
        assert await task.record() == before and world.undone == []


async def test_a_rollback_without_the_effects_code_is_fulfilled_by_a_worker(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Perdure(url) as app:
        await until_paused(app, "job", rolling_pages, 5)
        task = await app.tasks.handle("job")
        monkeypatch.setattr(undoing, "known_effect", lambda name, home: None)
        await task.rollback("2", undo=True)
        assert world.undone == [] and (await app.tasks.events("job"))[-1].kind != "rolled back"
        assert "rollback asked for" in [event.kind for event in await app.tasks.events("job")]
        monkeypatch.undo()
        await until_paused(app, "job", rolling_pages, 5)
        assert world.undone == ["page 3", "page 2"]
        assert world.done[-2:] == ["page 2", "page 3"] and len(world.done) == 6
        assert [event.kind for event in await app.tasks.events("job")].count("rolled back") == 1
