"""The audit names the first record that somebody changed, and says what it cannot see."""

from __future__ import annotations

import asyncio
import copy
import json
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure
from perdure._ground.secrets import crypto, envelope
from perdure._model import GENESIS, chain, digest
from perdure._tasks import export_heads, verify
from perdure._tasks.upkeep import audit
from perdure.cli import main
from perdure.errors import InvalidInput, NotFound
from perdure.types import Task
from tests.tasks.upkeep_kit import sql, store_of


async def worked_on(app: Perdure, name: str = "t") -> Task:
    """A task with seven events."""
    task = await app.tasks.open(name, state={})
    for n in range(3):
        await task.checkpoint({"n": n})
    await task.pause("look", reason="human_approval")
    await task.resume()
    return task


@pytest.mark.req("R144")
async def test_an_untouched_store_is_whole_and_the_audit_says_what_it_cannot_see(url: str) -> None:
    async with Perdure(url) as app:
        for n in range(3):
            await worked_on(app, f"t{n}")
        found = await verify(store_of(app))
        assert found.is_whole and (found.tasks, found.events) == (3, 21)
        assert found.unseen == [audit.WITHOUT_HEADS]


TAMPERING = {
    "its kind": ("UPDATE {events} SET kind = 'cancelled' WHERE task_uid = ? AND number = 4", 4, "was changed"),
    "its time": ("UPDATE {events} SET at = at + 1 WHERE task_uid = ? AND number = 2", 2, "was changed"),
    "its author": ("UPDATE {events} SET author = '{{}}' WHERE task_uid = ? AND number = 7", 7, "was changed"),
    "its body": (
        "UPDATE {events} SET body = (SELECT body FROM {events} AS other WHERE other.task_uid = {events}.task_uid"
        " AND number = 1) WHERE task_uid = ? AND number = 3",
        3,
        "was changed",
    ),
    "its bytes": ("UPDATE {events} SET body = hash WHERE task_uid = ? AND number = 6", 6, "was changed"),
    "its digest": ("UPDATE {events} SET digest = hash WHERE task_uid = ? AND number = 5", 5, "was changed"),
    "its hash": ("UPDATE {events} SET hash = digest WHERE task_uid = ? AND number = 5", 5, "does not follow"),
    "removed": ("DELETE FROM {events} WHERE task_uid = ? AND number = 3", 3, "is missing"),
    "the last one removed": ("DELETE FROM {events} WHERE task_uid = ? AND number = 7", 7, "knows 7 events, 6 are here"),
    "a count in the row": ("UPDATE {tasks} SET event_count = 6 WHERE uid = ?", 7, "knows 6 events"),
}


@pytest.mark.req("R144")
@pytest.mark.parametrize("how", TAMPERING)
async def test_the_event_that_was_tampered_with_is_named(shared_url: str, how: str) -> None:
    statement, number, problem = TAMPERING[how]
    async with Perdure(shared_url) as app:
        task = await worked_on(app)
        await worked_on(app, "untouched")
        sql(shared_url, statement, task.uid)
        found = await verify(store_of(app))
        assert [(broken.task_id, broken.event) for broken in found.broken] == [("t", number)]
        assert problem in found.broken[0].problem


@pytest.mark.req("R144")
async def test_an_event_after_the_head_is_noticed(shared_url: str) -> None:
    async with Perdure(shared_url) as app:
        task = await worked_on(app)
        ((count, head),) = sql(shared_url, "SELECT event_count, event_head FROM {tasks} WHERE uid = ?", task.uid)
        before = "SELECT hash FROM {events} WHERE task_uid = ? AND number = ?"
        ((earlier,),) = sql(shared_url, before, task.uid, count - 1)
        assert head != earlier
        statement = "UPDATE {tasks} SET event_count = ?, event_head = ? WHERE uid = ?"
        sql(shared_url, statement, count - 1, earlier, task.uid)
        found = await verify(store_of(app))
        assert [(broken.event, broken.problem) for broken in found.broken] == [
            (count, "an event stands after the head")
        ]


