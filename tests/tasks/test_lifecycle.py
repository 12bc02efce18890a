"""From open to the end: what each verb does, and what it refuses."""

from __future__ import annotations

import asyncio
import itertools
import re
import socket
from datetime import UTC, datetime, timedelta

import pytest

from perdure import Perdure, sync
from perdure._model import FINISHED, MOVES, STATUSES
from perdure._model.tasks.task import Status
from perdure.errors import (
    AlreadyExists,
    DependencyCycle,
    InvalidId,
    InvalidInput,
    InvalidPayload,
    InvalidTransition,
    NotFound,
    NotStorable,
    TaskFailed,
    TimedOut,
)
from perdure.types import Config, Task, ToolCall


@pytest.mark.req("R1", "R3")
async def test_a_created_task_is_found_with_equal_state_and_an_unknown_one_is_none(url):
    state = {"phase": "analysis", "files": 0, "nested": {"list": [1, 2.5, None, True, "ü"]}}
    async with Perdure(url) as app:
        task = await app.tasks.create("refactor-auth", state=state)
        record = await app.tasks.get("refactor-auth")
        assert task.created and task.status == "running"
        assert record is not None and record.state == state and record.latest is None
        assert await app.tasks.get("nothing-like-it") is None


@pytest.mark.req("R1")
async def test_create_without_a_state_is_a_type_error(url):
    async with Perdure(url) as app:
        with pytest.raises(TypeError, match="state"):
            await app.tasks.create("no-state")  # type: ignore[call-arg]


@pytest.mark.req("R1")
async def test_a_task_begins_with_the_status_it_is_created_with(url):
    async with Perdure(url) as app:
        waiting = await app.tasks.create("later", state={"n": 1}, status="pending")
        assert waiting.status == "pending" and (await waiting.record()).started_at is None
        assert (await app.tasks.create("now", state={}, status="running")).status == "running"
        async with waiting.attempt() as task:
            assert task.status == "running"
            await task.checkpoint({"n": 2})
        record = await app.tasks.get("later")
        assert record is not None and record.status == "running" and record.state == {"n": 2}
        bare = await app.tasks.create("bare", state={}, status="pending")
        await bare.checkpoint({"n": 1})  # a checkpoint takes the lease, and so begins the task
        assert bare.status == "running" and (await bare.record()).status == "running"


@pytest.mark.req("R1")
@pytest.mark.parametrize("status", ["paused", "completed", "failed", "cancelled", "done"])
async def test_a_task_cannot_begin_at_its_end_or_in_a_pause(url, status):
    async with Perdure(url) as app:
        with pytest.raises(InvalidInput, match=status) as refused:
            await app.tasks.create("job", state={}, status=status)
        assert refused.value.do and await app.tasks.get("job") is None


@pytest.mark.req("R29")
async def test_a_pause_with_only_a_text_asks_a_person(url):
    async with Perdure(url) as app:
        task = await app.tasks.create("job", state={})
        await task.pause("Which branch?")
        record = await task.record()
        assert record.pause is not None and record.pause.reason == "human_input"
        await task.answer("main", by="ada")
        assert (await task.record()).state["answer"]["value"] == "main"


async def test_creating_an_id_twice_is_refused_and_the_first_stays(url):
    async with Perdure(url) as app:
        await app.tasks.create("once", state={"n": 1})
        with pytest.raises(AlreadyExists) as caught:
            await app.tasks.create("once", state={"n": 2})
        assert caught.value.status == "running"
        record = await app.tasks.get("once")
        assert record is not None and record.state == {"n": 1}


@pytest.mark.req("R6")
async def test_open_creates_then_attaches_and_never_overwrites(url):
    async with Perdure(url) as app:
        first = await app.tasks.open("job", state={"n": 1})
        second = await app.tasks.open("job", state={"n": 99})
        assert (first.created, second.created) == (True, False)
        assert second.state == {"n": 1} and second.uid == first.uid


