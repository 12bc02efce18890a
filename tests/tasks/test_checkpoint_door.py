"""`app.checkpoints`: listed without what they hold, looked into by part and path, compared across tasks."""

from __future__ import annotations

import dataclasses

import pytest

from perdure import Perdure
from perdure._tasks import store_of
from perdure.errors import InvalidInput, NotFound
from perdure.types import Change


async def filled(app: Perdure, id: str, number: int) -> str:
    task = await app.tasks.create(id, state={"n": 0})
    for n in range(1, number + 1):
        await task.checkpoint({"n": n, "files": [{"name": f"f{n}"}]}, label=f"nr {n}", plan={"next": n + 1})
    return task.uid


async def test_a_page_lists_checkpoints_without_reading_what_they_hold(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Perdure(url) as app:
        uid = await filled(app, "job", 5)
        engine, asked = store_of(app.tasks).engine, []
        query = engine.query
        monkeypatch.setattr(engine, "query", lambda name, params: asked.append(name) or query(name, params))
        first = await app.checkpoints.page("job", limit=3)
        assert [(one.seq, one.label) for one in first] == [(1, "nr 1"), (2, "nr 2"), (3, "nr 3")]
        assert first.cursor == "3" and first.items[0].id == f"{uid}.1" and first.items[0].size > 0
        rest = await app.checkpoints.page("job", after=3, limit=3)
        assert [one.seq for one in rest] == [4, 5] and rest.cursor is None
        assert "read_checkpoint_heads" in asked and not {"read_checkpoints", "read_chain"} & set(asked)


async def test_a_part_of_a_checkpoint_is_given_by_its_path(url: str) -> None:
    async with Perdure(url) as app:
        await filled(app, "job", 2)
        get = app.checkpoints.get
        assert await get("job", 2) == {
            "state": {"n": 2, "files": [{"name": "f2"}]},
            "plan": {"next": 3},
            "memory": None,
            "partial": None,
            "pending": None,
        }
        assert await get("job", 1, part="plan") == {"next": 2}
        assert await get("job", 1, part="state", path=["files", 0, "name"]) == "f1"
        for path in (["files", 1], ["files", "name"], ["n", 0], ["files", -1]):
            with pytest.raises(NotFound):
                await get("job", 1, part="state", path=path)
        with pytest.raises(NotFound):
            await get("job", 9)
        with pytest.raises(InvalidInput):
            await get("job", 1, part="odd")  # type: ignore[arg-type]
        with pytest.raises(InvalidInput):
            await get("job", 1, path=["files"])


async def test_states_are_compared_with_now_and_with_another_tasks(url: str) -> None:
    async with Perdure(url) as app:
        await filled(app, "job", 3)
        other = await filled(app, "other", 1)
        diff = app.checkpoints.diff
        assert list(await diff("job", 2)) == list(await diff("job", "2", "3"))
        assert Change(("n",), "changed", 3, 1) in (await diff("job", "now", f"{other}.1")).changes
        assert (await diff("job", 1, f"{other}.1")).total == 0
        assert (await diff("job", 1, 3, limit=1)).total == 2
        async with Perdure(url, namespace="elsewhere") as stranger:
            uid = await filled(stranger, "theirs", 1)
        for name in ("9", "odd", f"{uid}.1", "x.1"):
            with pytest.raises(NotFound):
                await diff("job", 1, name)


async def test_a_state_whose_classes_are_not_known_here_is_shown_by_its_fields(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from perdure._ground.encoding import class_fields
    from perdure.types import register

    @dataclasses.dataclass
    class Mood:
        word: str

    register(Mood)
    async with Perdure(url) as app:
        task = await app.tasks.create("job", state={"mood": Mood("calm")})
        await task.checkpoint({"mood": Mood("wild")})
        await task.checkpoint({"mood": Mood("mild")})
        monkeypatch.setattr(class_fields, "_registered", {})
        class_fields.known_to.cache_clear()
        assert await app.checkpoints.get("job", 1, part="state", path=["mood", "word"]) == "wild"
        assert list(await app.checkpoints.diff("job", 1)) == [Change(("mood", "word"), "changed", "wild", "mild")]
    monkeypatch.undo()
    class_fields.known_to.cache_clear()
