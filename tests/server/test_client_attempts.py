"""The work of an attempt through a server: how it ends, what it asks, and that only its own fence counts."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from perdure import Perdure, errors, sync
from perdure.client import Transport
from perdure.server import make_app
from perdure.types import Config
from tests.support.asking import ALL, Known
from tests.support.http_server import make_key, request, serving
from tests.support.live_server import listening


@pytest.fixture
def address(shared_url: str) -> Iterator[str]:
    server = make_app(shared_url)
    server._guard, server._identity = None, Known(ALL)
    with listening(server) as address:
        yield address


async def test_the_end_of_an_attempt_tells_where_its_exception_was_raised(address: str) -> None:
    async with Perdure(address) as app:
        task = await app.tasks.create("job", state={}, config=Config(on_failure="fail"))
        with pytest.raises(ValueError, match="bad row"):
            async with task.attempt():
                raise ValueError("bad row")
        record = await task.record()
        assert (record.status, record.error["type"], record.error["message"]) == ("failed", "ValueError", "bad row")
        assert "test_client_attempts.py" in record.error["traceback"]
        await task.resume()
        async with task.attempt():
            await task.checkpoint({"n": 1})


def test_blocking_code_has_its_failures_recorded_too(address: str) -> None:
    with sync.Perdure(address) as app:
        task = app.tasks.create("job", state={}, config=Config(on_failure="pause"))
        with pytest.raises(ZeroDivisionError), task.attempt():
            print(1 / len([]))
        assert "ZeroDivisionError" in task.record().pause.message


async def test_an_attempt_asks_and_saves_in_one_write_and_one_that_lost_its_lease_asks_nothing(address: str) -> None:
    async with Perdure(address) as app, Perdure(address) as elsewhere:
        task = await app.tasks.create("job", state={"n": 0})
        async with task.attempt():
            await task.pause("Go on?", checkpoint={"n": 1})
        record = await task.record()
        assert (record.status, record.state, record.attempts[-1].ended) == ("paused", {"n": 1}, "paused")
        await task.resume()
        other = await elsewhere.tasks.handle("job")
        async with task.attempt():
            async with other.attempt(take_over=True):
                with pytest.raises(errors.LeaseLost):
                    await task.pause("Mine?")
                await other.checkpoint({"n": 2})
            assert (await other.record()).status == "running"


async def test_what_an_attempt_has_not_saved_yet_outlives_its_other_writes(address: str) -> None:
    async with Perdure(address) as app, Perdure(address) as elsewhere:
        task = await app.tasks.create("job", state={"items": []})
        task.state["draft"] = "not saved yet"
        await (await elsewhere.tasks.handle("job")).append("items", 1)
        await task.append("items", 2)
        assert task.state == {"items": [1, 2], "draft": "not saved yet"}
        await task.pause("a look")
        await (await elsewhere.tasks.handle("job")).resume(state={"approved": True})
        await task.checkpoint(task.state)
        assert (await task.record()).state == {"items": [1, 2], "draft": "not saved yet", "approved": True}


async def test_a_key_belongs_to_its_task_and_never_decides_the_next_question(address: str) -> None:
    async with Perdure(address) as app:
        for id in ("one", "two"):
            made = await (await app.tasks.create(id, state={})).checkpoint({"n": id}, once="page 1 – ü")
            assert made.data == {"n": id}
        task = await app.tasks.handle("one")
        await task.pause("first?", reason="human_approval")
        await task.approve(by="", once="yes")
        await task.approve(by="", once="yes")
        await task.pause("second?", reason="human_approval")
        with pytest.raises(errors.KeyReused):
            await task.approve(by="", once="yes")
        assert (await task.record()).status == "paused"


async def test_a_request_whose_first_try_still_runs_is_waited_for(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a proxy that gave up: 504 to the client, while the server goes on."""
    async with Perdure(address) as app:
        task = await app.tasks.create("job", state={})
        sends = [task.checkpoint({"n": 1}, once="a") for _ in range(6)]
        made = await asyncio.gather(*sends)
        assert len({one.id for one in made}) == 1
        assert [one.seq async for one in task.checkpoints()] == [1]


async def test_a_list_costs_one_request_for_the_page_and_one_for_each_task(address: str) -> None:
    async with Perdure(address) as app:
        for number in range(4):
            await app.tasks.create(f"t{number}", state={})
        transport, asked = app.tasks._transport, []
        once = transport._once
        transport._once = lambda *given: asked.append(given[1]) or once(*given)
        assert [record.id for record in await app.tasks.list()] == ["t3", "t2", "t1", "t0"]
        assert len(asked) == 5


# ── keys of agents ───────────────────────────────────────────────────────────────────────────────


