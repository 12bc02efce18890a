"""What a person types about pauses: look what is waited for, decide, answer, call back."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, pause
from perdure._durable import durable, effect
from perdure._ground.clock import MovableClock
from perdure.cli import main
from tests.durable.effects_kit import until_paused, wait_until


@durable
async def deploys() -> str:
    yes = await pause.approval("Ship it?", expires=timedelta(days=2), editable="staging")
    return f"{yes.by}: {yes.comment} {yes.edited}"


@durable
async def counts() -> int:
    return await pause.input("How many?", int)


@durable
async def waits_long() -> None:
    await pause.wait(hours=8)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/p.db"


def run(capsys: Any, url: str, *words: str) -> tuple[int, Any]:
    code = main([*words, "--store", url, "--json"])
    said = capsys.readouterr()
    return code, json.loads(said.out or said.err)


def told(capsys: Any, url: str, *words: str) -> str:
    assert main([*words, "--store", url]) == 0
    return str(capsys.readouterr().out)


@pytest.mark.req("R32", "R44")
async def test_an_approval_is_shown_and_decided_once_from_the_shell(url: str, capsys: Any) -> None:
    async with Perdure(url) as app:
        await until_paused(app, "deploy", deploys)
    shown = told(capsys, url, "show", "deploy")
    assert "human_approval: Ship it?" in shown and "perdure approve" in shown and "next check" in shown
    where = told(capsys, url, "where", "deploy")
    assert "Ship it? (human_approval, since" in where and ", expires " in where and "looked at" not in where
    words = ("approve", "deploy", "--by", "ada", "--comment", "go", "--edited", '"production"')
    assert run(capsys, url, *words)[0] == 0
    assert run(capsys, url, "reject", "deploy")[0] == 4
    async with Perdure(url) as app:
        assert await app.run("deploy", deploys) == "ada: go production"


@pytest.mark.req("R33")
async def test_an_answer_of_another_form_is_refused_with_what_is_wanted(url: str, capsys: Any) -> None:
    async with Perdure(url) as app:
        await until_paused(app, "count", counts)
    capsys.readouterr()  # it has said that it waits
    code, refused = run(capsys, url, "answer", "count", "abc")
    assert code == 2 and "does not fit" in json.dumps(refused) and "integer" in json.dumps(refused)
    assert run(capsys, url, "answer", "count", "7")[0] == 0
    async with Perdure(url) as app:
        assert await app.run("count", counts) == 7


@pytest.mark.req("R44", "R45")
async def test_a_wait_is_shown_with_its_moment_and_can_be_cut_short(url: str, capsys: Any, clock: MovableClock) -> None:
    async with Perdure(url) as app:
        await until_paused(app, "later", waits_long)
    where = told(capsys, url, "where", "later")
    assert "a process has to be there when the wait is over: `perdure worker module:app` starts one" in where
    assert "scheduled_wait" in told(capsys, url, "show", "later")
    assert run(capsys, url, "answer", "later", "7")[0] == 2
    assert run(capsys, url, "answer", "later", "null")[0] == 0
    async with Perdure(url) as app:
        assert await app.run("later", waits_long) is None


@pytest.mark.req("R42", "R43")
async def test_another_system_calls_back_by_a_token(url: str, capsys: Any) -> None:
    async with Perdure(url) as app:
        await app.tasks.open("ci", state={"job": 812})
    _, made = run(capsys, url, "callback", "--new", "ci")
    words = ("pause", "ci", "CI", "--reason", "external_dependency", "--set", f"callback={made['token']}")
    assert run(capsys, url, *words)[1]["status"] == "paused"
    assert made["token"] not in told(capsys, url, "show", "ci", "--full")
    assert run(capsys, url, "callback", made["token"][:-2], "--value", "1")[0] == 3
    assert run(capsys, url, "callback", made["token"], "--value", '{"state": "green"}') == (0, {"counted": True})
    assert run(capsys, url, "callback", made["token"], "--value", "2") == (0, {"counted": False})
    _, record = run(capsys, url, "show", "ci")
    assert record["status"] == "running" and record["state"]["external"]["value"] == {"state": "green"}


@pytest.mark.req("R38")
async def test_a_task_is_paused_with_no_more_than_its_name(url: str, capsys: Any) -> None:
    async with Perdure(url) as app:
        await app.tasks.open("work", state={})
    code, record = run(capsys, url, "pause", "work", "--now")
    assert (code, record["status"], record["pause"]["reason"]) == (0, "paused", "human_input")
    assert record["pause"]["message"].startswith("paused by ")
    assert run(capsys, url, "resume", "work")[1]["status"] == "running"


async def test_what_a_run_says_about_its_pause_cannot_act_on_a_terminal(url: str, caplog: Any) -> None:
    @durable
    async def asks_in_red() -> int:
        return await pause.input("how \x1b[31mmany\x1b[0m?\r\nnone\u202e", int)

    @effect
    async def charge() -> None:
        raise ConnectionError("\x1b]0;gone\x07")

    @durable
    async def charges() -> None:
        await charge()

    async with Perdure(url) as app:
        for id, function in (("red", asks_in_red), ("paid twice", charges)):
            run = asyncio.ensure_future(app.run(id, function))
            await wait_until(lambda id=id: any(f"task {id} waits" in record.getMessage() for record in caplog.records))
            run.cancel()
            with suppress(asyncio.CancelledError):
                await run
    said = "".join(record.getMessage() for record in caplog.records)
    assert "how \\x1b[31mmany\\x1b[0m?\\r\\nnone\\u202e" in said and "ConnectionError: \\x1b]0;gone\\x07" in said
    assert said.replace("\n", "").isprintable() and "perdure answer 'paid twice' done|retry|fail" in said


@pytest.mark.req("R32", "R33")
async def test_the_inbox_is_listed_and_its_questions_are_decided_by_their_ids(url: str, capsys: Any) -> None:
    async with Perdure(url) as app:
        await until_paused(app, "deploy", deploys)
        await until_paused(app, "count", counts)
        task = await app.tasks.open("review")
        await task.pause("Good enough?", reason="human_approval")
    shown = told(capsys, url, "inbox")
    assert "Ship it?" in shown and "it is rejected" in shown and "Good enough?" in shown and "How many?" in shown
    code, found = run(capsys, url, "inbox", "--kind", "approval")
    assert code == 0 and [item["task_id"] for item in found["items"]] == ["deploy", "review"]
    deploy, review = (item["id"] for item in found["items"])
    code, page = run(capsys, url, "inbox", "--limit", "1")
    assert [item["id"] for item in page["items"]] == [deploy] and page["cursor"]
    code, rest = run(capsys, url, "inbox", "--cursor", page["cursor"])
    assert [item["task_id"] for item in rest["items"]] == ["count", "review"]
    question = rest["items"][0]["id"]
    assert run(capsys, url, "approve", deploy, "--by", "ada", "--edited", '"production"')[0] == 0
    code, problem = run(capsys, url, "reject", deploy, "--by", "bob")
    assert code == 4 and "approved already by ada" in problem["error"]["what"]
    code, record = run(capsys, url, "reject", review, "--by", "ada", "--comment", "no")
    assert (code, record["state"]["approval"]["comment"]) == (0, "no")
    assert run(capsys, url, "answer", question, "abc")[0] == 2
    assert run(capsys, url, "answer", question, "3")[0] == 0
    assert "nothing waits for you" in told(capsys, url, "inbox")