@pytest.mark.req("R6")
async def test_open_never_wakes_a_paused_task_and_returns_a_finished_one_as_finished(url):
    async with Perdure(url) as app:
        task = await app.tasks.open("job")
        await task.pause("look at this", reason="human_approval")
        again = await app.tasks.open("job")
        assert again.is_paused and not again.created
        await again.resume()
        await again.complete("done")
        final = await app.tasks.open("job", state={"other": 1})
        assert final.is_finished and final.status == "completed" and final.state == {}


async def test_open_again_starts_a_finished_task_anew_and_keeps_the_old_one_in_history(url):
    async with Perdure(url) as app:
        old = await app.tasks.open("nightly", state={"run": 1})
        assert not (await app.tasks.open("nightly", again=True)).created, "an unfinished one is attached to"
        await old.complete("first")
        new = await app.tasks.open("nightly", state={"run": 2}, again=True)
        assert new.created and new.uid != old.uid and new.state == {"run": 2}
        assert [record.result for record in await app.tasks.history("nightly")] == [None, "first"]


@pytest.mark.req("R4")
async def test_complete_is_final_and_repeating_it_with_the_same_result_changes_nothing(url):
    async with Perdure(url) as app:
        task = await app.tasks.open("job")
        await task.complete({"files": 42})
        before = await app.tasks.get("job")
        await task.complete({"files": 42})
        assert await app.tasks.get("job") == before
        with pytest.raises(InvalidTransition, match="another result"):
            await task.complete({"files": 41})
        assert before is not None and before.result == {"files": 42} and before.finished_at is not None


@pytest.mark.req("R5")
async def test_a_failure_keeps_its_structured_error_and_may_be_resumed(url):
    async with Perdure(url) as app:
        task = await app.tasks.open("job")
        await task.fail({"message": "2 tests failed", "failedTests": ["a", "b"]})
        record = await app.tasks.get("job")
        assert record is not None and record.status == "failed"
        assert record.error == {"message": "2 tests failed", "failedTests": ["a", "b"]}
        await task.resume(state={"retry": True})
        record = await app.tasks.get("job")
        assert record is not None and record.status == "running" and record.error is None and record.finished_at is None


@pytest.mark.parametrize("error", [{}, {"message": ""}, {"code": 3}, 17, None])
async def test_an_error_without_a_message_is_refused(error):
    async with Perdure("memory://") as app:
        task = await app.tasks.open("job")
        with pytest.raises(InvalidInput):
            await task.fail(error)
        assert (await task.record()).status == "running"


# ── statuses ─────────────────────────────────────────────────────────────────────────────────────


async def _bring_to(app: Perdure, name: str, status: Status) -> Task:
    if status == "pending":
        return await app.tasks.create(name, state={}, depends_on=["not-there-yet"])
    task = await app.tasks.create(name, state={})
    if status == "paused":
        await task.pause("wait", reason="checkpoint")
    elif status == "completed":
        await task.complete()
    elif status == "failed":
        await task.fail("broken")
    elif status == "cancelled":
        await task.cancel()
    return task


async def _do(task: Task, verb: str) -> None:
    if verb == "pause":
        await task.pause("wait", reason="checkpoint")
    elif verb == "resume":
        await task.resume()
    elif verb == "complete":
        await task.complete("other result")
    elif verb == "fail":
        await task.fail("broken")
    elif verb == "cancel":
        await task.cancel()


@pytest.mark.req("R2")
async def test_every_move_is_made_from_the_statuses_that_allow_it_and_refused_from_all_others(url):
    async with Perdure(url) as app:
        for status, verb in itertools.product(STATUSES, ("pause", "resume", "complete", "fail", "cancel")):
            name = f"{status}-{verb}"
            task = await _bring_to(app, name, status)
            before = await app.tasks.get(name)
            assert before is not None and before.status == status
            if status in MOVES[verb].before:
                await _do(task, verb)
                after = await app.tasks.get(name)
                assert after is not None and after.status == MOVES[verb].after, name
            else:
                with pytest.raises(InvalidTransition):
                    await _do(task, verb)
                assert await app.tasks.get(name) == before, f"{name}: refused, so nothing changed"


