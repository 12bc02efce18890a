"""The inbox over HTTP: what waits for a person, who may see it, and the one decision that counts."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from perdure import Perdure, durable, effect, pause
from perdure._ground.reach import sign
from tests.support.asking import serving
from tests.support.http_server import make_key, request
from tests.support.http_server import serving as server_at
from tests.support.server_processes import LiveServer, live_server

SECRET = "marker-of-what-agents-wrote"
LOOK = frozenset({"tasks:read"})
DECIDE = frozenset({"tasks:read", "inbox:decide"})


@durable
async def ship(text: str) -> str:
    return (await pause.approval(text, editable={"note": SECRET}, expires="1h")).by


@durable
async def plan(text: str) -> int:
    return await pause.input(text, dict[str, int])


@effect
async def charge(note: str) -> str:
    raise ConnectionError(note)


@durable
async def pay(note: str) -> str:
    return await charge(note)


@durable
async def calls_back(announced: list[str]) -> Any:
    async def announce(token: str) -> None:
        TOKENS.append(token)

    return await pause.callback("the build of " + SECRET, dict[str, int], announce=announce)


TOKENS: list[str] = []


async def test_what_waits_for_a_person_is_listed_and_decided(url):
    async with Perdure(url) as app, serving(url) as ask:
        await app.run_until_paused("a", ship, "Ship it?")
        await app.run_until_paused("b", plan, "How many?")
        await app.run_until_paused("c", pay, "x")
        task = await app.tasks.open("d")
        await task.pause("Good?", reason="human_approval")
        status, found = await ask("GET", "/v1/inbox")
        assert status == 200 and [(one["task"], one["kind"]) for one in found["items"]] == [
            ("a", "approval"),
            ("b", "input"),
            ("c", "effect"),
            ("d", "approval"),
        ]
        a, b, c, d = (one["id"] for one in found["items"])
        assert [one["task"] for one in (await ask("GET", "/v1/inbox", query="kind=effect&kind=input"))[1]["items"]] == [
            "b",
            "c",
        ]
        assert [one["id"] for one in (await ask("GET", "/v1/inbox", query="task=d"))[1]["items"]] == [d]
        status, one = await ask("GET", f"/v1/inbox/{a}")
        assert (status, one["text"], one["editable"]) == (200, "Ship it?", {"note": SECRET})
        assert one["otherwise"]["say"] == "it is rejected"

        status, done = await ask("POST", f"/v1/inbox/{a}/approve", {"comment": "fine", "edited": {"note": "n"}})
        assert (status, done["answer"]["how"], done["answer"]["by"]) == (200, "approved", "ada")
        assert (await ask("POST", f"/v1/inbox/{b}/answer", {"value": {"n": 2}}))[0] == 200
        assert (await ask("POST", f"/v1/inbox/{c}/settle", {"choice": "done", "value": "r-1"}))[0] == 200
        assert (await ask("POST", f"/v1/inbox/{d}/reject", {"comment": "no"}))[0] == 200
        assert (await ask("GET", "/v1/inbox"))[1]["items"] == []
        status, problem = await ask("POST", f"/v1/inbox/{a}/reject", {})
        assert (status, problem["code"]) == (409, "already_decided")
        assert (problem["values"]["by"], problem["values"]["decision"]) == ("ada", "approved")
        assert await app.run("a", ship, "Ship it?") == "ada"
        assert await app.run("c", pay, "x") == "r-1"
        status, kept = await ask("GET", f"/v1/inbox/{d}")
        assert (kept["answer"]["how"], kept["answer"]["comment"]) == ("rejected", "no")


@pytest.mark.req("R33")
async def test_a_wrong_answer_names_its_places_and_changes_nothing(url):
    async with Perdure(url) as app, serving(url) as ask, serving(url, DECIDE) as blind:
        await app.run_until_paused("b", plan, SECRET)
        ((item),) = (await ask("GET", "/v1/inbox"))[1]["items"]
        address = f"/v1/inbox/{item['id']}/answer"
        status, problem = await ask("POST", address, {"value": {"n": "abc", "m": 1}})
        assert (status, problem["code"]) == (422, "invalid_input")
        assert problem["errors"] == [{"path": ["n"], "message": "it is not an integer: 'abc'"}]
        status, problem = await blind("POST", address, {"value": {"n": "abc"}})
        assert (status, problem["errors"]) == (422, [{"path": ["n"], "message": "it does not fit"}])
        assert SECRET not in json.dumps(problem)
        for verb, body in (("approve", {}), ("settle", {"choice": "done"})):
            assert (await ask("POST", f"/v1/inbox/{item['id']}/{verb}", body))[0] == 422
        assert (await ask("POST", f"/v1/inbox/{item['id']}/settle", {"choice": "maybe"}))[0] == 422
        assert (await ask("POST", address, {"valeu": 1}))[1]["errors"][0]["path"] == ["valeu"]
        status, done = await blind("POST", address, {"value": {"n": 1}, "comment": SECRET})
        assert status == 200 and SECRET not in json.dumps(done)
        assert await app.run("b", plan, SECRET) == {"n": 1}


@pytest.mark.threat("T3")
async def test_a_caller_without_data_read_sees_no_word_of_a_question(url):
    async with Perdure(url) as app, serving(url, LOOK) as look, serving(url) as ask:
        await app.run_until_paused("a", ship, SECRET)
        await app.run_until_paused("c", pay, SECRET)
        task = await app.tasks.open("d")
        await task.pause(SECRET, reason="human_input", question=SECRET, schema={"title": SECRET}, note=SECRET)
        await app.run_until_paused("e", calls_back, [])
        _, found = await look("GET", "/v1/inbox")
        assert [one["kind"] for one in found["items"]] == ["approval", "effect", "input"]
        assert SECRET not in json.dumps(found)
        for id in "acde":
            status, pauses = await look("GET", f"/v1/tasks/{id}/pauses")
            assert status == 200 and len(pauses["items"]) == 1 and SECRET not in json.dumps(pauses)
        first = found["items"][0]["id"]
        assert (await look("GET", f"/v1/inbox/{first}"))[0] == 403
        assert (await look("POST", f"/v1/inbox/{first}/approve", {}))[0] == 403
        assert (await ask("POST", f"/v1/inbox/{first}/approve", {"comment": SECRET}))[0] == 200
        assert SECRET not in json.dumps(await look("GET", "/v1/tasks/a/pauses"))


@pytest.mark.req("R63")
async def test_a_repeated_decision_is_made_once_also_when_its_answer_was_not_kept(url):
    async with Perdure(url) as app, serving(url) as ask:
        await app.run_until_paused("a", ship, "Ship it?")
        task = await app.tasks.open("d")
        await task.pause("Good?", reason="human_approval")
        for number, item in enumerate((await ask("GET", "/v1/inbox"))[1]["items"]):
            address = f"/v1/inbox/{item['id']}/approve"
            status, first = await ask("POST", address, {"comment": "ok"}, idempotency_key=f"k{number}")
            # The shortcut is gone, as after a server that died before it answered: the key is in the write itself.
            async with server_at(url) as server:
                shelf = server.desk.vault.shelf("answer", dict)
                for kept in await shelf.all():
                    await shelf.drop(kept)
            again, second = await ask("POST", address, {"comment": "ok"}, idempotency_key=f"k{number}")
            assert (status, again) == (200, 200) and first["answer"] == second["answer"]
            assert (await ask("POST", address, {"comment": "ok"}, idempotency_key=f"other {number}"))[0] == 409
        kinds = [event.kind for event in await app.tasks.events("a")]
        assert kinds.count("approved") == 1


async def test_of_two_deciders_at_two_servers_one_decides(postgres_url):
    """Two server processes share one PostgreSQL; many people press a button at the same time."""
    async with Perdure(postgres_url) as app, server_at(postgres_url) as server:
        key = await make_key(server, "operator")
        for number in range(4):
            await app.run_until_paused(f"a{number}", ship, "Ship it?")
            task = await app.tasks.open(f"t{number}")
            await task.pause("Good?", reason="human_approval")
        items = (await app.inbox.page()).items
        assert len(items) == 8
        with live_server(postgres_url) as one, live_server(postgres_url) as other:

            def decide(at: LiveServer, verb: str, id: str) -> tuple[int, Any]:
                how = {"Authorization": f"Bearer {key}", "Content_Type": "application/json"}
                reply = at.ask("POST", f"/v1/inbox/{id}/{verb}", b"{}", **how)
                return reply.status, reply.json

            for item in items:
                sides = [(one, "approve"), (other, "reject"), (one, "reject"), (other, "approve")]
                replies = await asyncio.gather(*(asyncio.to_thread(decide, *side, item.id) for side in sides))
                (won,) = [value for status, value in replies if status == 200]
                lost = [value for status, value in replies if status == 409]
                assert len(lost) == 3 and {problem["code"] for problem in lost} == {"already_decided"}
                assert {problem["values"]["decision"] for problem in lost} == {won["answer"]["how"]}


@pytest.mark.threat("T2")
async def test_an_unknown_question_and_one_of_another_namespace_are_the_same(url):
    async with Perdure(url) as app, serving(url, namespace="other") as stranger:
        await app.run_until_paused("a", ship, "Ship it?")
        (item,) = (await app.inbox.page()).items
        assert (await stranger("GET", "/v1/inbox"))[1]["items"] == []
        absent = await stranger("GET", "/v1/inbox/nothing")
        for id in (item.id, item.id[:-2], "%00", "a" * 3000, "%F0%9F%8E%89"):
            for method, path in (("GET", ""), ("POST", "/approve")):
                status, problem = await stranger(method, f"/v1/inbox/{id}{path}", {} if path else None)
                assert (status, problem["code"]) == (404, "not_found")
                assert id == "%00" or problem["detail"] == absent[1]["detail"]
        assert (await app.inbox.get(item.id)).is_open


async def test_a_question_that_is_put_off_is_hidden_from_its_own_caller_only(url):
    async with Perdure(url) as app, server_at(url) as server:
        await app.run_until_paused("a", ship, "Ship it?")
        await app.run_until_paused("b", plan, "How many?")
        (item, _) = (await app.inbox.page()).items
        ada = await make_key(server, "operator", name="ada")
        bob = await make_key(server, "operator", name="bob")

        async def listed(key: str, query: str = "") -> list[str]:
            reply = await request(server, "GET", "/v1/inbox", key=key, query=query)
            return [one["task"] for one in reply.json["items"]]

        body = {"until": "2099-01-01T00:00:00Z"}
        assert (await request(server, "POST", f"/v1/inbox/{item.id}/snooze", key=ada, body=body)).status == 204
        assert await listed(ada) == ["b"] and await listed(bob) == ["a", "b"]
        assert await listed(ada, "snoozed=true") == ["a", "b"]
        body = {"until": "2000-01-01T00:00:00Z"}
        assert (await request(server, "POST", f"/v1/inbox/{item.id}/snooze", key=ada, body=body)).status == 204
        assert await listed(ada) == ["a", "b"]
        naive = {"until": "2099-01-01T00:00:00"}
        assert (await request(server, "POST", f"/v1/inbox/{item.id}/snooze", key=ada, body=naive)).status == 422


async def test_a_cursor_of_the_inbox_cannot_be_forged(quick_url):
    async with Perdure(quick_url) as app, serving(quick_url) as ask:
        for number in range(5):
            task = await app.tasks.open(f"t{number}")
            await task.pause(f"{number}?", reason="human_approval")
        found, query = [], "limit=2"
        while True:
            _, page = await ask("GET", "/v1/inbox", query=query)
            found += [one["text"] for one in page["items"]]
            if page["next"] is None:
                break
            query = f"limit=2&cursor={page['next']}"
        assert found == [f"{number}?" for number in range(5)]
        _, page = await ask("GET", "/v1/inbox", query="limit=2")
        for wrong in (f"cursor=x{page['next']}", f"cursor={page['next']}&kind=input", "cursor=", "limit=0", "knid=x"):
            assert (await ask("GET", "/v1/inbox", query=wrong))[0] == 400


# ── callbacks ────────────────────────────────────────────────────────────────────────────────────


async def call(server: Any, token: str, body: Any, **how: Any) -> Any:
    return await request(server, "POST", f"/v1/callbacks/{token}", body=body, **how)


@pytest.mark.req("R42")
async def test_another_system_answers_by_its_token_once(url):
    async with Perdure(url, namespace="builds") as app, server_at(url) as server:
        TOKENS.clear()
        await app.run_until_paused("e", calls_back, [])
        (token,) = TOKENS
        wrong = await call(server, token, {"n": "x"})
        assert (wrong.status, wrong.json["errors"][0]["path"]) == (422, ["n"])
        assert SECRET not in wrong.body.decode()
        assert (await request(server, "GET", f"/v1/callbacks/{token}")).status == 405
        good = await call(server, token, {"n": 1})
        assert (good.status, good.json) == (200, {"counted": True})
        repeated = await call(server, token, {"n": 2})
        assert (repeated.status, repeated.json) == (200, {"counted": False})
        assert await app.run("e", calls_back, []) == {"n": 1}


@pytest.mark.req("R43")
async def test_an_answer_that_comes_before_the_pause_is_kept(url):
    async with Perdure(url) as app, server_at(url) as server:
        task = await app.tasks.open("job")
        token = await task.callback_token()
        assert (await call(server, token, {"state": "success"})).json == {"counted": True}
        await task.pause("CI runs", reason="external_dependency", callback=token)
        record = await task.record()
        assert (record.status, record.state["external"]["value"]) == ("running", {"state": "success"})


async def test_a_token_that_wants_a_signature_takes_no_other_answer(url):
    async with Perdure(url) as app, server_at(url) as server:
        TOKENS.clear()
        await app.run_until_paused("e", calls_back, [])
        key = await make_key(server, "admin")
        (item,) = await app.inbox.of("e")
        made = await request(server, "POST", f"/v1/tasks/e/pauses/{item.id}/token", key=key, body={"signed": True})
        assert made.status == 201 and made.json["secret"].startswith("whsec_")
        token, body = made.json["token"], b'{"n": 7}'
        now = server.clock.now_ms() // 1000
        kind = {"content-type": "application/json"}
        assert (await call(server, token, body, headers=kind)).status == 401
        for wrong in (
            sign([made.json["secret"]], "m1", now, b'{"n": 8}'),
            sign([made.json["secret"]], "m1", now - 3600, body),
            sign(["whsec_" + "A" * 43 + "="], "m1", now, body),
        ):
            reply = await call(server, token, body, headers={**kind, **wrong})
            assert (reply.status, reply.code) == (401, "bad_signature")
        good = sign([made.json["secret"]], "m1", now, body)
        assert (await call(server, token, body, headers={**kind, **good})).json == {"counted": True}
        assert await app.run("e", calls_back, []) == {"n": 7}


async def test_a_token_is_made_for_a_pause_that_waits_for_a_callback_only(url):
    async with Perdure(url) as app, server_at(url) as server:
        await app.run_until_paused("a", ship, "Ship it?")
        (item,) = (await app.inbox.page()).items
        await app.tasks.open("other")
        key = await make_key(server, "admin")
        for task, status in (("a", 422), ("other", 404)):
            reply = await request(server, "POST", f"/v1/tasks/{task}/pauses/{item.id}/token", key=key, body={})
            assert reply.status == status


async def test_a_wrong_token_is_not_found_and_a_hasty_caller_waits(quick_url, caplog):
    async with Perdure(quick_url) as app, server_at(quick_url) as server:
        TOKENS.clear()
        await app.run_until_paused("e", calls_back, [])
        (token,) = TOKENS
        absent = await call(server, "nothing", 1)
        for wrong in ("x", token[:-1], token[:-1] + ("A" if token[-1] != "A" else "B"), token.upper(), "%00"):
            reply = await call(server, wrong, 1)
            assert reply.status == 404 and (wrong == "%00" or reply.json["detail"] == absent.json["detail"])
        for bad in (b"{", b"\xff", b'{"a":1,"a":2}', b"NaN", b"[" * 1000):
            assert (await call(server, token, bad)).status == 400
        assert (await call(server, token, b'"' + b"x" * 1_100_000 + b'"')).status == 413
        replies = [(await call(server, token, 1)).status for _ in range(12)]
        assert 429 in replies
        assert token not in caplog.text