async def test_an_agents_key_is_enough_for_its_own_work_and_gives_no_control(url: str) -> None:
    async with serving(url) as server:
        key = await make_key(server, "agent")
        await server.app_of("default").tasks.create("job", state={"n": 0})
        holder = (await request(server, "POST", "/v1/holders", key=key, body={"host": "h", "pid": 7})).json
        sent = {"key": key, "headers": {"perdure-holder": holder["token"]}}
        fence = (await request(server, "POST", "/v1/tasks/job/attempt", body={}, **sent)).json["fence"]
        held = {"key": key, "headers": {"perdure-fence": fence}}
        token = await request(server, "POST", "/v1/tasks/job/token", key=key)
        assert token.status == 201
        asking = {"message": "CI runs", "reason": "external_dependency", "payload": {"callback": token.json["token"]}}
        assert (await request(server, "POST", "/v1/tasks/job/pause", body=asking, **held)).status == 403
        paused = await request(server, "POST", "/v1/tasks/job/attempt/pause", body=asking, **held)
        assert (paused.status, paused.json["status"]) == (200, "paused")
        answered = await request(server, "POST", token.json["address"], body={"state": "green"})
        assert answered.json == {"counted": True}
        record = (await request(server, "GET", "/v1/tasks/job", key=key)).json
        assert (record["status"], record["state"]["external"]["value"]) == ("running", {"state": "green"})
        late = await request(server, "POST", "/v1/tasks/job/attempt/error", body={"type": "ValueError"}, **held)
        assert (late.status, late.json["status"]) == (200, "running")  # that attempt had ended before
        assert [one["ended"] for one in late.json["attempts"]] == ["paused"]


async def test_what_ends_an_attempt_is_one_short_line_without_control_characters(url: str) -> None:
    async with serving(url) as server:
        key = await make_key(server, "agent")
        await server.app_of("default").tasks.create("job", state={})
        holder = (await request(server, "POST", "/v1/holders", key=key, body={"host": "h", "pid": 7})).json
        sent = {"key": key, "headers": {"perdure-holder": holder["token"]}}
        fence = (await request(server, "POST", "/v1/tasks/job/attempt", body={}, **sent)).json["fence"]
        held = {"key": key, "headers": {"perdure-fence": fence}}
        for wrong in ({"type": ""}, {"type": "\n"}):
            assert (await request(server, "POST", "/v1/tasks/job/attempt/error", body=wrong, **held)).status == 422
        told = {"type": "E\x1b[31m", "message": "a\nb" * 1000, "traceback": "\x07" * 9000}
        done = await request(server, "POST", "/v1/tasks/job/attempt/error", body=told, **held)
        (attempt,) = done.json["attempts"]
        assert attempt["ended"].startswith("error: E\\x1b[31m: a; ba; b") and len(attempt["ended"]) < 300
        events = (await request(server, "GET", "/v1/tasks/job/events", key=key)).json["items"]
        assert "\x07" not in json.dumps(events, ensure_ascii=False) and len(json.dumps(events)) < 20_000


async def test_a_body_with_a_state_has_the_limit_of_states(url: str) -> None:
    big = {"text": "x" * 3_000_000}
    async with serving(url, state_limit=4_000_000) as server:
        key = await make_key(server, "admin")
        sent = {"key": key, "headers": {"idempotency-key": "a"}}
        made = await request(server, "POST", "/v1/tasks", body={"id": "job", "state": big}, **sent)
        assert made.status == 201
        paused = await request(server, "POST", "/v1/tasks/job/pause", body={"message": "?", "checkpoint": big}, key=key)
        assert paused.status == 200
        larger = {"state": {"text": "x" * 4_000_000}}
        refused = await request(server, "POST", "/v1/tasks/job/checkpoints", body=larger, key=key)
        assert (refused.status, refused.code) == (413, "too_large")


# ── what is not a server ─────────────────────────────────────────────────────────────────────────


@contextmanager
def answering(status: int, body: bytes, **headers: str) -> Iterator[str]:
    """The address of something that answers every request alike."""

    class Answer(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(body))}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = _answer

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


@pytest.mark.parametrize(
    "status, body, headers, say",
    [
        (301, b"", {"location": "https://perdure.example/v1/tasks?key=secret"}, "https://perdure.example/v1/tasks'"),
        (302, b"moved", {"location": "/login"}, "/login"),
        (200, b"<html>Log in</html>", {"content_type": "text/html"}, "answered 200"),
        (200, b"{", {"content_type": "application/json"}, "answered 200"),
        (404, b"<html>nothing</html>", {"content_type": "text/html"}, "answered 404"),
    ],
)
async def test_what_answers_in_place_of_a_server_is_told_and_never_taken_for_one(
    status: int, body: bytes, headers: dict[str, str], say: str
) -> None:
    with answering(status, body, **headers) as address:
        async with Perdure(address, key="prd_x") as app:
            for ask in (lambda: app.tasks.create("job", state={}), lambda: app.tasks.get("job"), app.tasks.counts):
                with pytest.raises(errors.StoreUnreachable, match=say) as caught:
                    await ask()
                assert "secret" not in str(caught.value) and "prd_x" not in str(caught.value)


def test_a_value_that_json_would_change_is_refused_before_it_is_sent() -> None:
    transport = Transport("http://127.0.0.1:9", None, patience=0)
    from perdure.client.transport import encoded

    for value, path in (
        ({"a": {1: "b"}}, "a"),
        ({"a": [0, (1, 2)]}, "a[1]"),
        ({"a": float("nan")}, "a"),
        ({"a": {"b": "\ud800"}}, "a.b"),
        ({"a": b"x"}, "a"),
    ):
        with pytest.raises(errors.NotStorable) as caught:
            encoded({"state": value})
        assert caught.value.path == path
    assert encoded({"state": {"a": [1, 2.5, None, True, "ü"]}})
    transport.close()
