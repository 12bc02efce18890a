"""Notes, questions to people and waits: what they say belongs to the last question, whatever is saved meanwhile."""

from __future__ import annotations

import asyncio

from perdure import Perdure, durable, effect
from tests.mcp.kit import call, over_stdio, perdure, refused
from tests.runtime.kit import Place


async def test_a_person_approves_and_the_next_client_has_the_answer(place: Place) -> None:
    async with over_stdio(place) as client:
        asked = await call(client, "request_approval", question="Deploy?", state={"next": "deploy"})
        assert asked["status"] == "waiting"
        assert (await call(client, "request_approval", question="Deploy?"))["status"] == "waiting"
        assert "already waits" in await refused(client, "request_approval", question="Another?")
    perdure(place, "approve", "agent", "--comment", "after lunch")
    async with over_stdio(place) as client:
        answer = await call(client, "get_answer")
        assert (answer["status"], answer["comment"]) == ("approved", "after lunch")
        assert (await call(client, "where_was_i"))["state"]["next"] == "deploy"


async def test_a_person_who_rejects_is_heard_too(place: Place) -> None:
    async with over_stdio(place) as client:
        await call(client, "request_approval", question="Delete it?")
        asking = asyncio.create_task(call(client, "get_answer", wait_seconds=40))
        await asyncio.to_thread(perdure, place, "reject", "agent")
        assert (await asking)["status"] == "rejected"


async def test_a_wait_is_over_when_its_moment_has_come(place: Place) -> None:
    async with over_stdio(place) as client:
        waits = await call(client, "wait_until", until="2999-01-01T00:00:00+00:00", why="the rate limit")
        assert waits["status"] == "waiting" and waits["due_at"].startswith("2999")
        assert "rate limit" in (await call(client, "where_was_i"))["question"]
        assert "time zone" in await refused(client, "wait_until", until="2999-01-01T00:00:00", task="other")
        short = await call(client, "wait_until", seconds=0, task="other")
        assert short["status"] == "over"


async def test_an_earlier_state_is_restored(place: Place) -> None:
    async with over_stdio(place) as client:
        for step in ("plan", "code", "test"):
            await call(client, "save_state", state={"step": step}, label=step)
        listed = (await call(client, "list_checkpoints"))["checkpoints"]
        assert [one["label"] for one in listed] == ["test", "code", "plan"]
        back = await call(client, "restore_checkpoint", checkpoint=listed[2]["checkpoint"])
        assert back["state"] == {"step": "plan"}
        for unknown in ("999", "9" * 30, "-1", "latest", "1.5", "²", "main.1"):
            assert "no checkpoint" in await refused(client, "restore_checkpoint", checkpoint=unknown)
        assert [one["id"] for one in (await call(client, "list_tasks"))["tasks"]] == ["agent"]


async def test_a_decision_is_there_after_other_notes_were_saved(place: Place) -> None:
    async with over_stdio(place) as client:
        await call(client, "request_approval", question="Deploy?")
        refusal = await refused(client, "save_state", state={"next": "wait"})
        assert "get_answer" in refusal and "perdure resume" not in refusal  # which would end the wait undecided
        perdure(place, "approve", "agent")
        await call(client, "save_state", state={"approval": {"decision": "reject"}})  # a name like any other
        answer = await call(client, "get_answer")
        assert (answer["status"], answer["note"]) == ("approved", "Deploy?")


async def test_a_decision_is_not_taken_for_one_about_a_later_question(place: Place) -> None:
    async with over_stdio(place) as client:
        await call(client, "request_approval", question="Test it?")
        perdure(place, "approve", "agent")
        assert (await call(client, "get_answer"))["status"] == "approved"
        await call(client, "request_approval", question="Delete it?")
        perdure(place, "resume", "agent")
        answer = await call(client, "get_answer")
        assert answer["status"] == "over" and "nobody decided 'Delete it?'" in answer["note"]
        await call(client, "wait_until", seconds=0)
        assert await call(client, "get_answer") == {"status": "over", "note": "waiting"}


async def test_a_state_that_no_model_can_read_is_neither_saved_nor_shown(place: Place) -> None:
    async with over_stdio(place) as client:
        assert "100,000 are allowed" in await refused(client, "save_state", state={"log": "x" * 100_000})
        assert (await call(client, "where_was_i"))["status"] == "new"
        async with Perdure(place.url) as app:
            await app.tasks.create("agent", state={"log": "x" * 100_000})
        found = await call(client, "where_was_i")
        assert "state" not in found and "perdure show agent" in found["note"]
        assert "calendar" in await refused(client, "wait_until", until="0001-01-01T00:00:00+14:00")


@effect
async def pay(cents: int) -> None:
    raise TimeoutError("no answer from the bank")


@durable
async def payer(cents: int) -> None:
    await pay(cents)


async def test_what_is_unsettled_is_told_however_much_of_other_tasks_is_too(place: Place) -> None:
    async with Perdure(place.url) as app:
        for cents in range(52):
            await app.run_until_paused("agent" if cents == 51 else f"other-{cents}", payer, cents)
    async with over_stdio(place) as client:
        (told,) = (await call(client, "where_was_i"))["unsettled"]
        assert told == "pay(51): TimeoutError: no answer from the bank"
