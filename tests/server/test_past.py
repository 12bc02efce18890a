"""A task's past over HTTP: its journal, its checkpoints, its relatives, and who sees what of it."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import pytest

from perdure import Perdure, durable, effect, step, stream
from perdure._tasks.checkpoints import checkpoint_reader
from perdure.errors import PerdureError
from perdure.pause import approval
from perdure.server.http import answer_bytes
from tests.support.asking import serving
from tests.tasks.upkeep_kit import sql

SECRET = "marker-of-what-agents-wrote"
LOOK = frozenset({"tasks:read"})


@step
async def fetch(page: int, note: str) -> str:
    return f"{note} {page}"


@effect(undo=lambda result, to: None)
async def send(to: str) -> int:
    return 7


@effect
async def fail_to_send(to: str) -> int:
    raise ValueError(to)


@durable
async def child(note: str) -> str:
    return note


async def _pieces(text: str) -> AsyncIterator[str]:
    yield text


@durable
async def errand(note: str, pages: int) -> str:
    for page in range(pages):
        await fetch(page, note)
    await send("to")
    await send(note)
    async for _ in stream("draft", lambda prefix: _pieces(note)):
        pass
    await approval(f"{note}?")
    return note


async def begun(url: str, pages: int = 3) -> None:
    async with Perdure(url) as app:
        await app.run_until_paused("errand", errand, SECRET, pages)


async def test_a_journal_is_read_as_columns_as_pages_and_call_by_call(url):
    await begun(url)
    async with serving(url) as ask:
        _, outline = await ask("GET", "/v1/tasks/errand/journal/outline")
        names = [outline["names"][at] for at in outline["name"]]
        assert names[:4] == ["fetch", "fetch", "fetch", "send"]
        assert (await ask("GET", "/v1/tasks/errand/journal/outline", if_none_match=f'"{outline["etag"]}"'))[0] == 304
        _, first = await ask("GET", "/v1/tasks/errand/journal", query="limit=2")
        assert [call["name"] for call in first["items"]] == ["fetch", "fetch"]
        _, second = await ask("GET", "/v1/tasks/errand/journal", query=f"limit=2&after={first['next']}")
        assert [call["name"] for call in second["items"]] == ["fetch", "send"]
        _, effects = await ask("GET", "/v1/tasks/errand/journal", query="kind=effect&text=to")
        position = effects["items"][0]["position"]
        status, call = await ask("GET", f"/v1/tasks/errand/journal/1/{position}")
        assert (status, call["value"], call["arguments"]) == (200, 7, {"args": ["to"], "kwargs": {}})
        _, lines = await ask("GET", "/v1/tasks/errand/journal/lines")
        assert [line["line"] for line in lines["items"]] == [1]
        _, streams = await ask("GET", "/v1/tasks/errand/streams")
        assert [(one["name"], one["length"]) for one in streams["items"]] == [("draft", len(SECRET))]


@pytest.mark.parametrize(
    "address",
    ["journal/9/1", "journal/1/999", "journal/x/1", "journal/1/-1", "journal/1/99999999999999999999", "checkpoints/77",
     "checkpoints/x", "frames/nothing"],
)  # fmt: skip
async def test_what_a_past_does_not_have_is_not_found_and_its_store_is_not_named(quick_url, address, tmp_path):
    await begun(quick_url, 1)
    async with serving(quick_url) as ask:
        method = "DELETE" if address.startswith("frames") else "GET"
        status, problem = await ask(method, f"/v1/tasks/errand/{address}")
        assert status == 404
        assert str(tmp_path) not in json.dumps(problem)


@pytest.mark.threat("T3")
async def test_a_caller_who_may_not_read_data_sees_no_word_that_an_agent_wrote(url):
    await begun(url)
    async with Perdure(url) as app:
        task = await app.tasks.open("plain", state={"text": SECRET})
        await task.checkpoint({"text": SECRET + "2"}, label=SECRET)
        await app.run_until_paused("failing", failing, SECRET)
    routes = ["journal/outline", "journal/lines", "effects", "checkpoints", "family", "audit", "account", "attempts",
              "history", "plan", "events"]  # fmt: skip
    async with serving(url, LOOK) as ask:
        for id in ("errand", "plain", "failing"):
            for name in routes:
                status, value = await ask("GET", f"/v1/tasks/{id}/{name}")
                assert (status, SECRET in json.dumps(value)) == (200, False), (id, name)
            for name in ("journal", "journal/1/1", "checkpoints/1", "diff?from=1", "memory", "frames", "streams"):
                path, _, query = name.partition("?")
                assert (await ask("GET", f"/v1/tasks/{id}/{path}", query=query))[0] == 403


@durable
async def failing(note: str) -> None:
    try:
        await fail_to_send(note)
    except ValueError:
        raise PerdureError(note) from None


async def test_the_ledger_of_effects_shows_calls_to_those_who_may_read_them(url):
    await begun(url)
    async with serving(url) as ask, serving(url, LOOK) as stranger:
        _, seen = await ask("GET", "/v1/tasks/errand/effects")
        _, bare = await stranger("GET", "/v1/tasks/errand/effects")
        assert [(one["name"], one["state"]) for one in seen["items"]] == [("send", "done")] * 2
        assert SECRET in seen["items"][1]["call"]
        assert set(seen["items"][0]) - set(bare["items"][0]) == {"call", "error", "traceback"}


async def test_checkpoints_are_listed_looked_into_compared_and_pinned(url):
    async with serving(url) as ask:
        await ask("POST", "/v1/tasks", {"id": "t", "state": {"files": [1, 2, 3]}}, idempotency_key="1")
        for files in ([0, 1, 2, 3], [0, 1, 2, 3, {"name": "x"}]):
            await ask("POST", "/v1/tasks/t/checkpoints", {"state": {"files": files}})
        _, page = await ask("GET", "/v1/tasks/t/checkpoints")
        seqs = [one["seq"] for one in page["items"]]
        path = quote(json.dumps(["files", 4, "name"]))
        _, found = await ask("GET", f"/v1/tasks/t/checkpoints/{seqs[-1]}", query=f"part=state&path={path}")
        assert (found["value"], found["path"]) == ("x", ["files", 4, "name"])
        status, diff = await ask("GET", "/v1/tasks/t/diff", query="from=0")
        assert status == 200
        assert [(one["kind"], one["path"]) for one in diff["changes"]] == [
            ("added", ["files", 0]),
            ("added", ["files", 4]),
        ]
        assert (await ask("PUT", f"/v1/tasks/t/checkpoints/{seqs[0]}/pin"))[0] == 204
        assert (await ask("GET", "/v1/tasks/t/checkpoints"))[1]["items"][0]["pinned"]
        assert (await ask("DELETE", f"/v1/tasks/t/checkpoints/{seqs[0]}/pin"))[0] == 204
        assert not (await ask("GET", "/v1/tasks/t/checkpoints"))[1]["items"][0]["pinned"]


async def test_states_of_two_tasks_are_compared(quick_url):
    async with serving(quick_url) as ask:
        uids = []
        for id, n in (("a", 1), ("b", 2)):
            _, made = await ask("POST", "/v1/tasks", {"id": id, "state": {"n": n}}, idempotency_key=id)
            uids.append(made["uid"])
        _, diff = await ask("GET", "/v1/tasks/a/diff", query=f"from=0&to=~{uids[1]}:0")
        assert [(one["before"], one["after"]) for one in diff["changes"]] == [(1, 2)]
        for bad in ("~x:0", f"~{uids[1]}", f"~{uids[1]}:x"):
            assert (await ask("GET", "/v1/tasks/a/diff", query=f"from=0&to={bad}"))[0] == 400
    async with serving(quick_url, namespace="other") as stranger:
        await stranger("POST", "/v1/tasks", {"id": "c"}, idempotency_key="c")
        assert (await stranger("GET", "/v1/tasks/c/diff", query=f"from=~{uids[0]}:0"))[0] == 404


async def test_checkpoints_are_set_aside_by_the_version_that_was_seen(url):
    async with serving(url) as ask:
        await ask("POST", "/v1/tasks", {"id": "t", "state": {"n": 0}}, idempotency_key="1")
        for n in (1, 2):
            await ask("POST", "/v1/tasks/t/checkpoints", {"state": {"n": n}})
        _, seen = await ask("GET", "/v1/tasks/t")
        tag = f'"v{seen["version"]}"'
        assert (await ask("POST", "/v1/tasks/t/invalidate", {"numbers": [2]}))[0] == 428
        assert (await ask("POST", "/v1/tasks/t/invalidate", {"numbers": [2]}, if_match='"v99"'))[0] == 412
        assert (await ask("POST", "/v1/tasks/t/invalidate", {"numbers": [9]}, if_match=tag))[0] == 404
        assert (await ask("POST", "/v1/tasks/t/invalidate", {"numbers": []}, if_match=tag))[0] == 422
        status, left = await ask("POST", "/v1/tasks/t/invalidate", {"numbers": [2]}, if_match=tag)
        assert (status, left["state"]) == (200, {"n": 1})


@pytest.mark.parametrize("path", ["x", "{}", "[null]", "[1.5]", "[true]", '["a"', "[" * 1000])
async def test_a_path_that_is_not_one_is_refused(quick_url, path):
    async with serving(quick_url) as ask:
        await ask("POST", "/v1/tasks", {"id": "t"}, idempotency_key="1")
        status, _ = await ask("GET", "/v1/tasks/t/checkpoints/0", query=f"part=state&path={quote(path)}")
        assert status == 400


async def test_a_large_state_is_looked_at_from_the_top_and_part_by_part(url):
    rows = [{"id": at, "text": "x" * 500, "tree": {"a": {"b": [1, 2, 3]}}} for at in range(8000)]  # about 5 MB
    async with Perdure(url) as app:
        await app.tasks.create("large", state={"rows": rows, "long": "y" * 70_000})
    async with serving(url) as ask:
        _, top = await ask("GET", "/v1/tasks/large/checkpoints/0", query="part=state&brief=true")
        assert len(json.dumps(top)) < 200_000
        last = top["value"]["rows"][-1]["$cut"]
        assert (last["kind"], last["length"]) == ("items", 8000)
        cut = top["value"]["long"]["$cut"]
        assert (cut["kind"], cut["length"]) == ("text", 70_000)
        path, _, query = cut["at"].partition("?")
        _, whole = await ask("GET", path, query=query.replace("brief=true&", ""))
        assert whole["value"] == "y" * 70_000
        _, all_of_it = await ask("GET", "/v1/tasks/large/checkpoints/0", query="part=state")
        assert len(all_of_it["value"]["rows"]) == 8000


async def test_large_states_are_decoded_compared_and_encoded_off_the_event_loop(quick_url, monkeypatch):
    async with Perdure(quick_url) as app:
        await app.tasks.create("large", state={"rows": list(range(1000))})
    seen: dict[str, threading.Thread] = {}

    def noted(module, name):
        act = getattr(module, name)

        def call(*args):
            seen[name] = threading.current_thread()
            return act(*args)

        monkeypatch.setattr(module, name, call)

    noted(checkpoint_reader, "contents_shown")
    noted(checkpoint_reader, "diff")
    noted(answer_bytes, "to_json")
    async with serving(quick_url) as ask:
        for address in ("checkpoints/0", "diff"):
            seen.pop("to_json", None)
            await ask("GET", f"/v1/tasks/large/{address}", query="from=0" if address == "diff" else "")
            assert seen["to_json"] is not threading.main_thread()
    assert threading.main_thread() not in seen.values()
    assert set(seen) == {"contents_shown", "diff", "to_json"}


async def test_a_large_journal_is_paged_without_its_long_values(quick_url):
    async with Perdure(quick_url) as app:
        await app.run("long", talkative)
    async with serving(quick_url) as ask:
        _, page = await ask("GET", "/v1/tasks/long/journal")
        cut = page["items"][0]["error"]["message"]["$cut"]
        assert cut["length"] >= 100_000
        _, whole = await ask("GET", cut["at"])
        assert len(whole["error"]["message"]) == cut["length"]


@step
async def shout() -> None:
    raise ValueError("a" * 100_000)


@durable
async def talkative() -> None:
    try:
        await shout()
    except ValueError:
        return


async def test_a_family_is_told_from_both_sides(url):
    async with Perdure(url) as app:

        @durable
        async def with_a_child() -> None:
            await app.start("kid", child, "hello")
            await approval("go on?")

        await app.run_until_paused("errand", with_a_child)
        await app.tasks.create("after", state={}, depends_on=["errand", "not-yet"])
    async with serving(url) as ask:
        _, seen = await ask("GET", "/v1/tasks/errand/family")
        assert (seen["children_total"], seen["children_open"], seen["parents"]) == (1, 1, [])
        _, below = await ask("GET", f"/v1/tasks/~{seen['children'][0]['uid']}/family")
        assert [one["id"] for one in below["parents"]] == ["errand"]
        _, waiting = await ask("GET", "/v1/tasks/after/family")
        assert [(one["id"], one["status"]) for one in waiting["dependencies"]] == [
            ("errand", "paused"),
            ("not-yet", None),
        ]
        assert (await ask("GET", "/v1/tasks/errand/family", query="limit=0"))[0] == 422


async def test_a_chain_of_events_is_whole_until_one_is_changed(shared_url):
    async with serving(shared_url) as ask:
        _, made = await ask("POST", "/v1/tasks", {"id": "t"}, idempotency_key="1")
        _, whole = await ask("GET", "/v1/tasks/t/audit")
        assert (whole["is_whole"], whole["events"], len(whole["head"])) == (True, 1, 64)
        sql(shared_url, "UPDATE {events} SET at = at + 1 WHERE task_uid = ? AND number = 1", made["uid"])
        _, changed = await ask("GET", "/v1/tasks/t/audit")
        assert (changed["is_whole"], changed["broken_at"]) == (False, 1)


async def test_a_task_in_history_has_a_past_of_its_own(url):
    async with serving(url) as ask:
        uids = []
        for n in (1, 2):
            _, made = await ask(
                "POST", "/v1/tasks", {"id": "t", "mode": "again", "state": {"n": n}}, idempotency_key=str(n)
            )
            await ask("POST", "/v1/tasks/t/complete", {"result": n})
            uids.append(made["uid"])
        for uid, n in zip(uids, (1, 2), strict=True):
            _, found = await ask("GET", f"/v1/tasks/~{uid}/checkpoints/0", query="part=state")
            assert found["value"] == {"n": n}
            assert (await ask("GET", f"/v1/tasks/~{uid}/audit"))[1]["is_whole"]
        assert len((await ask("GET", "/v1/tasks/t/history"))[1]["items"]) == 2


async def test_frames_memory_plan_and_report_are_told(url):
    async with Perdure(url) as app:
        task = await app.tasks.create("t", state={"goal": "ship"})
        await task.frames.push("review", goal="look at it", next=["read"])
    async with serving(url) as ask:
        _, thoughts = await ask("GET", "/v1/tasks/t/frames")
        assert [one["name"] for one in thoughts["frames"]] == ["review"]
        assert (await ask("DELETE", "/v1/tasks/t/frames/review", query="why=done"))[0] == 204
        _, thoughts = await ask("GET", "/v1/tasks/t/frames")
        assert (thoughts["frames"], thoughts["gone"][0]["why"]) == ([], "done")
        assert (await ask("GET", "/v1/tasks/t/memory"))[0] == 200
        assert (await ask("GET", "/v1/tasks/t/memory", query="budget=0"))[0] == 422
        assert (await ask("GET", "/v1/tasks/t/plan"))[1]["task_id"] == "t"
        assert (await ask("GET", "/v1/tasks/t/report"))[0] == 204


async def test_the_cost_of_a_task_is_told(url):
    await begun(url)
    async with serving(url) as ask:
        _, cost = await ask("GET", "/v1/tasks/errand/account")
        assert (cost["saved"]["steps"], cost["saved"]["effects"], cost["by_function"]) == (4, 2, [])


@step
async def page_of(number: int) -> dict[str, Any]:
    return {"text": "x" * 5000, "rows": list(range(number))}


@durable(name="large results")
async def large(number: int) -> None:
    await page_of(number)


async def test_a_large_result_is_read_from_the_top_and_part_by_part(quick_url):
    async with Perdure(quick_url) as app:
        await app.run("large", large, 300)
    async with serving(quick_url) as ask:
        _, call = await ask("GET", "/v1/tasks/large/journal/1/1", query="brief=true")
        text, rows = call["value"]["text"]["$cut"], call["value"]["rows"][-1]["$cut"]
        assert (text["length"], text["begin"], rows["length"]) == (5000, "x" * 200, 300)
        path, query = text["at"].split("?")
        assert (await ask("GET", path, query=query.replace("brief=true&", "")))[1]["value"] == "x" * 5000
        assert (await ask("GET", path, query='path=["rows",299]'))[1]["value"] == 299
        for wrong, status in {'["rows",300]': 404, '["no"]': 404, '["text",0]': 404, "rows": 400}.items():
            assert (await ask("GET", path, query=f"path={wrong}"))[0] == status