@pytest.mark.req("R2")
def test_completed_and_cancelled_are_for_ever_and_failed_may_go_on():
    assert {"completed", "failed", "cancelled"} == FINISHED
    moves = {(before, move.after) for move in MOVES.values() for before in move.before}
    assert not [move for move in moves if move[0] in ("completed", "cancelled")]
    assert ("failed", "running") in moves


# ── pauses ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R28", "R29")
async def test_a_pause_stores_its_reason_message_payload_and_state_in_one_write(url):
    async with Perdure(url) as app:
        task = await app.tasks.open("job", state={"n": 1})
        await task.pause(
            "Deploy?", reason="human_approval", checkpoint={"n": 2}, expires=timedelta(days=2), ticket="OPS-7"
        )
        record = await app.tasks.get("job")
        assert record is not None and record.pause is not None and record.status == "paused"
        assert record.pause.reason == "human_approval" and record.pause.message == "Deploy?"
        assert record.pause.expires_at == record.pause.since + timedelta(days=2)
        assert record.pause.details == {"ticket": "OPS-7"}
        assert record.state == {"n": 2} and record.latest is not None and record.latest.cause == "pause"
        assert record.pause.by["pid"] and record.attempts[-1].ended == "paused"


@pytest.mark.req("R29")
@pytest.mark.parametrize(
    "reason, payload",
    [
        ("coffee", {}),
        ("scheduled_wait", {}),
        ("scheduled_wait", {"until": datetime(2030, 1, 1)}),  # noqa: DTZ001
        ("scheduled_wait", {"until": datetime(2030, 1, 1, tzinfo=UTC), "duration": 3}),
        ("scheduled_wait", {"duration": -1}),
        ("rate_limit", {"retry_after": "soon"}),
        ("human_approval", {"default": "maybe"}),
        ("human_approval", {"expire": timedelta(days=1)}),
        ("human_input", {"schema": "integer"}),
        ("external_dependency", {"every": "often"}),
    ],
)
async def test_a_payload_that_does_not_fit_its_reason_is_refused_and_the_task_goes_on(reason, payload):
    async with Perdure("memory://") as app:
        task = await app.tasks.open("job")
        with pytest.raises(InvalidPayload):
            await task.pause("wait", reason=reason, **payload)
        assert (await task.record()).status == "running"


@pytest.mark.req("R30")
async def test_resume_merges_its_patch_shallowly_and_is_itself_a_checkpoint(url):
    async with Perdure(url) as app:
        task = await app.tasks.open("job", state={"a": {"x": 1}, "b": 1})
        await task.pause("wait", reason="human_approval")
    async with Perdure(url) as app:
        task = await app.tasks.open("job")
        await task.resume(state={"a": {"y": 2}, "reviewApproved": True})
        assert task.state == {"a": {"y": 2}, "b": 1, "reviewApproved": True}
        record = await app.tasks.get("job")
        assert record is not None and record.latest is not None
        assert record.latest.cause == "resume" and record.latest.data == task.state and record.pause is None


async def test_a_patch_on_a_state_that_is_no_mapping_is_refused(url):
    async with Perdure(url) as app:
        task = await app.tasks.open("job", state=[1, 2])
        await task.pause("wait", reason="checkpoint")
        with pytest.raises(InvalidInput, match="list"):
            await task.resume(state={"a": 1})
        assert (await task.record()).status == "paused"


