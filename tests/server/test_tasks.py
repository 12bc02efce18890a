"""Tasks over HTTP: the verbs of `app.tasks` with the same guarantees."""

from __future__ import annotations

import json

import pytest

from tests.support.asking import serving


async def test_a_task_lives_its_life_over_http(url):
    async with serving(url) as ask:
        status, made = await ask("POST", "/v1/tasks", {"id": "report", "state": {"n": 1}}, idempotency_key="1")
        assert (status, made["status"], made["state"]) == (201, "running", {"n": 1})
        status, checkpoint = await ask("POST", "/v1/tasks/report/checkpoints", {"state": {"n": 2}, "label": "half"})
        assert (status, checkpoint["label"]) == (201, "half")
        assert (await ask("POST", "/v1/tasks/report/append", {"path": "rows", "item": 7}))[0] == 201
        assert (await ask("PUT", "/v1/tasks/report/progress", {"operation": "copy", "done": 1, "total": 2}))[0] == 204
        status, paused = await ask("POST", "/v1/tasks/report/pause", {"message": "Ship?", "reason": "human_approval"})
        assert (status, paused["status"], paused["pause"]["message"]) == (200, "paused", "Ship?")
        assert (await ask("POST", "/v1/tasks/report/complete", {"result": 1}))[0] == 409
        assert (await ask("POST", "/v1/tasks/report/resume", {}))[1]["status"] == "running"
        status, done = await ask("POST", "/v1/tasks/report/complete", {"result": {"ok": True}})
        assert (status, done["status"], done["result"]) == (200, "completed", {"ok": True})
        status, seen = await ask("GET", "/v1/tasks/report")
        assert (seen["state"], seen["progress"]["done"]) == ({"n": 2, "rows": [7]}, 1)
        status, events = await ask("GET", "/v1/tasks/report/events")
        assert [event["number"] for event in events["items"]] == list(range(1, len(events["items"]) + 1))


@pytest.mark.parametrize("id", ["a/b", "a:b", "é 🎉", "..", "~x", "a?b", "100%"])
async def test_any_id_has_an_address(quick_url, id):
    from urllib.parse import quote

    async with serving(quick_url) as ask:
        _, made = await ask("POST", "/v1/tasks", {"id": id}, idempotency_key="1")
        for address in (quote(id, safe=""), f"~{made['uid']}"):
            status, seen = await ask("GET", f"/v1/tasks/{address}")
            assert (status, seen["uid"]) == (200, made["uid"])


async def test_a_task_of_another_namespace_is_not_found(url):
    async with serving(url) as ask, serving(url, namespace="other") as stranger:
        _, made = await ask("POST", "/v1/tasks", {"id": "mine"}, idempotency_key="1")
        absent = await stranger("GET", "/v1/tasks/nothing")
        for address in ("mine", f"~{made['uid']}"):
            status, problem = await stranger("GET", f"/v1/tasks/{address}")
            assert (status, problem["detail"]) == (404, absent[1]["detail"])


async def test_a_caller_without_data_read_sees_no_data(url):
    secret = "MARKER"
    async with serving(url) as ask, serving(url, frozenset({"tasks:read"})) as viewer:
        await ask("POST", "/v1/tasks", {"id": "t", "state": {"a": secret}}, idempotency_key="1")
        await ask("PUT", "/v1/tasks/t/progress", {"operation": "copy", "cursor": secret})
        await ask("POST", "/v1/tasks/t/pause", {"message": secret, "payload": {"note": secret}})
        for path in ("", "/events", "/attempts", "/history"):
            assert secret not in json.dumps(await viewer("GET", f"/v1/tasks/t{path}"))
        assert (await viewer("POST", "/v1/tasks/t/resume", {}))[0] == 403


