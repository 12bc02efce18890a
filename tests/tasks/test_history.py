"""Checkpoints: listed in order, compared, gone back to, branched from, set aside."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from perdure import Perdure
from perdure._model import Change, diff
from perdure.errors import Conflict, InvalidTransition, LeaseLost, NotFound
from perdure.types import ToolCall


@pytest.mark.req("R16", "R17")
async def test_checkpoints_are_listed_in_order_with_what_was_stored_and_the_last_is_the_state(url):
    async with Perdure(url) as app:
        task = await app.tasks.open("job", state={"n": 0})
        made = [await task.checkpoint({"n": n, "text": "x" * 50 * n}, label=f"step {n}") for n in (1, 2, 3)]
        listed = [checkpoint async for checkpoint in task.checkpoints()]
        assert [c.id for c in listed] == [c.id for c in made]
        assert [c.data for c in listed] == [c.data for c in made]
        assert [c.label for c in listed] == ["step 1", "step 2", "step 3"]
        assert [c.seq for c in listed] == [1, 2, 3] and listed[1].parent == listed[0].id
        assert all(c.valid and c.size > 0 and c.timestamp.tzinfo is UTC and c.author for c in listed)
        record = await app.tasks.get("job")
        assert record is not None and record.latest == listed[-1] and record.state == made[-1].data


@pytest.mark.req("R24")
async def test_plan_memory_partial_output_and_pending_tool_calls_come_back_as_their_own_fields(url):
    call = ToolCall(id="c1", tool="search", arguments={"q": "x"}, started_at=datetime(2030, 1, 1, 12, tzinfo=UTC))
    async with Perdure(url) as app:
        task = await app.tasks.open("job")
        await task.checkpoint({"n": 1}, plan=["a", "b"], memory={"k": 1}, partial="half a sen", pending=[call])
    async with Perdure(url) as app:
        record = await app.tasks.get("job")
        assert record is not None and record.latest is not None
        latest = record.latest
        assert (latest.plan, latest.memory, latest.partial) == (["a", "b"], {"k": 1}, "half a sen")
        assert list(latest.pending) == [call]


@pytest.mark.req("R18")
async def test_a_rollback_makes_an_earlier_checkpoint_the_state_and_keeps_the_later_ones_readable(url):
    async with Perdure(url) as app:
        task = await app.tasks.open("job", state={"n": 0})
        for n in range(1, 6):
            await task.checkpoint({"n": n})
        await task.rollback("2")
        assert task.state == {"n": 2} and task.status == "running"
        await task.checkpoint({"n": 30})
        listed = [checkpoint async for checkpoint in task.checkpoints()]
        assert [(c.data["n"], c.superseded) for c in listed] == [
            (1, False), (2, False), (3, True), (4, True), (5, True), (30, False),
        ]  # fmt: skip
        assert listed[-1].parent == listed[1].id and listed[-1].line == 2


async def test_an_attempt_going_on_from_the_later_state_cannot_write_after_a_rollback(shared_url):
    async with Perdure(shared_url) as app:
        task = await app.tasks.open("job", state={"n": 0})
        first = await task.checkpoint({"n": 1})
        async with task.attempt():
            hold = app._store.presence.held[task.uid]
            operator = await app.tasks.open("job")
            await operator.rollback(first.id)
            app._store.presence.held[task.uid] = hold  # as another process would still believe
            with pytest.raises(LeaseLost):
                await task.checkpoint({"n": 2})
        assert (await task.record()).state == {"n": 1}


@pytest.mark.req("R18", "R30")
async def test_resume_from_an_earlier_checkpoint_with_a_patch_is_one_write(url):
    async with Perdure(url) as app:
        task = await app.tasks.open("job", state={"n": 0})
        for n in range(1, 4):
            await task.checkpoint({"n": n, "keep": True})
        await task.pause("which way?", reason="human_input")
        await task.resume(checkpoint="1", state={"way": "left"})
        assert task.state == {"n": 1, "keep": True, "way": "left"} and task.status == "running"
        record = await app.tasks.get("job")
        assert record is not None and record.pause is None and record.state == task.state


@pytest.mark.req("R18")
async def test_a_fork_begins_with_its_parents_state_at_a_checkpoint_and_the_parent_does_not_notice(url):
    async with Perdure(url) as app:
        task = await app.tasks.create("job", state={"n": 0}, agent="coder", tags={"t": "1"})
        await task.checkpoint({"n": 1})
        await task.checkpoint({"n": 2})
        before = await app.tasks.get("job")
        fork = await task.fork("job-b", at="1", set={"goal": "other"})
        await fork.checkpoint({"n": 100})
        assert fork.created and fork.status == "running" and fork.uid != task.uid
        assert next(event.data for event in await app.tasks.events("job-b"))["forked_from"] == "job"
        assert await app.tasks.get("job") == before
        record = await app.tasks.get("job-b")
        assert record is not None and record.agent == "coder" and record.tags == {"t": "1"}


@pytest.mark.req("R27")
async def test_diff_names_what_changed_between_two_checkpoints(url):
    async with Perdure(url) as app:
        task = await app.tasks.open("job")
        await task.checkpoint({"phase": "a", "files": ["x"], "old": 1})
        await task.checkpoint({"phase": "b", "files": ["x", "y"], "new": 2})
        assert await task.diff("1", "2") == [
            Change(("phase",), "changed", "a", "b"),
            Change(("files", 1), "added", None, "y"),
            Change(("old",), "removed", 1),
            Change(("new",), "added", None, 2),
        ]


def test_diff_tells_values_of_different_kinds_apart_even_when_they_are_equal():
    assert list(diff({"a": 1}, {"a": True})) == [Change(("a",), "changed", 1, True)]
    assert list(diff([1, [2]], [1, [3]])) == [Change((1, 0), "changed", 2, 3)]
    assert list(diff({"a": {"b": 1}}, {"a": {"b": 1}})) == []


@pytest.mark.req("R92")
async def test_invalidated_checkpoints_are_passed_over_and_the_newest_valid_one_is_the_state(url):
    async with Perdure(url) as app:
        task = await app.tasks.open("job")
        for n in range(1, 6):
            await task.checkpoint({"n": n})
        gone = await task.invalidate_if(lambda checkpoint: checkpoint.data["n"] > 3)
        assert gone == [f"{task.uid}.4", f"{task.uid}.5"] and task.state == {"n": 3}
        assert [c.valid async for c in task.checkpoints()] == [True, True, True, False, False]
        with pytest.raises(Conflict, match="set aside"):
            await task.rollback("4")
        await task.checkpoint({"n": 6})
        assert task.state == {"n": 6}

        async def all_of_them(checkpoint):
            return True

        await task.invalidate_if(all_of_them)
        assert task.state == {}, "the state it was created with"
        assert await task.invalidate_if(lambda checkpoint: False) == []


async def test_unknown_checkpoints_are_not_found(url):
    async with Perdure(url) as app:
        task = await app.tasks.open("job")
        await task.checkpoint({"n": 1})
        for name in ("7", "x", "other-uid.1", "", "-1", "1.1"):
            with pytest.raises(NotFound):
                await task.rollback(name)


async def test_a_finished_task_cannot_be_rolled_back(url):
    async with Perdure(url) as app:
        task = await app.tasks.open("job")
        await task.checkpoint({"n": 1})
        await task.complete()
        with pytest.raises(InvalidTransition, match="fork"):
            await task.rollback("1")


@pytest.mark.req("R102")
async def test_a_growing_state_is_stored_as_deltas_and_every_checkpoint_still_comes_back(url):
    async with Perdure(url) as app:
        task = await app.tasks.open("job", state={"messages": []})
        messages = []
        for n in range(300):
            messages.append({"role": "user", "content": f"message {n} " + "word " * 40})
            await task.checkpoint({"messages": messages, "turn": n})
        rows = await app._store.query("read_checkpoints", uid=task.uid, after=-1, limit=1000)
        stored = sum(len(row[-1]) for row in rows)
        assert stored < 3 * 300 * 250, "about what was added, not its square"
        async for checkpoint in task.checkpoints():
            assert len(checkpoint.data["messages"]) == checkpoint.data["turn"] + 1 == checkpoint.seq


async def test_a_state_too_large_for_one_row_goes_in_chunks_and_comes_back(url):
    noise = random.Random(1).randbytes(3_500_000)
    async with Perdure(url) as app:
        task = await app.tasks.open("job", state={"blob": noise})
        await task.checkpoint({"blob": noise, "n": 1})
        await task.checkpoint({"blob": noise[::-1], "n": 2})
    async with Perdure(url) as app:
        record = await app.tasks.get("job")
        assert record is not None and record.state == {"blob": noise[::-1], "n": 2}
        task = await app.tasks.open("job")
        await task.rollback("1")
        assert task.state == {"blob": noise, "n": 1}


@pytest.mark.req("R18")
async def test_going_back_to_a_superseded_checkpoint_makes_all_that_led_to_it_good_again(url):
    async def live(task):
        return [made.seq async for made in task.checkpoints() if not made.superseded]

    async with Perdure(url) as app:
        task = await app.tasks.open("job", state={"n": 0})
        for n in (1, 2, 3):
            await task.checkpoint({"n": n})
        await task.rollback("1")
        assert await live(task) == [1]
        for n in (4, 5):
            await task.checkpoint({"n": n})
        assert await live(task) == [1, 4, 5]
        await task.rollback("3")
        assert await live(task) == [1, 2, 3] and task.state == {"n": 3}
        await task.rollback("5")
        assert await live(task) == [1, 4, 5] and task.state == {"n": 5}
        await task.checkpoint({"n": 6})
        assert await live(task) == [1, 4, 5, 6]


@pytest.mark.req("R18", "R95")
async def test_after_going_forward_again_a_damaged_checkpoint_falls_back_to_what_led_to_it(url):
    async with Perdure(url) as app:
        task = await app.tasks.open("job", state={"n": 0})
        for n in (1, 2, 3):
            await task.checkpoint({"n": n})
        await task.rollback("1")
        await task.checkpoint({"n": 4})
        await task.rollback("3")
        await task.invalidate_if(lambda made: made.seq == 3)
        assert task.state == {"n": 2}
