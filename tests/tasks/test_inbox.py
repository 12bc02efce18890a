"""The inbox lists everything that waits for a person, and a decision hits the question that was shown."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Literal

import pytest
from msgspec import Struct

import perdure.sync
from perdure import Perdure, checkpoint, durable, effect, pause
from perdure._model import INBOX_KINDS
from perdure.errors import AlreadyDecided, Conflict, InvalidInput, KeyReused, NotFound
from perdure.types import InboxItem


class Plan(Struct):
    replicas: int
    zone: Literal["eu", "us"] = "eu"


@durable
async def ship(text: str, expires: str | None = None) -> str:
    return (await pause.approval(text, expires=expires, editable={"cents": 1})).by


@durable
async def save_and_ship() -> str:
    await checkpoint.save({"n": 1})
    return (await pause.approval("Ship it?")).by


@durable
async def plan(text: str) -> int:
    return (await pause.input(text, Plan)).replicas


@durable
async def waits() -> None:
    await pause.wait("1h")


class Lost(Exception):
    pass


@effect
async def charge(cents: int) -> str:
    raise Lost("the line went dead")


@durable
async def pay() -> str:
    return await charge(500)


async def texts(app: Perdure, **asked: object) -> list[str]:
    page = await app.inbox.page(**asked)  # type: ignore[arg-type]
    return [item.text for item in page.items]


async def only(app: Perdure, task: str | None = None) -> InboxItem:
    (item,) = (await app.inbox.page(task=task)).items
    return item


@pytest.mark.req("R29")
async def test_everything_that_waits_for_a_person_is_listed_whoever_asked_it(url: str) -> None:
    async with Perdure(url) as app:
        await app.run_until_paused("a", ship, "Ship it?")
        await app.run_until_paused("b", plan, "How many?")
        await app.run_until_paused("c", pay)
        await app.run_until_paused("d", waits)
        review = await app.tasks.open("e")
        await review.pause("Review this", reason="human_approval", question="Is it good?")
        other = await app.tasks.open("f")
        await other.pause("A credential is needed", reason="human_input", credential=["env:TOKEN"])
        held = await app.tasks.open("g")
        await held.pause("CI is running", reason="external_dependency", system="ci")

        found = {(item.task_id, item.kind, item.text) for item in (await app.inbox.page()).items}
        assert found == {
            ("a", "approval", "Ship it?"),
            ("b", "input", "How many?"),
            ("c", "effect", "outcome unknown: charge(500)"),
            ("e", "approval", "Is it good?"),
            ("f", "credential", "A credential is needed"),
        }
        assert await app.inbox.count() == {"approval": 2, "input": 1, "effect": 1, "credential": 1}
        assert [item.task_id for item in (await app.inbox.page(kinds=["approval"])).items] == ["a", "e"]
        assert [item.task_id for item in (await app.inbox.page(kinds=["credential"])).items] == ["f"]
        assert [item.task_id for item in (await app.inbox.page(task="b")).items] == ["b"]
        asked = await only(app, "b")
        assert asked.schema is not None and (asked.function, asked.is_open) == ("plan", True)
        unsure = await only(app, "c")
        assert unsure.effect is not None and unsure.choices == ("done", "retry", "fail")
        assert "the line went dead" in unsure.effect.why


async def test_the_soonest_to_expire_comes_first_and_pages_follow_each_other(url: str) -> None:
    async with Perdure(url) as app:
        for number, hours in enumerate([None, 5, 1, 3]):
            await app.run_until_paused(f"f{number}", ship, f"f{hours}", None if hours is None else f"{hours}h")
        for number, hours in enumerate([None, 4, 2]):
            expires = {} if hours is None else {"expires": timedelta(hours=hours)}
            task = await app.tasks.open(f"t{number}")
            await task.pause(f"t{hours}", reason="human_approval", **expires)
        whole = await texts(app)
        assert whole == ["f1", "t2", "f3", "t4", "f5", "fNone", "tNone"]
        found, cursor = [], None
        while True:
            page = await app.inbox.page(limit=2, cursor=cursor)
            found += [item.text for item in page.items]
            cursor = page.cursor
            if cursor is None:
                break
        assert found == whole
        first = (await app.inbox.page()).items[0]
        assert first.otherwise is not None and "rejected" in first.otherwise.say and first.expires_at is not None


@pytest.mark.req("R32")
async def test_the_first_decision_stands_and_the_second_is_told_of_it(url: str) -> None:
    async with Perdure(url) as app:
        await app.run_until_paused("a", ship, "Ship it?")
        item = await only(app)
        done = await app.inbox.approve(item.id, by="ada", comment="looks good", edited={"cents": 2})
        assert done.answer is not None
        assert (done.answer.how, done.answer.by, done.answer.comment) == ("approved", "ada", "looks good")
        with pytest.raises(AlreadyDecided) as second:
            await app.inbox.reject(item.id, by="bob")
        assert (second.value.by, second.value.decision, second.value.pause_id) == ("ada", "approved", item.id)
        assert second.value.at == done.answer.at
        assert await app.run("a", ship, "Ship it?") == "ada"
        assert (await app.inbox.page()).items == []
        kept = await app.inbox.get(item.id)
        assert kept.answer == done.answer and kept.text == "Ship it?"


@pytest.mark.req("R32")
async def test_a_plain_task_is_decided_by_its_pause_and_its_next_pause_is_another(url: str) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("review", state={"n": 1})
        await task.pause("Same words", reason="human_approval")
        first = await only(app)
        done = await app.inbox.approve(first.id, by="ada", comment="fine")
        assert done.answer is not None and (done.answer.how, done.answer.by) == ("approved", "ada")
        record = await task.record()
        assert record.status == "running"
        assert record.state["approval"]["by"] == "ada"
        await task.pause("Same words", reason="human_approval")
        second = await only(app)
        assert second.id != first.id
        with pytest.raises(AlreadyDecided) as refused:
            await app.inbox.reject(first.id, by="bob")
        assert (refused.value.by, refused.value.decision) == ("ada", "approved")
        assert (await task.record()).status == "paused"
        await app.inbox.reject(second.id, by="bob", comment="no")
        kept = await app.inbox.get(first.id)
        assert kept.answer is not None and (kept.answer.how, kept.answer.comment) == ("approved", "fine")


async def test_a_reminder_or_a_signal_leaves_the_pause_the_one_that_was_shown(url: str) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("review")
        await task.pause("Ship it?", reason="human_approval")
        item = await only(app)
        await task.signal("news", 1)
        assert (await only(app)).id == item.id
        await app.inbox.approve(item.id, by="ada")
        assert (await task.record()).status == "running"


@pytest.mark.req("R33")
async def test_an_answer_that_does_not_fit_leaves_the_question_open(url: str) -> None:
    async with Perdure(url) as app:
        await app.run_until_paused("b", plan, "How many?")
        item = await only(app)
        with pytest.raises(InvalidInput, match="does not fit"):
            await app.inbox.answer(item.id, {"replicas": "abc"}, by="ada")
        with pytest.raises(InvalidInput, match="kind input"):
            await app.inbox.approve(item.id, by="ada")
        assert (await app.inbox.get(item.id)).is_open
        done = await app.inbox.answer(item.id, {"replicas": 3}, by="ada", comment="enough")
        assert done.answer is not None and (done.answer.value, done.answer.comment) == ({"replicas": 3}, "enough")
        assert await app.run("b", plan, "How many?") == 3


async def test_an_uncertain_effect_is_settled_from_the_inbox(url: str) -> None:
    async with Perdure(url) as app:
        await app.run_until_paused("c", pay)
        item = await only(app)
        with pytest.raises(InvalidInput):
            await app.inbox.settle(item.id, "maybe", by="ada")  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="kind effect"):
            await app.inbox.answer(item.id, "done")
        await app.inbox.settle(item.id, "done", value="receipt-7", by="ada", comment="I looked")
        with pytest.raises(AlreadyDecided, match="settled as done"):
            await app.inbox.settle(item.id, "fail", by="bob")
        assert await app.run("c", pay) == "receipt-7"


@pytest.mark.req("R63")
async def test_a_decision_with_a_key_is_made_once(url: str) -> None:
    async with Perdure(url) as app:
        await app.run_until_paused("a", ship, "Ship it?")
        task = await app.tasks.open("review")
        await task.pause("Good?", reason="human_approval")
        for item in (await app.inbox.page()).items:
            first = await app.inbox.approve(item.id, by="ada", once="r-1")
            again = await app.inbox.approve(item.id, by="ada", once="r-1")
            assert again.answer == first.answer
            with pytest.raises(KeyReused):
                await app.inbox.approve(item.id, by="ada", comment="other", once="r-1")


async def test_of_many_deciders_at_once_one_decides(url: str) -> None:
    async with Perdure(url) as app:
        await app.run_until_paused("a", ship, "Ship it?")
        task = await app.tasks.open("review")
        await task.pause("Good?", reason="human_approval")
        for item in (await app.inbox.page()).items:
            said = [app.inbox.approve(item.id, by=f"p{number}") for number in range(8)]
            ended = await asyncio.gather(*said, return_exceptions=True)
            lost = [one for one in ended if isinstance(one, AlreadyDecided)]
            (won,) = [one for one in ended if isinstance(one, InboxItem)]
            assert len(lost) == 7 and won.answer is not None
            assert {one.by for one in lost} == {won.answer.by}


async def test_a_question_of_a_line_that_was_left_is_not_answered(url: str) -> None:
    async with Perdure(url) as app:
        await app.run_until_paused("a", save_and_ship)
        old = await only(app)
        task = await app.tasks.handle("a")
        await task.rollback("1")
        with pytest.raises(NotFound):
            await app.inbox.approve(old.id, by="ada")
        await app.run_until_paused("a", save_and_ship)
        new = await only(app)
        assert new.id != old.id
        with pytest.raises(NotFound):
            await app.inbox.approve(old.id, by="ada")
        assert (await app.inbox.get(new.id)).is_open


async def test_an_id_that_is_not_one_is_not_found_and_says_no_more(url: str) -> None:
    async with Perdure(url) as app, Perdure(url, namespace="other") as other:
        await app.run_until_paused("a", ship, "Ship it?")
        item = await only(app)
        for wrong in ("", "x", "é", "A" * 5000, item.id + "A", item.id[:-1], item.id + "==", "cQ", "\0"):
            with pytest.raises(NotFound):
                await app.inbox.get(wrong)
        with pytest.raises(NotFound):
            await other.inbox.approve(item.id, by="eve")
        assert (await other.inbox.page()).items == []
        assert (await app.inbox.get(item.id)).is_open


async def test_a_question_of_a_cancelled_task_is_over(url: str) -> None:
    async with Perdure(url) as app:
        await app.run_until_paused("a", ship, "Ship it?")
        item = await only(app)
        await (await app.tasks.handle("a")).cancel()
        assert (await app.inbox.page()).items == []
        with pytest.raises(Conflict):
            await app.inbox.approve(item.id, by="ada")


async def test_all_pauses_of_a_task_are_told_also_ended_ones_and_timers(url: str) -> None:
    async with Perdure(url) as app:
        await app.run_until_paused("d", waits)
        (timer,) = await app.inbox.of("d")
        assert (timer.kind, timer.is_open) == ("timer", True)
        task = await app.tasks.open("review")
        await task.pause("One?", reason="human_approval")
        await app.inbox.approve((await only(app)).id, by="ada")
        await task.pause("CI", reason="external_dependency", system="ci")
        assert [(item.text, item.is_open) for item in await app.inbox.of("review")] == [("One?", False), ("CI", True)]


async def test_what_is_not_a_page_is_refused(url: str) -> None:
    async with Perdure(url) as app:
        for wrong in ({"kinds": ["x"]}, {"kinds": "input"}, {"limit": 0}, {"limit": 1001}, {"cursor": "[1]"}):
            with pytest.raises(InvalidInput):
                await app.inbox.page(**wrong)  # type: ignore[arg-type]
        with pytest.raises(NotFound):
            await app.inbox.page(task="nothing")
        assert tuple((await app.inbox.count()).keys()) == INBOX_KINDS


def test_the_blocking_face_has_the_same_inbox(url: str) -> None:
    with perdure.sync.Perdure(url) as app:
        task = app.tasks.open("review")
        task.pause("Good?", reason="human_approval")
        (item,) = app.inbox.page().items
        assert app.inbox.approve(item.id, by="ada").answer is not None
        assert app.inbox.count()["approval"] == 0


async def test_a_task_that_an_operator_stopped_asks_nothing(url: str) -> None:
    async with Perdure(url) as app:
        handle = await app.start("a", ship, "Ship it?")
        task = await app.tasks.handle(handle.id)
        await task.pause("stopped for the night")
        assert (await app.inbox.page()).items == [] and (await app.inbox.count())["input"] == 0
        (item,) = await app.inbox.of("a")
        assert (item.kind, item.text) == ("outside", "stopped for the night")
        with pytest.raises(InvalidInput) as refused:
            await app.inbox.answer(item.id, "go on")
        assert refused.value.do == "resume the task"
        await task.resume()
        await app.run_until_paused("a", ship, "Ship it?")
        assert (await only(app)).kind == "approval"