async def test_a_task_that_goes_on_meanwhile_is_no_broken_one(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Perdure(url) as app:
        task = await worked_on(app)
        check = audit._check_task

        async def later(store: Any, row: Any, *rest: Any) -> None:
            await task.checkpoint({"meanwhile": True})  # after the row was read, before its events are
            await check(store, row, *rest)

        monkeypatch.setattr(audit, "_check_task", later)
        assert (await verify(store_of(app))).is_whole


async def test_without_the_key_the_chain_is_checked_and_the_bodies_are_told_as_unseen(shared_url: str) -> None:
    async with Perdure(shared_url, key=crypto.generate("k1")) as app:
        task = await worked_on(app)
    async with Perdure(shared_url) as blind:
        found = await verify(store_of(blind))
        assert found.is_whole and any("bodies of 7 events" in line for line in found.unseen)
        sql(shared_url, "UPDATE {events} SET kind = 'x', digest = hash WHERE task_uid = ? AND number = 2", task.uid)
        assert [broken.event for broken in (await verify(store_of(blind))).broken] == [2]


async def test_one_task_can_be_checked_by_its_id(url: str) -> None:
    async with Perdure(url) as app:
        await worked_on(app, "a")
        await worked_on(app, "b")
        assert (await verify(store_of(app), ["a"])).tasks == 1
        with pytest.raises(NotFound):
            await verify(store_of(app), ["c"])


# ── heads kept outside ───────────────────────────────────────────────────────────────────────────


async def heads_of(app: Perdure) -> dict[str, Any]:
    exported: dict[str, Any] = json.loads(json.dumps(await export_heads(store_of(app))))
    return exported


def rewrite_whole_chain(url: str, uid: str) -> None:
    """What somebody can do who may write to the store: other events, and a chain that fits them."""
    sql(url, "UPDATE {events} SET kind = 'completed' WHERE task_uid = ? AND number = 3", uid)
    head = GENESIS
    rows = sql(url, "SELECT number, at, kind, author, body FROM {events} WHERE task_uid = ? ORDER BY number", uid)
    for number, at, kind, author, body in rows:
        plain = envelope.unseal(bytes(body), kind="event", bound_to=uid, ring=crypto.KeyRing())
        made = digest(uid, kind, at, author, plain)
        head = chain(head, made)
        sql(url, "UPDATE {events} SET digest = ?, hash = ? WHERE task_uid = ? AND number = ?", made, head, uid, number)
    sql(url, "UPDATE {tasks} SET event_head = ? WHERE uid = ?", head, uid)


@pytest.mark.req("R144")
async def test_a_rewrite_of_the_whole_chain_shows_only_against_exported_heads(shared_url: str) -> None:
    async with Perdure(shared_url) as app:
        task = await worked_on(app)
        heads = await heads_of(app)
        await task.checkpoint({"more": True})
        assert (await verify(store_of(app), heads=heads)).is_whole
        rewrite_whole_chain(shared_url, task.uid)
        assert (await verify(store_of(app))).is_whole
        found = await verify(store_of(app), heads=heads)
        assert [broken.task_id for broken in found.broken] == ["t"] and "rewritten" in found.broken[0].problem


@pytest.mark.req("R144")
async def test_a_chain_that_was_cut_short_shows_against_exported_heads(shared_url: str) -> None:
    async with Perdure(shared_url) as app:
        task = await worked_on(app)
        heads = await heads_of(app)
        sql(shared_url, "DELETE FROM {events} WHERE task_uid = ? AND number > 5", task.uid)
        ((head,),) = sql(shared_url, "SELECT hash FROM {events} WHERE task_uid = ? AND number = 5", task.uid)
        sql(shared_url, "UPDATE {tasks} SET event_count = 5, event_head = ? WHERE uid = ?", head, task.uid)
        assert (await verify(store_of(app))).is_whole
        assert "and has 5 now" in (await verify(store_of(app), heads=heads)).broken[0].problem


@pytest.mark.req("R144")
async def test_a_deleted_task_is_accounted_for_by_its_tombstone_and_not_without_it(shared_url: str) -> None:
    async with Perdure(shared_url) as app:
        task = await worked_on(app)
        await task.complete()
        heads = await heads_of(app)
        await task.delete()
        found = await verify(store_of(app), heads=heads)
        assert found.is_whole and (found.tombstones, found.compared) == (1, 1)
        assert (await heads_of(app))["tasks"] == heads["tasks"], "a tombstone's head is exported too"
        sql(shared_url, "UPDATE {tombstones} SET event_count = event_count - 1 WHERE uid = ?", task.uid)
        assert "tombstone knows" in (await verify(store_of(app), heads=heads)).broken[0].problem
        sql(shared_url, "DELETE FROM {tombstones} WHERE uid = ?", task.uid)
        assert (await verify(store_of(app))).is_whole
        found = await verify(store_of(app), heads=heads)
        assert [broken.problem for broken in found.broken] == [
            "it had 9 events when heads were exported, and is gone without a tombstone"
        ]


async def test_a_tombstone_that_cannot_be_is_named(shared_url: str) -> None:
    async with Perdure(shared_url) as app:
        task = await worked_on(app)
        await task.complete()
        await task.delete()
        sql(shared_url, "UPDATE {tombstones} SET deleted_at = created_at - 1 WHERE uid = ?", task.uid)
        assert "deleted before it was made" in (await verify(store_of(app))).broken[0].problem


async def test_heads_that_are_none_are_refused(url: str) -> None:
    async with Perdure(url) as app:
        heads = await heads_of(app)
        for spoiled in ({}, {**heads, "format": 99}, {**copy.copy(heads), "tasks": [{"uid": "x"}]}):
            with pytest.raises(InvalidInput):
                await verify(store_of(app), heads=spoiled)


# ── the command ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R144", "R148")
def test_perdure_audit_verify_is_red_and_names_the_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url, heads = f"sqlite://{tmp_path}/p.db", str(tmp_path / "heads.json")
    monkeypatch.setenv("PERDURE_URL", url)

    async def work() -> str:
        async with Perdure() as app:
            return (await worked_on(app)).uid

    uid = asyncio.run(work())
    assert main(["audit", "export", "--out", heads]) == 0
    assert main(["audit", "verify", "--heads", heads]) == 0
    assert "whole" in capsys.readouterr().out
    rewrite_whole_chain(url, uid)
    assert main(["audit", "verify"]) == 0
    assert main(["audit", "verify", "t", "--heads", heads]) == 1
    assert "rewritten" in capsys.readouterr().out
    sql(url, "UPDATE {events} SET kind = 'x' WHERE number = 4")
    assert main(["audit", "verify", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["broken"][0]["event"] == 4
    assert main(["audit", "verify", "nobody"]) == 3
    assert main(["audit", "verify", "--heads", str(tmp_path)]) == 2