async def test_a_holder_paused_from_outside_may_still_store_its_last_checkpoint(shared_url):
    async with Perdure(shared_url) as app:
        task = await app.tasks.open("job", state={"n": 0})
        await task.checkpoint({"n": 1})
        other = Perdure(shared_url)
        operator = await other.tasks.open("job")
        # The same process holds the lease, so its pause would end the attempt: leave the lease out of sight.
        held = other._store.presence.held
        other._store.presence.held = {}
        await operator.pause("stop please", reason="checkpoint")
        other._store.presence.held = held
        await task.checkpoint({"n": 2})
        assert task.is_paused
        with pytest.raises(InvalidTransition):
            await task.complete()
        record = await app.tasks.get("job")
        assert record is not None and record.state == {"n": 2} and record.status == "paused"
        await other.close()


# ── bad input ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["", "a" * 10_000, "a\nb", "a\x00b", " a", "a\u200bb", "\ud800", 7])
async def test_an_id_nobody_could_type_is_refused_before_anything_is_written(name):
    async with Perdure("memory://") as app:
        for verb in (app.tasks.open, app.tasks.get, app.tasks.wait_for):
            with pytest.raises(InvalidId):
                await verb(name)  # type: ignore[operator]
        assert len(await app.tasks.list()) == 0


@pytest.mark.req("R26")
async def test_what_cannot_be_stored_is_refused_with_its_path_and_nothing_is_written(url):
    async with Perdure(url) as app:
        task = await app.tasks.open("job", state={"n": 1})
        with socket.socket() as plug, pytest.raises(NotStorable) as caught:
            await task.checkpoint({"a": {"b": plug}})
        assert caught.value.path == "a.b" and re.search("socket", str(caught.value))
        record = await app.tasks.get("job")
        assert record is not None and record.latest is None and record.state == {"n": 1}


async def test_verbs_on_an_unknown_task_raise_not_found_and_name_the_store(url):
    async with Perdure(url) as app:
        with pytest.raises(NotFound) as caught:
            await app.tasks.handle("nope")
        assert caught.value.name == "nope" and caught.value.store in str(caught.value)
        with pytest.raises(NotFound):
            await app.tasks.wait_for("nope")


async def test_a_status_that_no_task_can_have_is_not_waited_for():
    async with Perdure("memory://") as app:
        await app.tasks.create("job", state={})
        with pytest.raises(InvalidInput, match="'done' is not a status"):
            await app.tasks.wait_for("job", status="done")


@pytest.mark.req("R24")
async def test_a_pending_tool_call_may_be_given_as_data_and_anything_else_is_refused(url):
    async with Perdure(url) as app:
        task = await app.tasks.create("job", state={})
        await task.checkpoint({"n": 1}, pending=[{"id": "1", "tool": "search", "arguments": {"q": "x"}}])
        record = await app.tasks.get("job")
        assert record.latest.pending == [ToolCall(id="1", tool="search", arguments={"q": "x"})]
        for wrong in ({"name": "search"}, "search", None):
            with pytest.raises(InvalidInput, match="is not a pending tool call"):
                await task.checkpoint({"n": 2}, pending=[wrong])
        assert (await app.tasks.get("job")).state == {"n": 1}


# ── the end ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R8")
async def test_a_finished_task_is_archived_and_deleted_and_a_running_one_only_by_force(url):
    async with Perdure(url) as app:
        task = await app.tasks.open("job")
        for verb in (task.archive, task.delete):
            with pytest.raises(InvalidTransition):
                await verb()
        await task.complete("x")
        await task.archive()
        assert await app.tasks.get("job") is None and len(await app.tasks.list()) == 0
        record = await app.tasks.get("job", archived=True)
        assert record is not None and record.result == "x"
        await task.delete()
        assert await app.tasks.get("job", archived=True) is None
        live = await app.tasks.open("live")
        await live.delete(force=True)
        assert await app.tasks.get("live") is None