async def test_a_write_from_a_stale_look_is_refused(url):
    async with serving(url) as ask:
        _, made = await ask("POST", "/v1/tasks", {"id": "t"}, idempotency_key="1")
        await ask("POST", "/v1/tasks/t/checkpoints", {"state": {"n": 2}})
        await ask("POST", "/v1/tasks/t/pause", {"message": "wait"})
        body = {"state": {"n": 3}}
        assert (await ask("POST", "/v1/tasks/t/resume", body))[0] == 428
        assert (await ask("POST", "/v1/tasks/t/resume", body, if_match=f'"v{made["version"]}"'))[0] == 412
        _, now = await ask("GET", "/v1/tasks/t")
        assert (await ask("POST", "/v1/tasks/t/resume", body, if_match=f'"v{now["version"]}"'))[0] == 200


async def test_a_fork_without_an_id_gets_the_first_free_one(quick_url):
    async with serving(quick_url) as ask:
        await ask("POST", "/v1/tasks", {"id": "t", "state": {"n": 1}}, idempotency_key="1")
        ids = [(await ask("POST", "/v1/tasks/t/fork", {}, idempotency_key=key))[1]["id"] for key in ("a", "b")]
        assert ids == ["t-fork", "t-fork-2"]


async def test_a_field_that_is_not_known_is_refused(quick_url):
    async with serving(quick_url) as ask:
        status, problem = await ask("POST", "/v1/tasks", {"id": "t", "sate": {}}, idempotency_key="1")
        assert (status, problem["do"], problem["errors"][0]["path"]) == (422, "did you mean 'state'?", ["sate"])
        assert (await ask("GET", "/v1/tasks/t"))[0] == 404


async def test_an_agent_elsewhere_has_a_lease_of_its_own(url):
    async with serving(url) as ask, serving(url) as other_server:
        await ask("POST", "/v1/tasks", {"id": "t"}, idempotency_key="1")
        status, holder = await ask("POST", "/v1/holders", {"host": "far", "pid": 7})
        assert status == 201
        status, begun = await ask("POST", "/v1/tasks/t/attempt", {}, perdure_holder=holder["token"])
        assert status == 201
        write = {"perdure_fence": begun["fence"]}
        assert (await other_server("POST", "/v1/tasks/t/checkpoints", {"state": {"n": 1}}, **write))[0] == 201
        status, problem = await ask("POST", "/v1/tasks/t/checkpoints", {"state": {"n": 2}})
        assert (status, problem["code"]) == (409, "lease_held")
        beat = f"/v1/holders/{holder['holder']}/beat"
        assert (await other_server("POST", beat, perdure_holder=holder["token"]))[0] == 204

        assert (await ask("POST", "/v1/tasks/t/take"))[0] == 200
        status, problem = await ask("POST", "/v1/tasks/t/checkpoints", {"state": {"n": 3}}, **write)
        assert (status, problem["code"]) == (409, "lease_lost")
        assert (await ask("GET", "/v1/tasks/t"))[1]["state"] == {"n": 1}
        assert (await ask("DELETE", f"/v1/holders/{holder['holder']}", perdure_holder=holder["token"]))[0] == 204
        assert (await ask("POST", beat, perdure_holder=holder["token"]))[0] == 410


async def test_a_list_is_read_page_by_page(url):
    async with serving(url) as ask:
        for number in range(5):
            await ask("POST", "/v1/tasks", {"id": f"t{number}", "tags": {"k": "v"}}, idempotency_key=str(number))
        seen, cursor = [], ""
        while True:
            status, page = await ask("GET", "/v1/tasks", query=f"limit=2&tag.k=v{cursor}")
            assert status == 200
            seen += [item["id"] for item in page["items"]]
            if page["next"] is None:
                break
            cursor = f"&cursor={page['next']}"
        assert seen == ["t4", "t3", "t2", "t1", "t0"]
        for query in (f"limit=2{cursor}", f"limit=2&tag.k=v{cursor[:-1]}", "cursor=AAAA", "cursor=%00", "limit=0"):
            status, problem = await ask("GET", "/v1/tasks", query=query)
            assert (status, problem["code"] in ("bad_cursor", "bad_request")) == (400, True), query
        assert (await ask("GET", "/v1/counts"))[1]["status"]["running"] == 5
        assert (await ask("GET", "/v1/facets"))[1]["tags"] == {"k": 5}