@pytest.mark.req("R54")
async def test_wait_for_returns_when_another_app_gets_there_and_tells_what_it_got_otherwise(url, clock):
    async with Perdure(url) as app:
        task = await app.tasks.open("job")
        waiting = asyncio.create_task(app.tasks.wait_for("job"))
        await asyncio.sleep(0)
        await task.complete("result")
        assert (await waiting).result == "result"
        other = await app.tasks.open("other")
        late = asyncio.create_task(app.tasks.wait_for("other", timeout=timedelta(seconds=120)))
        await asyncio.sleep(0)
        clock.advance(seconds=121)
        with pytest.raises(TimedOut):
            await late
        await other.cancel()
        with pytest.raises(TaskFailed):
            await app.tasks.wait_for("other")


@pytest.mark.req("R53")
async def test_a_circle_of_dependencies_is_refused_and_a_task_waits_for_those_it_depends_on(url):
    async with Perdure(url) as app:
        await app.tasks.create("b", state={}, depends_on=["a"])
        with pytest.raises(DependencyCycle) as caught:
            await app.tasks.create("a", state={}, depends_on=["b"])
        assert caught.value.path == ("a", "b", "a")
        first = await app.tasks.create("a", state={})
        waiting = await app.tasks.open("b")
        assert waiting.status == "pending"
        with pytest.raises(InvalidTransition, match="begin"):
            await waiting.checkpoint({"too": "early"})
        await first.complete()
        await waiting.checkpoint({"now": True})
        assert waiting.status == "running"


@pytest.mark.req("R9", "R10", "R57")
async def test_name_tags_config_and_author_are_kept_with_the_task(url):
    config = Config(checkpoint_interval=timedelta(seconds=30), max_retries=1, on_failure="pause", keep_last=7)
    async with Perdure(url) as app:
        await app.tasks.create(
            "job", state={}, name="The job", description="d", agent="coder", tags={"team": "a"}, config=config
        )
        record = await app.tasks.get("job")
        assert record is not None
        assert (record.name, record.description, record.agent) == ("The job", "d", "coder")
        assert record.tags == {"team": "a"} and record.config == config
        events = await app.tasks.events("job")
        assert [event.kind for event in events] == ["created"]
        assert events[0].author["agent"] == "coder" and events[0].author["pid"] and events[0].author["host"]


@pytest.mark.parametrize("what", ["name", "description", "agent"])
@pytest.mark.parametrize("text", [[], {}, 5, None, "a\0b", "\ud800"])
async def test_a_text_that_cannot_be_stored_is_refused_and_nothing_made(url, what, text):
    async with Perdure(url) as app:
        with pytest.raises(InvalidInput, match=what):
            await app.tasks.create("t", state={}, **{what: text})
        assert await app.tasks.get("t") is None


async def test_the_events_of_a_task_are_read_by_pages(url):
    async with Perdure(url) as app:
        await _read_by_pages(app)


async def _read_by_pages(app):
    task = await app.tasks.create("job", state={})
    for number in range(5):
        await task.checkpoint({"n": number})
    every = await app.tasks.events("job")
    assert [event.number for event in every] == list(range(1, len(every) + 1))
    pages, after = [], 0
    while page := await app.tasks.events(task, after=after, limit=2):
        pages += page
        after = page[-1].number
    assert pages == list(every)
    for wrong in ({"after": -1}, {"limit": 0}, {"limit": "1"}):
        with pytest.raises(InvalidInput):
            await app.tasks.events("job", **wrong)


async def test_an_event_of_an_unlisted_kind_is_not_written(url):
    async with Perdure(url) as app:
        with pytest.raises(ValueError, match="is not a kind"):
            app._store.event("u", "danced", {})


def test_blocking_code_names_a_task_by_its_handle(url):
    with sync.Perdure(url) as app:
        task = app.tasks.create("job", state={})
        task.complete({})
        assert [event.number for event in app.tasks.events(task)] == [1, *range(2, len(app.tasks.events("job")) + 1)]
        assert list(app.tasks.follow(task)) == list(app.tasks.events("job"))
        assert app.journal.outline(task).upto == 0
